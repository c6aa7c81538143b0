"""All of ours that runs beside untrusted code; the standard library and torch only.

The warm process puts this folder on its path and imports these files by their plain names, so that
nothing else of the package is ever loaded there. `stand_in/` holds what a student's cell gets for
`import autograder`. Outside, `sandbox_wire` frames what crosses the wall, and in a student's own
notebook `runner` calls the functions in place.
"""
