"""What a finding says where one small change of the program makes all right."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from autograder.course.answers import Answers
from autograder.course.asking import STOPS, Exercise, Finding, Verdict, Where
from autograder.course.general.operations import OPERATION
from autograder.course.steps.traces import LEAF
from autograder.judging.difference import is_nameless
from autograder.judging.look_again import PREFIX
from autograder.tracing.differs import SIGN
from autograder.tracing.edits.beside_a_judge import beside_a_judge
from autograder.tracing.edits.by_keys import at_its_key
from autograder.tracing.edits.by_parts import by_parts
from autograder.tracing.edits.kinds.missing import ANYWHERE
from autograder.tracing.edits.kinds.source import NATURAL, Edit, conditions_of, lines_that_feed
from autograder.tracing.edits.known_pair import of_a_known_pair
from autograder.tracing.edits.left import Again, left_behind, proven_behind
from autograder.tracing.edits.pairs import Mended, Pairs
from autograder.tracing.edits.parts import Parts, at_its_part
from autograder.tracing.edits.returned import (
    at_its_remove,
    at_its_return,
    at_what_it_names,
    beside_a_key,
    the_call_named,
    the_text_named,
)
from autograder.tracing.edits.said_of_two import (
    LINE,
    both,
    one_of_both,
    statement_of,
    where_of,
    with_another,
)
from autograder.tracing.edits.search import Search, is_surer
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.edits.written import at_what_it_wrote
from autograder.tracing.first_wrong import LAYOUT
from autograder.tracing.look import OF_ONE_SIDE, TWO_AT_ONCE, Look
from autograder.tracing.proof.taken_there import line_of_copy, line_of_scores
from autograder.tracing.raised import without_advice
from autograder.tracing.say import CHANCE, NO_CAUSE
from autograder.tracing.text import Text, callee, function_around, functions_around

ANOTHER = "another reason"  # how a mistake is called of which no more is known than where it is not
AFTER = 0.5  # how likely a line is right that is given what is wrong, from 0 to 2
GIVEN = 1.5  # how likely a line is right that gives what was given, from 0 to 2
ERROR = re.compile(r"\(Line \d{1,6}: .*\)$", re.DOTALL)  # how a known mistake's error is told
# How a result differs, without what it looks as if: that is told of numbers alone.
DIFFERS = re.compile(r"(?:The result|Part \d{1,3} of the result)\b[^.]*\.")
# What is told of an earlier line than the one that stops with an error.
BEFORE = re.compile(
    r"^Line \d{1,6} goes wrong before: .*?(?=Line \d{1,6}: \w{1,40}Error)", re.DOTALL
)
UNSET = re.compile(r"Line \d{1,6}: (?:NameError|UnboundLocalError)[^'\n]{0,80}'?(\w*)")
IN_PLACE = re.compile(r"Your code changes its input in place[^.]*\.")
NAME = re.compile(r"[^\W\d]\w*")
WORD = re.compile(r"[a-z]{4,}")
COMMON = {"this", "that", "with", "them", "they", "there", "here", "what", "which", "where"}
COMMON |= {"belongs", "stands", "place", "result", "should", "other", "another", "value", "values"}
COMMON |= {"wrong", "right", "shape", "differ"}
ONE_SIZE_OFF = ("result.one more", "result.one less")  # how relations to what is right are called
ONE_OFF = re.compile(r" is one (?:less|more) than what belongs there$")
NOT_ADDED = re.compile(r" are not added up(?: |$)")
QUOTED = re.compile(r"`[^`]*`")
SEVERAL = ("Two things are wrong.", "Three things are wrong.", TWO_AT_ONCE.strip())


def by_its_edit(
    first: list[Finding],
    placed: list[Finding],
    asked: WrongAnswer,
    look: Look | None,
    again: Again | None = None,
) -> list[Finding]:
    """The findings, with what a small change proves that is found wrong.

    first: as they were found by what came back; placed: with what the steps of a call say. again:
    what is found in a version of the answer, if that may be asked.
    """
    number = next((i for i, f in enumerate(placed) if f.fails), None)
    if number is None or first[number].check.startswith(PREFIX):  # of layers the text alone tells
        return placed
    alone = sum(each.fails for each in first) == 1  # else it does not explain all that came back
    said = _told(first[number], placed[number], asked, look, alone, again)
    return [*placed[:number], said, *placed[number + 1 :]]


def _told(
    first: Finding,
    placed: Finding,
    asked: WrongAnswer,
    look: Look | None,
    alone: bool,
    again: Again | None,
) -> Finding:
    """One finding, with what one change proves, or two. alone: whether it is all that is found."""
    settled, named = _is_settled(first, placed), alone and _is_one(first, asked.exercise)
    known = named and _is_known(first, asked.known)
    pair = first.check.split(" + ") if " + " in first.check else ()
    lines, own_line = _told_by_name(placed, asked.known), named and placed.where is not None
    lines += _where_copied(pair, asked)
    at_a_line = placed.where is not None and (settled or (own_line and bool(placed.where.how)))
    one_off = first.mistake.startswith(ONE_SIZE_OFF)
    named_there = at_a_line and not settled
    search = Search(asked, likely_lines(look, placed.where), named_there, lines, pair, one_off)
    if search.parts is not None and placed.message == first.message:
        placed = _before_what_is_wrong(placed, search.parts)
    own_line = own_line and placed.where is not None
    one = search.one() or ([] if known else _put_in(search, placed))
    if not one and placed.where is not None and not settled:
        one = search.that_feed(placed.where.first_wrong)
    if known and own_line and not (one or placed.where.how):  # it may show on a later line alone
        one = search.of_order()
    # Of a version that is looked at behind a change one thing is told: it has no pairs.
    of_known, two = _two(first, placed, search, one, known) if again is not None else (False, ())
    if again is not None and not (one or settled or of_known):
        tried = len(search.tried)
        one = search.longer()
        if placed.where is not None and placed.where.how and not two:
            one = [e for e in one if is_surer(e, placed.where.how)]
        two = () if one else two
        more = placed.where is None or (lines and not named)  # what is told is not all then
        if more and not (one or two) and len(search.tried) > tried:
            of_known, two = _two(first, placed, search, one, known)
    if again is not None and not (one or settled or known) and (not two or two[-1].line is None):
        apart = by_parts(search)
        of_known, two = (False, apart) if apart else (of_known, two)
        two = two or (Pairs(search).of_all() if placed.where is None else ())
        if not (two or pair):
            two = proven_behind(search, again, Pairs(search).to_begin_with(placed.where))
    if again is not None and alone and not (one or two or settled or pair):
        two = left_behind(search, again, _known_words(first, asked.known) if known else "")
        two = tuple(_by_its_name(each, placed, asked.known, alone=True) for each in two)
    two = _with_what_the_steps_tell(two, placed)
    if settled and UNSET.match(placed.message) and placed.line not in [e.line for e in two]:
        two = ()  # what keeps that line from running does not mend it
    if two and one:  # two slips in their places, for one step that could be missing anywhere
        one = []
    if settled and one:
        said = _with_its_change(placed, one, look)
    elif settled:
        said = with_another(placed, two, look)
    elif one:
        said = _said(first, placed, one, search, look)
    elif two and two[-1].line is None:
        by_key = at_its_key(replace(placed, where=None), asked)
        said = by_key if by_key.where is not None else one_of_both(placed, two, look)
    else:
        two = tuple(_by_its_name(each, placed, asked.known) for each in two)
        tells = (
            _tells_both(placed, two) if of_known else _tells_the_same(first, placed, two, search)
        )
        said = placed if not two or tells else both(first, placed, two, asked.exercise, look)
        if said is not placed and known and not all(each.known for each in two):
            words = _known_words(first, asked.known)  # one mistake on two lines
            more = words if words not in said.message else ""  # else a line has them
            said = replace(said, message=f"{more} {said.message}".lstrip())
    said = _where_it_must_be(said, asked, search, pair, look)
    if known and (said.where is None or not said.where.how) and not (one or two):
        one = _put_in(search, placed)
        said = _said(first, placed, one, search, look) if one else said
        there = said.where.first_wrong if said.where is not None else None
        if not one and search.only_there and there not in search.only_there:
            said = replace(said, where=None)  # what does nothing elsewhere shows there
    return said


def _before_what_is_wrong(placed: Finding, parts: Parts) -> Finding:
    """A finding without the line that takes a result which is wrong: that was made before."""
    where = placed.where
    if where is None or where.first_wrong not in parts.behind_wrong:
        return placed
    return replace(placed, where=None, line=None, statement="")


def _put_in(search: Search, placed: Finding) -> list[Edit]:
    """The steps that could be put into expressions, where they stand on one line, or on the one
    that is told, too: else nobody knows which of them is missing."""
    found = [search.made_where(edit) for edit in search.missing()]
    told = placed.where.first_wrong if placed.where is not None else None
    there = [edit for edit in found if edit.line == told]
    return there or (found if len({edit.line for edit in found}) == 1 else [])


def _two(
    first: Finding, placed: Finding, search: Search, one: Sequence[Edit], known: bool
) -> tuple[bool, tuple[Mended, ...]]:
    """Two changes that together make all right, where none alone does or it may stand anywhere; and
    whether they undo two known mistakes that are said to be there."""
    pairs = Pairs(search)
    if one and not (_is_anywhere(one) and search.pair):
        return False, pairs.two_natural() if _is_anywhere(one) else ()
    found = of_a_known_pair(pairs, first.message)
    found = found or _by_their_words(first, placed, search)
    found = tuple(_with_its_line(each, placed, search) for each in found)
    if found and found[-1].line is not None:
        return True, found
    others = pairs.two(known) or beside_a_judge(first, search)
    words = _known_words(first, search.wrong.known) if known else ""
    said = {each.known for each in others} - {""}
    likely = {edit.how for edit in search.nearly if not edit.rank}
    undoes_it = likely.intersection(each.how for each in others)
    if words and said and words not in said and not undoes_it:
        others = ()  # that mistake explains all that came back, and these are others
    return (False, others) if others else (bool(found), found)


def _by_their_words(first: Finding, placed: Finding, search: Search) -> tuple[Mended, ...]:
    """Two known mistakes that no change undoes: one whose words name the one call that it is about,
    and the other on the line that the steps tell, where that is another."""
    if len(search.pair) != 2 or placed.where is None or LINE.search(placed.message):
        return ()
    words = [m for check, m, _ in search.wrong.known.mistakes if check in search.pair]
    words = [m for m in dict.fromkeys(words) if m in first.message]
    text = Text(search.wrong.source)
    named = [the_call_named(m, text) for m in words]
    if len(words) != 2 or sum(node is not None for node in named) != 1:
        return ()
    place = 0 if named[0] is not None else 1
    if text.first_line(named[place].lineno) == placed.where.first_wrong:
        return ()
    other = Mended(placed.where.first_wrong, "", words[1 - place])
    return other, Mended(named[place].lineno, "", words[place])


def _where_it_must_be(
    finding: Finding, asked: WrongAnswer, search: Search, pair: Sequence[str], look: Look | None
) -> Finding:
    """A finding without a line, with the one that alone can be wrong."""
    finding = at_its_remove(finding, asked)
    found = at_its_return(finding, asked, search.place)
    found = beside_a_key(found, asked, search.place) if found is finding else found
    found = at_its_key(found, asked)
    if pair:
        return found
    found = at_what_it_wrote(at_its_part(found, asked, search.parts), asked, look)
    known = {m for _, m, _ in asked.known.mistakes if found.message.startswith(m)}
    named = _is_one(found, asked.exercise) or known
    return at_what_it_names(found, asked) if named else found


def _is_anywhere(found: list[Edit]) -> bool:
    """Whether all that could be wrong is a step that could be missing on several lines."""
    anywhere = any(edit.rank >= ANYWHERE for edit in found) or len({e.line for e in found}) > 1
    return all(edit.missing for edit in found) and anywhere


def _told_by_name(placed: Finding, known: Answers) -> list[int]:
    """The lines of which the steps tell a known mistake."""
    said = [m for _, m, _ in (*known.mistakes, *known.exchanged) if m in placed.message]
    listed = [int(line) for line in LINE.findall(placed.message)]
    if not said or placed.where is None:
        return []
    if not listed:
        return [placed.where.first_wrong]
    return [n for n in listed if any(f"Line {n}: {m}" in placed.message for m in said)]


def _where_copied(pair: Sequence[str], asked: WrongAnswer) -> list[int]:
    """The lines that copy the weights of which one of two known mistakes speaks."""
    text = Text(asked.source)
    words = [m for check, m, _ in asked.known.mistakes if check in pair]
    return [line for each in words if (line := line_of_copy(each, 0, text)) is not None]


def _tells_the_same(
    first: Finding, placed: Finding, two: tuple[Mended, ...], search: Search
) -> bool:
    """Whether the steps have told two mistakes of the same lines, no fewer of them by their names,
    or of one line, in the order in which they come in; or the cause of one line alone."""
    lines = {int(line) for line in LINE.findall(placed.message)}
    if placed.where is not None and {placed.where.first_wrong} == {each.line for each in two}:
        return placed.message != first.message
    known = search.wrong.known
    named = {message for _, message, _ in known.mistakes if message in placed.message}
    own = {each.line for each in two}
    other = own - lines  # told by the steps where what is made there is taken, or returned
    returned = search.parts is not None and lines - own == {search.parts.last}
    apart = not (returned or (other and other <= search.feeding))
    if len(lines) == len(named) == len(two) and not all(each.how for each in two) and apart:
        return True  # one of both is told by the steps, too, behind a change
    if lines and lines <= own and len(named) >= len(two):
        return True
    if lines != own or NO_CAUSE in placed.message.lower():
        return False
    return len(lines) == 1 or len(named) >= sum(bool(each.known) for each in two)


def _with_its_line(one: Mended, placed: Finding, search: Search) -> Mended:
    """One of two known mistakes, with the line of which the steps tell it where no change does, or
    one that puts in a step that is missing, but for the line that makes what that one takes; or
    with that of the one call that its words name."""
    if one.line is not None and (not one.missing or one.line in search.feeding):
        return one
    line = re.search(rf"Line (\d{{1,6}}): {re.escape(one.known)}", placed.message)
    if line:
        return replace(one, line=int(line[1]), at=None)
    if one.line is not None:
        return one
    text = Text(search.wrong.source)
    named = the_call_named(one.known, text) or the_text_named(one.known, text)
    return replace(one, line=named.lineno) if named is not None else one


def _with_what_the_steps_tell(found: tuple[Mended, ...], placed: Finding) -> tuple[Mended, ...]:
    """Two mistakes, one of them on the line that the steps tell, where the other one stands
    further down, so that what goes wrong before is not of its making."""
    if len(found) != 2 or found[0].line is None or found[1].line is not None:
        return found
    where = placed.where
    if where is None or not where.how or not where.first_wrong < found[0].line:
        return found
    if where.how in CHANCE:  # it may hold them until something is put there
        return found
    return found[0], replace(found[1], line=where.first_wrong, at=None)


def _tells_both(placed: Finding, two: tuple[Mended, ...]) -> bool:
    """Whether the steps tell what two known mistakes are that are proven, of the same lines."""
    listed = {int(line) for line in LINE.findall(placed.message)}
    return listed == {each.line for each in two} and NO_CAUSE not in placed.message.lower()


def _by_its_name(one: Mended, placed: Finding, known: Answers, alone: bool = False) -> Mended:
    """One of two things, with a known mistake's words where the steps tell that of its line.
    alone: whether that is the only line that they tell."""
    here = alone and placed.where is not None and placed.where.first_wrong == one.line
    start = "" if here and not LINE.search(placed.message) else f"Line {one.line}: "
    said = [m for _, m, _ in known.mistakes if f"{start}{m}" in placed.message]
    return replace(one, known=max(said, key=len)) if said and not one.known else one


def _is_settled(first: Finding, placed: Finding) -> bool:
    """Whether an error has its cause."""
    if first.verdict != Verdict.ERROR:
        return False
    told = placed.where is None or placed.where.first_wrong == placed.line or placed.where.how
    return bool(told) and without_advice(placed.message) == placed.message


def _with_its_change(placed: Finding, found: list[Edit], look: Look | None) -> Finding:
    """An error with its cause, where changes of one line alone make all right: what is wrong there,
    if it stops there; and no earlier line is called right if it does not."""
    unset = UNSET.match(placed.message)
    if unset is not None:  # a change must give the name
        found = [e for e in found if e.line == placed.line or unset[1] in _names(e)]
    lines = {edit.line for edit in found}
    if lines == {placed.line}:
        said = f"One thing is wrong, in line {found[0].at}: {found[0].how}."
        where, message = placed.where, placed.message
        if where is None or where.first_wrong != placed.line:  # no earlier line is wrong, then
            where, message = where_of(placed.line, STOPS, look), BEFORE.sub("", message)
        message = f"{message} {said} Everything else is right."
        return replace(placed, message=message, where=where)
    if len(lines) == 1 and (_is_sure(found[0], look) or _gave_it(look) in {*lines, found[0].at}):
        (line,) = lines
        at = found[0].at
        said = f"One thing is wrong, in line {at}: {found[0].how}. Everything else is right."
        where = where_of(line, found[0].how, look, at)
        message = without_advice(placed.message)
        if f"line {line}" not in placed.message.lower():
            message = f"{message} {said}"
        return replace(
            placed, message=message, line=at, statement=statement_of(line, look), where=where
        )
    if placed.where is not None and placed.where.last_right in lines:
        where = replace(placed.where, last_right=None, landmark="")
        return replace(placed, where=where)
    return placed


def _gave_it(look: Look | None) -> int | None:
    """The line that called the function in which the code stops."""
    end = look.trace.stopped if look is not None else None
    return end.outer[0] if end is not None and end.outer else None


def _is_sure(edit: Edit, look: Look | None) -> bool:
    """Whether names cannot be what is wrong: both that change places are given to the function, or
    read on other lines of it; or nothing else reads the one that belongs there."""
    if not edit.by_name or edit.rank < NATURAL:  # what is made and read nowhere was meant
        return True
    function = function_around(look.text, edit.line) if look is not None else None
    if function is None:
        return False
    start, end = edit.place
    both = {look.text.source[start:end], edit.new}
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    read = {n.id for n in names if isinstance(n.ctx, ast.Load) and n.lineno != edit.at}
    return both <= read or both <= {a.arg for a in function.args.args}


def _known_words(finding: Finding, known: Answers) -> str:
    """What a finding says of the known mistake that it is of."""
    every = (*known.mistakes, *known.exchanged)
    own = (m for check, m, _ in every if check == finding.check and m in finding.message)
    return max(own, key=len, default="")


def _is_one(finding: Finding, exercise: Exercise) -> bool:
    """Whether one known mistake explains all that came back."""
    named = finding.verdict == Verdict.WRONG and not is_nameless(finding.check, exercise.task)
    several = " + " in finding.check or TWO_AT_ONCE.strip() in finding.message
    several = several or finding.check.endswith(ANOTHER)
    return named and not several and not finding.check.startswith(OPERATION)


def _is_known(finding: Finding, known: Answers) -> bool:
    """Whether a finding is of a known mistake, which gives all that came back; else a judge of the
    exercise's own saw something, and there may be more."""
    return finding.check in [check for check, *_ in (*known.mistakes, *known.exchanged)]


