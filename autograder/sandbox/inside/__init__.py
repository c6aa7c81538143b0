"""The part of the sandbox that runs beside untrusted code.

The warm process puts this folder on its path and imports these files by their plain names, so that
nothing else of the package is ever loaded there. Only `sandbox_wire` is also used outside.
"""
