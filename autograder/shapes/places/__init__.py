"""Which statement a comment is about: where it stands, and which one beside it is meant.

`layout`: where statements and comments stand to each other; `docstrings`: what they say of a
function's arguments and of its result; `attach`: the statements that a comment may be about;
`meant`: the one that is; `rows`: rows of shapes, and headings.
"""
