"""The first wrong line in words: what was right before it, and how it differs. No expected value.

Lines and statements are those of the student's cell. A landmark is called by the name that it has
in the course's own answer; one without a name is not called anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.course.asking import Finding, Where, is_plural
from autograder.course.steps.traces import LEAF, Trace
from autograder.tracing.alike import Known, near, plain
from autograder.tracing.differs import (
    OTHER_ZEROS,
    ZEROS,
    differs,
    has_nan,
    moved,
    of_below_zero,
    sums,
)
from autograder.tracing.first_wrong import COPIES, LAYOUT, PARTS, Judged
from autograder.tracing.names import Slip
from autograder.tracing.proof.standing import (
    FACTORS,
    FILLS,
    changes_nothing,
    divides_by_its_sums,
    factor_of,
    is_laid_out_so,
)
from autograder.tracing.reference import PRODUCTS, multiple
from autograder.tracing.text import Text

ANOTHER_TENSOR = "another tensor is taken than the one that belongs there"
MISSING = "a step is missing before what is returned"
IN_ORDER = "Mend them in this order."  # of two things on one line
NO_CAUSE = "what it gives is not right"  # of a line, where no more is known
RANDOM = ("rand", "rand_like", "randn", "bernoulli", "uniform", "dropout", "multinomial")
NOWHERE: tuple[int, int | None, str] = (-1, None, "")
REDUCES = ("amax", "max", "amin", "min", "mean", "norm", "logsumexp", "std", "var")
IN_FULL = {"out": "output", "outs": "outputs", "probs": "probabilities", "var": "variances"}
IN_FULL |= {"cos": "cosines", "sin": "sines", "grad": "gradient"}
CHANCE = (OTHER_ZEROS, ZEROS)


def called(known: Known | None) -> str:
    """A landmark in words: `the scaled scores`; '' where it has no name."""
    if known is None or not known.name:
        return ""
    first, *rest = (IN_FULL.get(word, word) for word in known.name.strip("_").split("_"))
    if first == "gradient" and rest:
        what = " ".join(rest)
        return f"the gradient of {what if len(what) == 1 else f'the {what}'}"
    return " ".join(("the", first, *rest))


def where(slip: Slip, text: Text, as_it_ran: Trace | None = None) -> Where | None:
    """What a finding says of the first wrong line; None where the text does not show it.

    as_it_ran: the steps with nothing mended, where the slip is one of others that are.
    """
    judged = slip.judged
    first = slip.line or text.line(judged.steps[slip.number])
    if first is None:
        return None
    if _hides_nothing(judged, slip.number):
        return Where(None, first, how="it hides nothing")
    last, line, landmark = _last_right(judged, slip, text) if slip.line is None else NOWHERE
    if line is not None and line != first and (wrong := _wrong_there(judged, line, text)):
        if any(judged.steps[i].spot == judged.steps[last].spot for i in wrong):
            return Where(last_right=None, first_wrong=line)  # right in this round of a loop alone
        line, landmark = None, ""
    own = [judged.like[i].known for i in (last, slip.number) if i in judged.like]
    if line == first and len(own) == 2 and own[0] is own[1]:
        line, landmark = None, ""  # what the line spoils is not right on its way
    how = _how(judged, slip, as_it_ran or judged.trace)
    words = how, slip.words, _hidden_afterwards(slip, text)
    how = "; ".join(dict.fromkeys(filter(None, words)))
    return Where(line, first, landmark, how)


def _hides_nothing(judged: Judged, number: int) -> bool:
    """Whether a step that hides has the same numbers as what it was made of."""
    return judged.steps[number].op.strip("_") in FILLS and changes_nothing(judged, number)


def _wrong_there(judged: Judged, line: int, text: Text) -> list[int]:
    """The steps of a line that are wrong although all that they were made of is right."""
    return [i for i in judged.frontier() if text.line(judged.steps[i]) == line]


def _last_right(judged: Judged, slip: Slip, text: Text) -> tuple[int, int | None, str]:
    """The last right step that the wrong one was made of, its line, and what it gives."""
    best = NOWHERE
    left, seen = list(judged.steps[slip.number].inputs), set()
    while left:
        number = left.pop()
        if number in seen:
            continue
        seen.add(number)
        step = judged.steps[number]
        if number in judged.bad:
            left += step.inputs
            continue
        found, line = judged.like.get(number), text.line(step)
        turned = found is not None and _last_two(found.order) and not is_laid_out_so(found, step)
        if step.op == LEAF or line is None or number not in judged.right or turned:
            left += step.inputs
            continue
        if found is None or step.op in LAYOUT:
            left += step.inputs
        if number > best[0] and (found is not None or best[1] is None):
            best = (number, line, called(found.known if found else None))
    return best


def sentence(how: str) -> str:
    """How a line goes wrong, as a sentence of its own."""
    return f"{how[:1].upper()}{how[1:]}."


def listed(parts: Sequence[tuple[int, str]]) -> str:
    """What is wrong, line by line in the order given, and what to mend first."""
    said = [f"Line {line}: {words}" for line, words in parts]
    first, last = parts[0][0], parts[-1][0]
    return " ".join([*said, *([mend_first(first)] if first != last else [])])


def mend_first(line: int) -> str:
    return f"Mend line {line} first."


def as_it_was(judged: Judged, number: int) -> str:
    """That an operation of right tensors, no change of layout, gives one of them, or nothing."""
    step = judged.steps[number]
    own = [judged.like.get(i) for i in step.inputs]
    if step.op in (LEAF, *LAYOUT, *PARTS, *COPIES) or len(own) < 2:
        return ""
    right = all(found is not None and found.whole and found.in_order for found in own)
    return "it gives one of the tensors that went in as it was" if right else ""


def one_place(line: int, loop: int, place: str) -> tuple[str, str]:
    """That all rounds of a loop write to one place: how the line goes wrong, and a sentence."""
    how = f"each round of line {loop} writes to the same place, `{place}`"
    return how, f"Line {line}: {how[:1].upper()}{how[1:]}: only the last is left."


def keeps(finding: Finding, text: Text, line: int, name: str, changed: int) -> Finding:
    """A finding of a function with an argument that keeps what earlier calls put into it."""
    said = (
        f"What `{name}` is by default is made once, in line {line}, and not in each call: what "
        f"line {changed} puts into it is still there in the next call."
    )
    where = Where(None, line, how=f"`{name}` keeps what earlier calls put into it")
    message = f"{finding.message} {said}"
    statement = text.statement(line)
    return replace(finding, message=message, line=line, statement=statement, where=where)


# --- how a step differs --------------------------------------------------------------------------
def taken_for_another(slip: Slip) -> str:
    """That a line takes one right tensor for another, in a sentence, where it takes it as it is: no
    layer made it there, and no step is left out between the two. '' where it does not, or where
    the two have no names of their own."""
    judged, instead = slip.judged, slip.wrong.instead
    if instead is None or slip.line is not None or slip.number in judged.like:
        return ""  # the line told is another, or makes it
    if judged.own.comes_of(*instead[::-1]):
        return ""
    words = _taken(*instead)
    return f"{words[:1].upper()}{words[1:]}." if words and slip.wrong.maker is None else ""


def _taken(one: Known, other: Known) -> str:
    """That one landmark is taken for another, where they have names of their own."""
    taken, wanted = called(one), called(other)
    if not taken or not wanted or taken == wanted:
        return ""
    are, belong = "are" if is_plural(taken) else "is", "belong" if is_plural(wanted) else "belongs"
    return f"{taken} {are} taken where {wanted} {belong}"


def _how(judged: Judged, slip: Slip, as_it_ran: Trace) -> str:
    step = judged.steps[slip.number]
    if slip.wrong.instead is not None:
        words = _taken(*slip.wrong.instead)
        if words:
            return words
        if not slip.mend or len({*map(called, slip.wrong.instead), ""}) == 2:
            return ANOTHER_TENSOR
    if judged.weighs_alike(slip.number):
        what = "the softmax runs" if step.op == "softmax" else "the sums run"
        return f"{what} over an axis of size 1, so that each weight is 1"
    if slip.mend:
        return slip.mend
    found = judged.like.get(slip.number)
    if slip.number not in judged.bad and found is not None and found.turned:
        if step.op == "softmax" or divides_by_its_sums(step):
            return sums(step.value)
        if _last_two(found.order):
            return "its last two axes are exchanged"
        return "its axes are in another order than they are used in"
    right = _right_ones(judged, slip)
    if found is not None and not found.in_order:
        said = {moved(plain(one), plain(two)) for one, two in right}
        if len(said) == 1 and "" not in said:
            return said.pop()
        axes = ": axes are mixed" if step.op in LAYOUT else ""
        return f"the right numbers come to stand in the wrong places{axes}"
    new_nan = int(as_it_ran.steps[slip.number].value.isnan().sum())
    if new_nan and step.value.isnan().any():
        words = (
            has_nan(as_it_ran.steps[slip.number].value, new_nan),
            _why_nan(as_it_ran, slip.number),
        )
        return "; ".join(filter(None, words))
    if step.op == "softmax" and sums(step.value):
        return sums(step.value)
    weights = bool(right) and all(_rows_sum_to_one(two) for _, two in right)
    if weights and step.op.strip("_") in FACTORS and not _rows_sum_to_one(step.value):
        return sums(step.value)
    if step.op in REDUCES and slip.mended is not None and right and step.inputs:
        sums_there = slip.mended.steps[step.inputs[0]].value.sum(-1)
        if all(
            t.numel() == sums_there.numel() and near(t.flatten(), sums_there.flatten())
            for _, t in right
        ):
            return f"`{step.op}` stands where the sum of each row belongs"
    factor = factor_of(judged, slip.number)
    if factor is not None and abs(factor + 1) < 1e-3:
        return ""  # a minus sign that no replay proves wrong: a later step may take it back
    said = {differs(one, two) for one, two in right}
    if step.op.strip("_") in ("div", "truediv", *PRODUCTS):  # what they give is hidden behind them
        said = {words for words in said if "not hidden" not in words}
    if slip.mended is None and factor is not None:  # the answer may make another step of it
        said = {words for words in said if "by a factor of" in words}
    if len(said) == 1 and not said & {"", *(CHANCE if _by_chance(judged, slip.number) else ())}:
        words = said.pop()
        added = "not hidden" in words and _adds_zeros_and_ones(judged, slip.number)
        if "by a factor of" in words and factor is not None and is_root(factor):
            return f"{words}; {_times(factor)}"
        if slip.last and (before := _of_another_size(judged, slip)):
            words = f"{words}; {before}"
        return f"{words}: zeros and ones are added, and minus infinity hides" if added else words
    if step.op in PARTS and slip.mended is not None and _lie_in(judged, slip.number, right):
        return "other places are taken out than should be"
    if step.op in PRODUCTS and _stand_otherwise(judged, slip.number):
        return "its operands have their first axes in another order than the product needs"
    return _times(factor) if factor is not None else ""


def _why_nan(trace: Trace, number: int) -> str:
    """Which operation of numbers below zero made the first NaN that went into a step."""
    while True:
        step = trace.steps[number]
        before = next((i for i in step.inputs if trace.steps[i].value.isnan().any()), None)
        if before is None:
            break
        number = before
    return (
        of_below_zero(step.op, trace.steps[step.inputs[0]].value, step.value) if step.inputs else ""
    )


def _rows_sum_to_one(value: torch.Tensor) -> bool:
    """Whether the numbers along the last axis sum to 1 everywhere: weights."""
    return value.dim() > 1 and bool((value.sum(-1) - 1).abs().max() < 1e-4)


def _stand_otherwise(judged: Judged, number: int) -> bool:
    """Whether a product is made of what the answer's is made of, with other axes in front."""
    own = judged.own
    made = own.makes(judged.places(number))
    there = [i for i, known in own.of_step.items() if known is made]
    if not there or own.trace.steps[there[0]].op not in PRODUCTS:
        return False
    fronts = [judged.steps[i].value.shape[:-2] for i in judged.steps[number].inputs]
    asked = [own.trace.steps[i].value.shape[:-2] for i in own.trace.steps[there[0]].inputs]
    same_length = len({len(front) for front in (*fronts, *asked)}) == 1
    return same_length and not {*fronts} & {*asked}


