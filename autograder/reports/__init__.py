"""What is said: one finding, one text, on cards, in tables, as JSON and on feedback pages.

May print and render, and escape all that a student wrote. Marks nothing and runs nothing. Knows
what was found (`course.asking`) and who handed it in (`intake`).
"""
