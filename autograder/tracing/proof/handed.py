"""Right tensors at the doors of a function: handed to it before a step that belongs in front of the
call, which comes too early then; or handed back in another order than they are asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import torch

from autograder.course.steps.traces import Step
from autograder.tracing.alike import likeness
from autograder.tracing.binding import names_in_a_row
from autograder.tracing.first_wrong import LEAF, Judged
from autograder.tracing.proof.replay import Bench
from autograder.tracing.text import Text, callee, function_around, means

FROM_NUMBERS = ("tensor", "as_tensor", "FloatTensor")
MISSING = "a step is missing before what is handed over here"


def made_of_whole_numbers(judged: Judged, number: int) -> bool:
    """Whether whole numbers or truth values went into a step that the code made of such as were
    given to it, and that go into no step of the answer: they may be what is wrong."""
    steps, asked = judged.steps, judged.own.trace.steps
    used = {i for step in asked if step.kind == "float" for i in step.inputs}
    theirs = [asked[i].value.flatten() for i in used if asked[i].kind != "float"]
    left, seen = list(steps[number].inputs), set()
    while left:
        each = left.pop()
        if each in seen or each in judged.right or steps[each].op == LEAF:
            continue
        seen.add(each)
        step = steps[each]
        own = step.value.flatten()
        if step.kind == "float" or not _of_given_ones(judged, each):
            left += step.inputs
        elif not any(torch.equal(own, t) or torch.equal(1 - own, t) for t in theirs):
            return True
    return False


def _of_given_ones(judged: Judged, number: int) -> bool:
    """Whether a step is made of whole numbers or truth values that were given, and of no others."""
    left, seen = [number], set()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        if judged.steps[each].kind == "float":
            return False
        left += judged.steps[each].inputs
    return any(judged.steps[each].op == LEAF for each in seen)


def may_be_handed_in(judged: Judged, number: int, text: Text, proved: bool) -> bool:
    """Whether what a wrong step is made of may be what is wrong, and not its line: that gives what
    is right in another call of its function; or it makes a tensor of a variable's numbers, or calls
    what was given. proved: whether all is right with the step mended."""
    step, steps = judged.steps[number], judged.steps
    same = [i for i, s in enumerate(steps) if s.spot == step.spot]
    if any(steps[i].outer != step.outer and i in judged.right for i in same):
        return True
    line = text.line(step)
    if line is not None and not proved and _calls_what_was_given(text, line):
        return True
    node = text.around(line) if line is not None and step.op in FROM_NUMBERS else None
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
    made = [n for n in calls if callee(n) == step.op and n.args]
    return bool(made) and all(isinstance(n.args[0], ast.Name) for n in made)


def _calls_what_was_given(text: Text, line: int) -> bool:
    """Whether a line calls what its function was given, as a model: that may be in another state
    than it should be, by a hook."""
    function, node = function_around(text, line), text.around(line)
    given = {a.arg for a in function.args.args} if function is not None else set()
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
    return any(isinstance(n.func, ast.Name) and n.func.id in given for n in calls)


def called_too_early(judged: Judged, number: int, text: Text) -> int | None:
    """The line of the call that handed a wrong step its operand, where the step is right with what
    the answer makes of that operand in its place; in a loop, in every round."""
    step = judged.steps[number]
    handed = []
    for other in judged.steps:
        if other.spot == step.spot:
            own = [n for n in other.inputs if n in judged.like and judged.steps[n].op != LEAF]
            handed += [n for n in own if judged.steps[n].outer == other.outer[1:]]
    if not step.outer or not handed:
        return None
    bench = Bench(judged, judged.until, text)
    for values in _made_of_them(judged, handed):
        outcome = bench.outcome(values)
        if outcome is None:
            continue
        changed = outcome[0].get(number)
        found = likeness(changed.double(), judged.own.right) if changed is not None else None
        if outcome[1] or (found is not None and found.in_order and not found.turned):
            return text.first_line(step.outer[0])
    return None


def _made_of_them(judged: Judged, handed: list[int]) -> Iterator[dict[int, torch.Tensor]]:
    """What the answer makes of one right tensor, in the places of it or of its slices."""
    own, known = judged.own, judged.like[handed[0]].known
    for later in own.known:
        if later is known or later.value.shape != known.value.shape:
            continue
        if not own.comes_of(later, known):
            continue
        values = {}
        for number in handed:
            like, shape = judged.like[number], judged.steps[number].value.shape
            part = later.value
            if not like.whole:
                parts = part.movedim(like.axes, tuple(range(len(like.axes))))
                part = parts.flatten(0, len(like.axes) - 1)[like.index]
            straight = like.known is known and like.order and list(like.order) == sorted(like.order)
            if not straight or part.numel() != shape.numel():
                break
            values[number] = part.reshape(shape)
        else:
            yield values


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
