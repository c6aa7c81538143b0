"""What is made beside the way to the result, and where it comes in: a penalty that is taken away.

A sign can be changed where such a tensor is made or where it comes in, and all is right either way.
Where it has the answer's numbers in all places that are not hidden, it is right, and where it comes
in is wrong. Else nobody can tell, and it is noted that both are open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.tracing.alike import HIDDEN, near, plain
from autograder.tracing.first_wrong import Judged
from autograder.tracing.proof.mends import OPPOSITES, ways_to_mend
from autograder.tracing.proof.replay import Bench, Proof
from autograder.tracing.reference import PRODUCTS

WAYS = tuple(words for *_, words in OPPOSITES)  # in which something may come in


def where_they_meet(bench: Bench, numbers: Sequence[int]) -> int | None:
    """Of steps each of which could be changed to make all right, the one at which what was made
    beside the way comes in; None where it is another's affair, or open."""
    judged = bench.judged
    beside = [i for i in numbers if not _on_the_way(bench, i)]
    main = [i for i in numbers if i not in beside]
    if not beside or not main or not bench.one_statement(main):
        return None
    if _is_right_where_it_counts(judged, judged.steps[max(beside)].value):
        return min(main)
    judged.work.open |= {*beside}
    return None


def is_open(bench: Bench, pivot: Proof) -> bool:
    """Whether what is wrong with a step made beside the way may as well be how it comes in."""
    judged = bench.judged
    if not pivot.all_right or _on_the_way(bench, pivot.number):
        return False
    for user in _comes_in(bench, pivot.number):
        if bench.one_statement((user, pivot.number)):
            continue
        for mend in ways_to_mend(judged, bench.replay, (user,)):
            if mend.words in WAYS:
                outcome = bench.outcome(mend.values, mend.calls)
                if outcome is not None and outcome[1]:
                    judged.work.open |= {*pivot.suspects, pivot.number}
                    return True
    return False


def where_it_comes_in(bench: Bench, pivot: Proof) -> Proof | None:
    """The one step at which what was made beside the way comes in, where a sign there has the same
    effect as what a right tensor has in its place, and something else is wrong behind it."""
    judged = bench.judged
    if pivot.all_right or _on_the_way(bench, pivot.number):
        return None
    users = _comes_in(bench, pivot.number)
    for mend in ways_to_mend(judged, bench.replay, tuple(users)) if len(users) == 1 else ():
        outcome = bench.outcome(mend.values, mend.calls) if mend.words in WAYS else None
        if outcome is None or users[0] not in outcome[0]:
            continue
        one, two = outcome[0][users[0]], pivot.trace.steps[users[0]].value
        seen = visible(judged, two)
        if seen is not None and near(plain(one[..., seen]), plain(two[..., seen])):
            words = f"{mend.words}, or made with the other sign"
            own = replace(pivot, number=users[0], suspects=(users[0],), should=None, mend=words)
            return own
    return None


def visible(judged: Judged, value: torch.Tensor) -> torch.Tensor | None:
    """The places of a table that the answer hides nowhere; None where it hides none."""
    known = [shape for known in judged.own.known for shape in known.shapes]
    shapes = [t for t in known if t.dim() > 1 and t.shape[-2:] == value.shape[-2:]]
    hidden = [_hidden(t) for t in shapes]
    return next((~each for each in hidden if each.any()), None)


def _comes_in(bench: Bench, number: int) -> list[int]:
    """The steps at which what was made beside the way comes in."""
    found, seen, left = [], set(), [number]
    while left:
        for user in bench.judged.users[left.pop()]:
            if user not in seen:
                seen.add(user)
                (found if _on_the_way(bench, user) else left).append(user)
    return found


def _on_the_way(bench: Bench, number: int) -> bool:
    """Whether a step was made of a product that the answer has."""
    judged = bench.judged
    before = bench.ancestors(judged.steps[number].inputs)
    return any(i in judged.like and judged.steps[i].op in PRODUCTS for i in before)


def is_right_but_for_its_sign(judged: Judged, number: int) -> bool:
    """Whether a step has the numbers of a right tensor, or the same with the other sign, in all
    places that are not hidden."""
    value = judged.steps[number].value
    return any(_is_right_where_it_counts(judged, v) for v in (value, -value))


def _is_right_where_it_counts(judged: Judged, value: torch.Tensor) -> bool:
    """Whether a tensor has the numbers of a right one in all places that are not hidden."""
    if value.dim() < 2:
        return False
    shapes = [shape for known in judged.own.known for shape in known.shapes]
    places = visible(judged, value)
    if places is None or places.sum() < 2:
        return False
    one = value.squeeze()
    if one.shape[-2:] != places.shape:
        return False
    there = plain(one[..., places])
    alike = (t.squeeze() for t in shapes if t.squeeze().shape == one.shape)
    return any(near(there, plain(other[..., places])) for other in alike)


def _hidden(scores: torch.Tensor) -> torch.Tensor:
    """The places that are hidden in all of them."""
    return (plain(scores) == HIDDEN).reshape(-1, *scores.shape[-2:]).all(0)
