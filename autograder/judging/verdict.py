"""What is found in an answer: its outcomes against what should come back and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from autograder.course.answers import Answers
from autograder.course.asking import Exercise, Finding, Sight
from autograder.course.calls import Call, Outcome
from autograder.course.general.altered import ALTERED, BEGINS
from autograder.judging import renamed
from autograder.judging.compare import failures, judge
from autograder.judging.difference import is_nameless, matches
from autograder.judging.look_again import look_again
from autograder.judging.relations.parts import is_one_number


def right(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
    source: str,
) -> bool:
    """Whether there is nothing to find in these outcomes of this source."""
    if _is_right(exercise, calls, outcomes, known, source):
        return True
    if _by_lost_layers(exercise, calls, outcomes, known, source):
        return False
    # A judge of its own may need the known mistakes to tell whose fault it is.
    return exercise.judge is not None and not _found(exercise, calls, outcomes, known, source)


def _is_right(exercise, calls, outcomes, known: Answers, source: str) -> bool:
    """Whether they are right, whatever mistakes there are."""
    sight = _nameless(exercise, calls, outcomes, known, source)
    return not failures(sight) and not judge(sight)  # words are for what is wrong


def _nameless(exercise, calls, outcomes, known: Answers, source: str) -> Sight:
    """What was seen, without the known mistakes, which are thousands of programs to run."""
    asked, came = tuple(calls), tuple(outcomes)
    return Sight(exercise, asked, came, known.expected, (), source, known.stages)


def _by_lost_layers(exercise, calls, outcomes, known: Answers, source: str) -> bool:
    """Whether it is wrong as its layers stand, and weights of layers found no place.

    No known mistake has these values then: first it is looked at with right layers.
    """
    lost = {name.rpartition(".")[0] for outcome in outcomes for name in outcome.unset}
    if not lost or not lost.issubset(exercise.layers):
        return False
    return bool(judge(_nameless(exercise, calls, outcomes, known, source)))


def _found(exercise, calls, outcomes, known: Answers, source: str) -> list[Finding]:
    """What is found in these outcomes alone."""
    if _is_right(exercise, calls, outcomes, known, source):
        return []  # nobody has to know which mistakes it might have had
    asked, came = tuple(calls), tuple(outcomes)
    if is_one_number(came, known.expected):
        mistakes = known.mistakes
    else:
        mistakes = (*_single(known, outcomes), *known.pairs, *known.altered)
    return judge(Sight(exercise, asked, came, known.expected, mistakes, source, known.stages))


def findings(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
    source: str = "",
    ask: Callable[[list[Call]], Sequence[Outcome]] | None = None,
) -> list[Finding]:
    """What is found in these outcomes; empty where all is right.

    known: the answers to these calls. ask: puts other calls to the same answer. It is used where
    the answer's layers are not as they were asked for, to see whether all else is right.
    """
    calls = list(calls)

    def found_in(outcomes: Sequence[Outcome]) -> list[Finding]:
        return _found(exercise, calls, outcomes, known, source)

    def but_for_layers(outcomes: Sequence[Outcome], ask) -> list[Finding]:
        """The same, with the slips in its layers told apart."""
        first = cache(partial(found_in, outcomes))
        lost = _by_lost_layers(exercise, calls, outcomes, known, source)
        if not exercise.layers or not (lost or first()):
            return first()
        return look_again(exercise, calls, outcomes, known.expected, first, ask, found_in)

    if ask is None:
        found = found_in(outcomes)
    else:
        found = renamed.look(exercise, calls, outcomes, known.expected, ask, but_for_layers)
        found = found or but_for_layers(outcomes, ask)
    if not found:
        return []
    if ask is not None and not found[0].mistake:
        found = _at_random(exercise, calls, outcomes, known, found, ask)
        found = _of_other_shapes(exercise, outcomes, known, found)
    names = {check for check, *_ in (*_single(known, outcomes), *known.altered)}
    found = [_with_others(f, exercise, known, outcomes) for f in found]
    return [  # a pair is called by both of its names
        replace(f, mistake=f.check) if names.issuperset(f.check.split(" + ")) else f for f in found
    ]


def _single(known: Answers, outcomes: Sequence[Outcome]) -> tuple:
    """The known mistakes that are one slip, the likeliest first."""
    return (*known.mistakes, *known.fitted(outcomes), *known.exchanged)


def _at_random(
    exercise: Exercise,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    known: Answers,
    found: list[Finding],
    ask: Callable[[list[Call]], Sequence[Outcome]],
) -> list[Finding]:
    """The findings, with a word on dice where the same question gets another answer.

    A call whose right answer is drawn at random has a seed of its own; it is not asked again.
    """
    pairs = zip(calls, outcomes, known.expected, strict=True)
    wrong = [(c, o) for c, o, e in pairs if not o.error and not matches(o, e, exercise.rtol)]
    asked = [(c, o) for c, o in wrong if c.seed is None and c.on is None and not c.train][:1]
    if any(o.unset for o in outcomes):
        return found  # what got no numbers of the check has its own, drawn anew each time
    if not asked or not is_nameless(found[0].check, exercise.task):
        return found
    if found[0].check.endswith(".type"):  # of what cannot be compared nothing shows
        return found
    call, before = asked[0]
    again = ask([replace(call, seed=1)])
    if len(again) != 1 or again[0].error or matches(again[0], before, exercise.rtol):
        return found
    text = (
        f"{found[0].message} Asked the same once more, your code gives another answer: something "
        "in it is drawn at random, such as dropout that is not switched off."
    )
    return [replace(found[0], mistake="result.random", message=text), *found[1:]]


def _of_other_shapes(
    exercise: Exercise, outcomes: Sequence[Outcome], known: Answers, found: list[Finding]
) -> list[Finding]:
    """The findings, with a word on parameters that could not be given the check's numbers."""
    if not is_nameless(found[0].check, exercise.task):
        return found
    for got, wanted in zip(outcomes, known.expected, strict=True):
        for name in got.unset:
            own, right = got.parameters.get(name), wanted.parameters.get(name)
            if own and right and list(own) != list(right):
                text = (
                    f"{found[0].message} `{name}` has shape {list(own)}, expected {list(right)}: "
                    "the numbers that your class was to be tried with do not fit."
                )
                return [replace(found[0], mistake="layer.shape", message=text), *found[1:]]
    return found


def _with_others(
    finding: Finding, exercise: Exercise, known: Answers, outcomes: Sequence[Outcome]
) -> Finding:
    """Where one input was taken for another, or changed: another slip that comes to the same."""
    kind = known.altered if finding.check.startswith(ALTERED) else known.exchanged
    said = {check: message for check, message, _ in kind}
    if finding.check not in said:
        return finding
    same = [
        message
        for _, message, others in kind
        if all(matches(o, w, exercise.rtol) for o, w in zip(outcomes, others, strict=True))
    ]
    first = said[finding.check]
    told = " Or, what comes to the same: ".join(
        [first, *(m.removeprefix(BEGINS) for m in same if m != first)][:2]
    )
    return replace(finding, message=finding.message.replace(first, told, 1))
