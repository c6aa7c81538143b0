"""A known mistake that explains what is wrong, though something else of the result differs from it.

Who makes a mistake in one of two results, or in the last rows only, or makes two mistakes in two
results, gives nowhere just what the wrong program gives; but what is wrong is wrong in its way.
And who makes a known mistake and forgets a factor gives the wrong program's numbers times it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from autograder.course.asking import Sight
from autograder.course.general.altered import ALTERED, BEGINS
from autograder.course.general.exchanged import EXCHANGED
from autograder.course.sketch import Sketch
from autograder.judging.relations import two
from autograder.judging.relations.parts import Part, in_one_part, parts_of
from autograder.judging.relations.two import FEW, TOLERANCE, Named, largest, same

MANY = 24  # wrong numbers in some places, which no accident gives
PART = "This is wrong, and it is not all: "
IN_PLACES = "Wherever it is wrong, it is wrong in this way: "
DIFFERENT = 3  # numbers that are not equal: of fewer, a mistake may fit by accident


def partly(sight: Sight) -> Named | None:
    """What a known mistake says of a result that is not just its own; None for nothing."""
    found = in_one_part(sight)
    if found is not None:
        return found
    seen = []
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        pairs = None if got.error or expected.error else parts_of(got.value, expected.value)
        if pairs is None or any(g.shape != e.shape or g.dtype != e.dtype for _, g, e in pairs):
            return None
        seen.append(pairs)
    return in_each_part(sight, seen) or in_places(sight, seen) or beside(sight, seen)


def of_author(sight: Sight) -> Named | None:
    """The mistake that somebody wrote down, where it explains the one result that is wrong."""
    own = [m for m in sight.mistakes if not m[0].startswith((EXCHANGED, ALTERED))]
    return in_one_part(replace(sight, mistakes=own))


def _single(sight: Sight) -> Iterator[tuple[str, str, Sequence]]:
    return (m for m in sight.mistakes if " + " not in m[0])


def _plain(check: str, message: str) -> str:
    return message.removeprefix(BEGINS) if check.startswith(ALTERED) else message


# --- several results, each wrong in a way of its own ---------------------------------------------
def in_each_part(sight: Sight, seen: Sequence[Sequence[Part]]) -> Named | None:
    """A mistake for each of the results that are wrong, or for some of them."""
    rtol, count = sight.exercise.rtol, len(seen[0])
    if count < 2 or len({len(pairs) for pairs in seen}) > 1:
        return None
    wrong = [n for n in range(count) if not all(same(*p[n][1:], rtol=rtol) for p in seen)]
    told: dict[int, tuple[str, str]] = {}
    for place in wrong if len(wrong) > 1 else ():
        if sum(pairs[place][1].numel() for pairs in seen) < FEW:
            continue
        for check, message, outcomes in _single(sight):
            if _gives_part(outcomes, seen, sight.expected, place, rtol):
                told[place] = check, _plain(check, message)
                break
    if not told:
        return None
    said = [f"{seen[0][n][0][:1].upper()}{seen[0][n][0][1:]}: {told[n][1]}" for n in told]
    others = [seen[0][n][0] for n in wrong if n not in told]
    if others:
        said.append(f"Wrong in another way: {', '.join(others)}.")
    return " + ".join(dict.fromkeys(check for check, _ in told.values())), " ".join(said)


def _gives_part(outcomes, seen, expected, place: int, rtol: float) -> bool:
    for pairs, other, right in zip(seen, outcomes, expected, strict=True):
        theirs = None if other.error else parts_of(other.value, right.value)
        if theirs is None or len(theirs) != len(pairs):
            return False
        if not same(pairs[place][1], theirs[place][1], rtol=rtol):
            return False
    return True


# --- some places of a result ---------------------------------------------------------------------
def in_places(sight: Sight, seen: Sequence[Sequence[Part]]) -> Named | None:
    """The mistake that gives just what came back wherever that is wrong.

    Where the mistake gives NaN, nothing can be compared.
    """
    wrong = [[_differ(g, e) for _, g, e in pairs] for pairs in seen]
    numbers = [g[w] for pairs, each in zip(seen, wrong, strict=True)
               for (_, g, _), w in zip(pairs, each, strict=True) if w is not None]  # fmt: skip
    if any(w is None for each in wrong for w in each):
        return None
    told = torch.cat([n.flatten() for n in numbers]) if numbers else torch.zeros(0)
    told = told[told.isfinite()]
    if len(told) < FEW or len(told.unique()) < DIFFERENT:
        return None
    enough = len(told) >= MANY and len(told.unique()) >= MANY // 2
    for check, message, outcomes in _single(sight):
        if check.startswith((EXCHANGED, ALTERED)) and not enough:
            break  # of hundreds of them one would give a few of the numbers by accident
        whole = _gives_places(outcomes, seen, wrong, sight.expected)
        if whole is not None:
            begin = "" if whole else IN_PLACES
            begin = PART if _is_more(outcomes, seen, wrong, sight.expected) else begin
            return check, f"{begin}{_plain(check, message)}" if begin else message
    return None


def _differ(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor | None:
    """The places that are wrong; None for truth values, of which too little can be told."""
    if got.dtype == torch.bool:
        return None if not torch.equal(got, expected) else torch.zeros_like(got)
    allowed = TOLERANCE * max(largest(expected), 1e-9)
    return (
        ~((got - expected).abs() <= allowed)
        & ~(got == expected)
        & ~(got.isnan() & expected.isnan())
    )


def _gives_places(outcomes, seen, wrong, expected) -> bool | None:
    """Whether a mistake gives what is wrong: True where it gives all the rest, too."""
    compared, skipped, whole = 0, 0, True
    for pairs, places, other, right in zip(seen, wrong, outcomes, expected, strict=True):
        if isinstance(other.value, Sketch):  # of a hand-out, in which the first call tells
            continue
        theirs = None if other.error else parts_of(other.value, right.value)
        if theirs is None or len(theirs) != len(pairs):
            return None
        for (_, got, _), place, (_, other_got, _) in zip(pairs, places, theirs, strict=True):
            if other_got.shape != got.shape or other_got.dtype != got.dtype:
                return None
            if got.dtype == torch.bool:
                continue
            there = place & ~other_got.isnan()
            allowed = TOLERANCE * max(largest(got), 1e-9)  # the mistake may be huge elsewhere
            fits = ((got - other_got).abs() <= allowed) | (got == other_got)
            if not fits[there].all():
                return None
            compared += int(there.sum())
            skipped += int(place.sum() - there.sum())
            whole = whole and bool(fits[~other_got.isnan()].all())
    return whole if compared >= FEW and compared > skipped else None


def _is_more(outcomes, seen, wrong, expected) -> bool:
    """Whether numbers are wrong in places where a mistake gives NaN: what makes those is more."""
    for pairs, places, other, right in zip(seen, wrong, outcomes, expected, strict=True):
        theirs = None
        if not isinstance(other.value, Sketch):
            theirs = parts_of(other.value, right.value)
        for (_, got, _), place, (_, lost, _) in zip(pairs, places, theirs or (), strict=False):
            if lost.dtype != torch.bool and (got[place & lost.isnan()].nan_to_num() != 0).any():
                return True
    return False


# --- a mistake and something beside it -----------------------------------------------------------
def beside(sight: Sight, seen: Sequence[Sequence[Part]]) -> Named | None:
    """A mistake whose numbers came back times one factor, transposed, or with the other sign."""
    if any(len(pairs) != 1 for pairs in seen):
        return None
    wrong = [n for n, pairs in enumerate(seen) if _is_wrong(pairs)]
    for check, message, outcomes in _single(sight):
        if check.startswith((EXCHANGED, ALTERED)):  # of so many one would fit by accident
            break
        told: dict[str, str] | None = None
        for place in wrong:
            if _is_all(seen[place][0], outcomes[place], sight.expected[place]):
                continue
            found = dict(_relations(seen[place][0], outcomes[place], sight.expected[place]))
            told = found if told is None else _in_both(told, found)
            if not told:
                break
        if told:
            name, said = next(iter(told.items()))
            return f"{check} + {name}", f"Two things at once. {message} And beside that: {said}"
    return None


def _is_all(part: Part, other, right) -> bool:
    """Whether in this call a mistake's own numbers came back: what is beside it does not show."""
    theirs = None if other.error else parts_of(other.value, right.value)
    return bool(theirs) and len(theirs) == 1 and same(part[1], theirs[0][1])