def _hidden_afterwards(slip: Slip, text: Text) -> str:
    """That a softmax saw what should be hidden, and a later line hides it in what that gave."""
    judged, number = slip.judged, slip.number
    if not slip.last or slip.mended is None or judged.steps[number].op != "softmax":
        return ""
    value, right = judged.steps[number].value, slip.mended.steps[number].value
    if right.shape != value.shape or not (right == 0).any() or (value == 0).any():
        return ""
    for user in judged.users[number]:
        after, line = judged.steps[user].value, text.line(judged.steps[user])
        hides = after.shape == value.shape and torch.equal(after == 0, right == 0)
        if hides and line is not None and near(after[right != 0], value[right != 0]):
            return f"it sees what should be hidden, which line {line} hides only afterwards"
    return ""


def _of_another_size(judged: Judged, slip: Slip) -> str:
    """How what a step was made of stands to what the answer makes it of, where it is that times a
    number, and all is right once the step gives what it should."""
    own, should = judged.own, slip.wrong.should
    if should is None or any(should is known for known in own.also):
        return ""  # a later line brings it to its size
    if own.of_step.get(should.place) is not should:
        return ""  # it is of another program
    inputs = own.trace.steps[should.place].inputs
    asked = [own.of_step[i] for i in inputs if i in own.of_step]
    for number in judged.steps[slip.number].inputs:
        found = judged.like.get(number)
        if found is None or not (found.whole and found.in_order):
            continue
        if any(found.known is known for known in asked):
            continue
        for known in asked:
            if known.value.shape == found.known.value.shape and own.comes_of(known, found.known):
                factor = multiple(found.known.value, known.value)
                if factor is not None and factor > 0:
                    size = (
                        f"small by a factor of {1 / factor:.3g}"
                        if factor < 1
                        else f"large by a factor of {factor:.3g}"
                    )
                    return f"and what comes in is too {size}"
    return ""