def likely_lines(look: Look | None, where: Where | None = None) -> dict[int, float]:
    """By line: 0 where a wrong step stands or is called for, 2 where all is known to be right, and
    more than what was given. What came out right in another call is not likely to be wrong here;
    nor, where the steps tell no line, what is made of a wrong step."""
    if look is None or look.judged is None:
        return {}
    judged, found = look.judged, {}
    ops: dict[int, set[str]] = {}
    called: dict[tuple, set[tuple]] = {}
    for number in judged.right:
        step = judged.steps[number]
        called.setdefault(step.spot, set()).add(step.outer)
    first = judged.begins() if where is None else judged.bad
    for number, step in enumerate(judged.steps):
        elsewhere = called.get(step.spot, set()) - {step.outer}
        like = judged.like.get(number)
        given = like is not None and judged.own.trace.steps[like.known.place].op == LEAF
        own = 0 if number in first else AFTER if number in judged.bad else 1
        own = own if number not in judged.right else GIVEN if given else 2
        for line in {look.text.line(step), *step.outer} - {None}:
            # What is right may be the wrong thing to return.
            here = min(own, 1) if isinstance(look.text.around(line), ast.Return) else own
            here = 1 if elsewhere and line not in step.outer else here
            found[line] = min(here, found.get(line, 2))
            ops.setdefault(line, set()).add(step.op)
    for line, only in ops.items():  # the order of the axes is not known to be the right one
        found[line] = min(found[line], 1) if only <= {*LAYOUT, "stack"} else found[line]
    if where is not None and where.how and where.first_wrong in found:
        found[where.first_wrong] = 0  # though a square of it may be right
    return found