def _in_both(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """The relations that hold in two calls; of a factor that is another in each no number."""
    every = "In each call the numbers are what that gives times one factor."
    return {n: s if s == other[n] else every for n, s in one.items() if n in other}


def _is_wrong(pairs: Sequence[Part]) -> bool:
    ((_, got, expected),) = pairs
    return not same(got, expected)


def _relations(part: Part, other, right) -> Iterator[Named]:
    """How what came back stands to what a mistake gives."""
    theirs = None if other.error else parts_of(other.value, right.value)
    if theirs is None or len(theirs) != 1 or not isinstance(right.value, torch.Tensor):
        return
    got, wrong = part[1], theirs[0][1]
    if got.shape != wrong.shape or got.dtype == torch.bool or wrong.dtype == torch.bool:
        return
    if same(wrong, right.value.double()):  # a mistake of another kind, such as a tensor too large
        return
    if not two.tells(wrong) or not two.finite(got, wrong) or not got.any():
        return
    for name, said in two.scaled(got, wrong):
        if name in ("result.sign", "result.factor"):
            told = said.replace("the right one", "what that gives")
            yield name, told.replace("The numbers are right, but each has", "each number has")
    for name, said in two.transposed(got, wrong):
        yield name, said.replace("The numbers are right, but the", "the")