def is_root(factor: float) -> bool:
    """Whether a factor is one over the root of a whole number that is no square."""
    size = factor**-2
    return size > 1.5 and abs(size - round(size)) < 1e-3 and round(size**0.5) ** 2 != round(size)


def _times(factor: float) -> str:
    """A factor in words: as one over the root of a whole number where it is one. Nothing of one
    that no size gives: it may be a value of the right answer, such as a weight."""
    if is_root(factor):
        return f"it divides by the root of {round(factor**-2)}"
    powers = (factor, 1 / factor, factor**2, factor**-2) if factor else ()
    if not any(abs(p - round(p)) < 1e-3 and round(p) for p in powers):
        return ""
    return f"it multiplies by {factor:.3g}"


def _adds_zeros_and_ones(judged: Judged, number: int) -> bool:
    """Whether a step adds, or takes away, a table of zeros and ones."""
    step = judged.steps[number]
    if step.op.strip("_") not in ("add", "radd", "iadd", "sub", "isub"):
        return False
    values = [judged.steps[i].value for i in step.inputs]
    return any(v.dim() > 1 and set(v.unique().tolist()) == {0.0, 1.0} for v in values)


def _lie_in(judged: Judged, number: int, right: list) -> bool:
    """Whether what belongs in the place of a part lies in what the part was taken from."""
    inputs = judged.steps[number].inputs
    if len(inputs) != 1 or not right:
        return False
    there = plain(judged.steps[inputs[0]].value).flatten().sort().values
    for _, wanted in right:
        one = plain(wanted).flatten()
        at = torch.searchsorted(there, one).clamp(1, len(there) - 1) if len(there) > 1 else None
        if at is None:
            return False
        apart = torch.minimum((there[at] - one).abs(), (there[at - 1] - one).abs())
        if apart.max() > 1e-5 * there.abs().max():
            return False
    return True


def _by_chance(judged: Judged, number: int) -> bool:
    """Whether random numbers went into a step: its zeros stand anywhere."""
    left, seen = [number], set()
    while left:
        each = left.pop()
        if each not in seen:
            seen.add(each)
            left += judged.steps[each].inputs
    return any(judged.steps[i].op.strip("_") in RANDOM for i in seen)


def _right_ones(judged: Judged, slip: Slip) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What a line gave, in each round of a loop, and what belongs there, where that is known."""
    step, should, mended = judged.steps[slip.number], slip.wrong.should, slip.mended
    if mended is not None:
        rounds = [i for i, s in enumerate(judged.steps) if s.spot == step.spot]
        pairs = [(judged.steps[i].value, mended.steps[i].value) for i in rounds or [slip.number]]
        pairs = [(one, two) for one, two in pairs if one.shape == two.shape]
        pairs = [(one, two) for one, two in pairs if not torch.equal(one, two)]
        if pairs:
            return pairs
    known = should.shapes if should is not None else []
    return [(step.value, v) for v in known if v.shape == step.value.shape][:1]


def _last_two(order: tuple[int, ...] | None) -> bool:
    return bool(order) and len(order) > 1 and order[-2] > order[-1] == sorted(order)[-2]