def _said(
    first: Finding, placed: Finding, found: list[Edit], search: Search, look: Look | None
) -> Finding:
    """A finding with the change that is likeliest to undo the slip."""
    exercise = search.wrong.exercise
    told = placed.where.first_wrong if placed.where is not None else None
    if told is not None and placed.where.how.startswith(OF_ONE_SIDE):
        found = [e for e in found if e.line == told and e.rank <= NATURAL]
        if not found:
            return placed  # much takes an axis of size 1 away again
    there = [edit for edit in found if edit.line == told]
    if told is not None and not there:  # what the steps tell by name, if it can be mended there
        there = search.at(told) if told in search.told else []
        there = [e for e in there if not found or _is_as_good(e, found[0], search)]
        given = set() if there or look is None else _given_at(look, told)
        alone = not placed.where.how and _is_there_alone(found, first, search)
        if not (search.stops or alone):  # of what has no step at all, the line that is told
            found = [e for e in found if not (e.missing and e.rank)]
        found = [e for e in found if not (e.by_name and given & _names(e))]
    edit = there[0] if there else None
    if edit is None and found:
        found = _in_the_words_of(found, first, search) if _is_one(first, exercise) else found
        edit = _of_the_last(found, search, look)
    anywhere = edit is not None and edit.missing and edit.rank >= ANYWHERE and told is None
    if edit is None or (anywhere and not _is_there_alone(found, first, search)):
        return placed  # it could be missing anywhere, and no step shows where
    product = line_of_scores(first.check, edit.line, Text(search.wrong.source))
    if edit.missing and product is not None:  # where the scores are made that lack their scale
        own = [e for e in (*search.mending, *search.at(product)) if e.line == product]
        edit = next((e for e in own if e.missing), edit)
    said = edit.line in map(int, LINE.findall(placed.message))
    if told is not None and not (there or said) and edit.by_name:
        feeds = edit.line in lines_that_feed({told}, search.wrong.source)
        if edit.rank > NATURAL + feeds:
            return placed
    made = search.where_it_is_made(edit)
    sign = there and placed.where.how == SIGN  # of numbers that are right, whoever made them
    if made is not None and not (sign and made.line <= (placed.where.last_right or 0)):
        edit, there = made, []
    one = f"One thing is wrong, in line {edit.at}: {edit.how}. Everything else is right."
    several = any(text in placed.message for text in SEVERAL)
    if there and first.verdict == Verdict.ERROR:
        return replace(placed, message=f"{without_advice(placed.message)} {one}")
    nameless = is_nameless(first.check, exercise.task)
    another = nameless and _is_another(first, placed, search.wrong.known)
    if there and not several and not another and placed.message != first.message:
        return placed  # its cause is told
    if _is_one(first, exercise):
        # Of a known mistake that stops as well no number is compared: the change says more.
        error = ERROR.search(first.message)
        message = (
            f"{one} {without_advice(error[0])}"
            if error and first.line is not None
            else first.message
        )
    elif first.verdict == Verdict.ERROR:
        message = f"{without_advice(placed.message)} {one}"
    elif nameless:
        plain = DIFFERS.search(first.message) or IN_PLACE.match(first.message)
        message = f"{one} {plain[0] if plain else ''}".rstrip()
    else:
        message = one
    stays = there and not several
    where = where_of(edit.line, edit.how, look, edit.at)
    if stays:
        where = replace(placed.where, how=placed.where.how or edit.how)
    statement = statement_of(edit.line, look)
    return replace(placed, message=message, where=where, line=edit.at, statement=statement)


