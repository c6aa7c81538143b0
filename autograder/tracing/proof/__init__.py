"""Proof that a step is the wrong one: with something else in its place, what follows is right.

`replay`: recorded steps made again, with `operations`, those that may be made. `fillings`: right
tensors in the place of a step; `mends`: its operation made in another way. `repair`: the step that
is to blame, with `standing`, how it stands to the answer's tensors; `pairs`: several at once;
`handed`: what a function is given too early, or gives back in another order; `exchanges`: tensors
that change places; `meeting`: what comes in beside the way; `cuts`: axes that are cut or merged
otherwise; `across`: items of a batch that meet one another; `around_softmax`: what hides on the
wrong side of it; `as_known`: the step at which a known mistake's own program makes it; `made`: the
line that made the number, the mask or the part which a wrong line takes.
Touches no file and starts no process.
"""
