"""Proof that a step is the wrong one: with something else in its place, what follows is right.

`replay`: recorded steps made again, with `operations`, those that may be made. `mends`: what may
mend a step, by a right tensor in its place or by its operation made in another way. `repair`: the
step that is to blame; `pairs`: several at once. Touches no file and starts no process.
"""