def _is_there_alone(found: list[Edit], first: Finding, search: Search) -> bool:
    """Whether a step that could be missing anywhere is so on one line alone: all such changes are
    tried, and those of no other line do it. So of a number that is one off, and of a sum, but where
    it is known which operation is left out; most other steps could stand where their value is read.
    """
    how = found[0].how if found else ""
    is_sum = NOT_ADDED.search(how) and not first.check.startswith(OPERATION)
    if not (is_sum or ONE_OFF.search(how)):
        return False
    kinds = {QUOTED.sub("", edit.how) for edit in found}
    alike = [edit for edit in search.order if QUOTED.sub("", edit.how) in kinds]
    lines = {edit.line for edit in (*found, *search.of_the_rest(alike))}
    tried = {edit.source for edit in search.tried}
    return len(lines) == 1 and all(edit.source in tried for edit in alike)


def _in_the_words_of(found: list[Edit], finding: Finding, search: Search) -> list[Edit]:
    """Of the likeliest changes those that undo what a known mistake's words speak of: its sign, a
    root; all of them where none does."""
    words = set(WORD.findall(finding.message.lower())) - COMMON
    least = search.doubt(found[0])
    alike = [e for e in found if search.doubt(e) == least and e.rank <= found[0].rank]
    own = [e for e in alike if words & set(WORD.findall(e.how))]
    return [*own, *(e for e in found if search.doubt(e) != least)] if own else found


