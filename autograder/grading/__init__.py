"""From a submission to a report, and from many to a class: the room that puts the others together.

Sends a student's code to the sandbox and nowhere else; draws the inputs after it was loaded;
writes marks. The seam with nbgrader is here: its plugin, converters, exchange and gradebook.
"""
