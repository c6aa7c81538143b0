"""Many pieces of work on several processes, of this machine or of others.

What the work is, this room does not know: it imports nothing else of the engine. A process that
ends costs nobody anything; the piece that it had is done again.
"""