def _is_as_good(edit: Edit, best: Edit, search: Search) -> bool:
    """Whether a change of the line that is told is nearly as natural as the best of another; as
    natural as one of a line that makes what it takes."""
    feeding = search.feeding | search.only_there
    feeds = best.line in feeding | lines_that_feed({edit.line}, search.wrong.source)
    return edit.rank <= best.rank + (0 if feeds else NATURAL) and (
        best.missing or best.by_name or not edit.missing
    )


def _is_another(first: Finding, placed: Finding, known: Answers) -> bool:
    """Whether the steps tell a known mistake though none explains what came back: where one thing
    alone is wrong, it is not that."""
    return any(m in placed.message and m not in first.message for _, m, _ in known.mistakes)


def _given_at(look: Look, line: int) -> set[str]:
    """The names that get their values in the statement of a line, those of a function that it calls
    too."""
    node = look.text.around(line)
    inside = list(ast.walk(node)) if node is not None else []
    called = (look.text.function(callee(n)) for n in inside if isinstance(n, ast.Call))
    given = {a.arg for function in called if function is not None for a in function.args.args}
    return given | {
        n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _names(edit: Edit) -> set[str]:
    """The names that a change puts in."""
    return set(NAME.findall(edit.new))


def _of_the_last(found: list[Edit], search: Search, look: Look | None) -> Edit | None:
    """The likeliest of several; of equal ones that of the last line, up to which all was right.
    None where they stand in several functions: nobody can tell which is the wrong one."""
    best = found[0]
    if best.missing and len({edit.line for edit in found}) > 1:
        return None  # it could be put in at each of these lines
    alike = [edit for edit in found if edit.rank == best.rank]
    lines = [edit.line for edit in alike] if look is not None else []
    functions = {id(next(iter(functions_around(look.text, n)), None)) for n in lines}  # the widest
    equal = [edit for edit in alike if search.doubt(edit) == search.doubt(best)]
    heads = conditions_of({edit.line for edit in equal}, search.wrong.source)
    equal = [edit for edit in equal if edit.line not in heads]  # what stands under it is told
    if not search.likely and len({edit.line for edit in equal}) > 1:
        return None  # no step shows up to where all was right
    return max(equal, key=lambda edit: edit.line) if len(functions) < 2 else None
