"""All that is asked for is right, and the `return` gives it in another order."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.course.steps.traces import Step
from autograder.tracing.binding import names_in_a_row
from autograder.tracing.first_wrong import Judged
from autograder.tracing.text import Text, means


def reordered_by_the_return(judged: Judged, text: Text) -> int | None:
    """The line of the `return` that gives right tensors in another order than they are asked for;
    None where they are not right, or may have got each other's names before."""
    steps, back, own = judged.steps, judged.trace.returned, judged.own
    wanted = [own.of_step[i] for i in own.trace.returned if i in own.of_step]
    if any(i >= len(steps) for i in back) or len({*back}) != len(own.trace.returned):
        return None
    like = [judged.like.get(i) for i in back]
    if not all(f is not None and f.whole and f.in_order for f in like):
        return None
    found, asked = [f.known.place for f in like], [known.place for known in wanted]
    if found == asked or sorted(found) != sorted(asked):
        return None
    line = text.line(steps[max(back)])
    last = text.return_after(line) if line is not None else None
    node = text.around(last) if last is not None else None
    if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple | ast.List):
        return None
    own_steps = [steps[i] for i in back]
    if all(text.line(step) == node.lineno for step in own_steps):
        return node.lineno  # they are made where they are returned
    if names_in_a_row(node.value) != [text.target(step) or None for step in own_steps]:
        return None
    made = [judged.like[i].known.place for i in sorted(back)]
    straight, crosswise = _by_their_names(text, own_steps)
    in_order = made == asked and not crosswise
    return node.lineno if straight or in_order else None


def _by_their_names(text: Text, steps: Sequence[Step]) -> tuple[bool, bool]:
    """Whether each variable is called by a word in what it is made of (`k = x @ w_key`), and none
    by a word in what another one is made of; and whether some are called by those alone."""
    names = [text.target(step) for step in steps]
    words = [{w for n in text.names_at(s) for w in n.lower().split("_") if w} for s in steps]
    shared = set.intersection(*words)

    def any_means(name: str, own: set[str]) -> bool:
        return any(means(name, word) for word in own - shared)

    own = [any_means(name, own) for name, own in zip(names, words, strict=True)]
    others = [
        any(any_means(name, w) for other, w in enumerate(words) if other != number)
        for number, name in enumerate(names)
    ]
    crosswise = any(b and not a for a, b in zip(own, others, strict=True))
    return all(own) and not any(others), crosswise
