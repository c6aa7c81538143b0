"""What is wrong with each of several results, where it is something else for each.

One small change makes one of them right and leaves the others as they are; or one line alone has a
part in what a known mistake spoils.
"""

from __future__ import annotations

import ast

from autograder.course.calls import Outcome
from autograder.judging.difference import difference
from autograder.tracing.edits.kinds.source import NATURAL, Edit
from autograder.tracing.edits.pairs import Mended
from autograder.tracing.edits.parts import ALONE, Parts, is_part_of, of_parts, wrong_parts
from autograder.tracing.edits.search import Search
from autograder.tracing.proof.mends import JOINS
from autograder.tracing.say import NO_CAUSE
from autograder.tracing.text import Text, callee

MOST = 3  # results that are wrong
TRIED = 3  # changes that are asked for in all calls


def by_parts(search: Search) -> tuple[Mended, ...]:
    """Two or more things that are wrong, each in results of its own; of one a known mistake may be
    all that is known. () where that is not seen."""
    parts = search.parts
    if parts is None or search.by_chance or not 1 < len(parts.wrong) <= MOST:
        return ()
    found: dict[int | None, tuple[str, str]] = {}
    same: dict[str, tuple[set, int]] = {}  # results that one known mistake spoils, and its line
    made = {key for key in parts.wrong if _is_made_of_others(parts, key)}
    by_known: dict[str, set] = {}
    known_of = {key: _known(search, parts, key) for key in parts.wrong - made}
    for key, own in known_of.items():  # best is a mistake that explains the most of them
        many = max(own, key=lambda m: sum(m in each for each in known_of.values()), default="")
        by_known.setdefault(many, set()).add(key)
    edits = {}
    for known, keys in by_known.items():
        for key in keys:
            together = keys if known else {key}
            for line in _asked_for(search, parts, together)[:MOST]:
                search.at(line)
            others = set() if known else parts.wrong - made - {key}
            edits[key] = _that_mends(search, parts, key, others)
    unknown = {key for key in by_known.get("", ()) if edits[key] is None}
    mended = {k: parts.may[k] - {parts.last} for k, e in edits.items() if e is not None}
    for known, key in [(known, key) for known, keys in by_known.items() for key in keys]:
        several = bool(known) and len(by_known[known]) > 1  # then it stands where all are made
        edit = edits[key]
        # Of two results that nothing explains both may be spoiled by a line that they share.
        apart = key not in unknown or len(unknown) == 1
        line, how = _at_one_line(search, parts, key) if apart and not several else (None, "")
        if any(line in of for other, of in mended.items() if other != key):
            line = None  # what is wrong with the other one shows there
        if edit is not None:
            line, how = edit.line, edit.how
        if line is None and known and known in (*same, found.get(None, ("", ""))[1]):
            continue
        if line is None and (not known or None in found):
            return ()
        before, there = same.get(known, (set(), line))
        if known and before and there != line:  # the line whose change mends all of them
            if edit is None or before & _spoiled(search, parts, edit):
                return ()
            del found[there]
        if known and edit is not None:
            same[known] = {*before, key}, line
        found[line] = how, known
    if len(found) < 2:
        return ()
    lines = sorted(found, key=lambda line: (line is None, line))  # what has no line comes last
    return tuple(Mended(line, *found[line]) for line in lines)


def _asked_for(search: Search, parts: Parts, keys: set) -> list[int]:
    """The lines of which all changes are tried: those that have a part in these results, and in no
    others; of several results those that go wrong."""
    others = set().union(*(parts.may[each] for each in parts.may.keys() - keys))
    lines = set.intersection(*(parts.may[key] for key in keys))
    if len(keys) == 1:
        return sorted(lines - others)
    return sorted(line for line in lines if search.likely.get(line, 1) == 0)


def _is_made_of_others(parts: Parts, key: object) -> bool:
    """Whether all that another wrong result is made with has a part in one: it follows from it."""
    others = (parts.may[each] for each in parts.wrong - {key})
    return any(other and other < parts.surely[key] for other in others)


def _that_mends(search: Search, parts: Parts, key: object, others: set) -> Edit | None:
    """The likeliest change that makes one result right, and leaves what is right; others: wrong
    ones that it leaves as they are."""
    place = search.place
    wanted = of_parts(search.wrong.known.expected[place].value)
    as_it_is = of_parts(search.wrong.outcomes[place].value)
    rtol = search.rtol

    def mends(gave: Outcome | None) -> bool:
        own = of_parts(gave.value) if gave is not None and gave.error is None else {}
        right = {k for k in wanted if k in own and difference(own[k], wanted[k], rtol) is None}
        if any(k not in own or difference(own[k], as_it_is[k], rtol) for k in others):
            return False
        return key in right and not (parts.may.keys() - parts.wrong - right)

    pairs = zip(search.tried, search.gave, strict=True)
    found = [edit for edit, gave in pairs if edit.rank <= NATURAL and mends(gave)]
    found = sorted(found, key=search.doubt)[:TRIED]
    for edit in found:
        spoiled = _spoiled(search, parts, edit)
        if key not in spoiled and spoiled <= parts.wrong:
            return edit
    return None


def _spoiled(search: Search, parts: Parts, edit: Edit) -> set:
    """The results that are still wrong where a change is made; all of them where nobody knows."""
    (came,) = search.versions.on_all([edit.source])
    spoiled = wrong_parts(search.wrong, came, parts) if came is not None else None
    return {*parts.may} if spoiled is None else set(spoiled)


def _at_one_line(search: Search, parts: Parts, key: object) -> tuple[int | None, str]:
    """The line that only one result is made with, or the one line of it that the steps tell."""
    line = parts.only({key}) or _but_for_sizes(search, parts, key)
    wrong = [each for each in parts.may[key] if search.likely.get(each, 1) == 0]
    alone = wrong[0] if len(wrong) == 1 and not _joins(search, wrong[0]) else None
    return (line, ALONE) if line is not None else (alone, NO_CAUSE)


def _but_for_sizes(search: Search, parts: Parts, key: object) -> int | None:
    """The line that only one result is made with, beside those that tell sizes and those that begin
    loops; where no other of the wrong ones is."""
    others = set().union(*(parts.surely[each] for each in parts.may.keys() - {key}))
    text = Text(search.wrong.source)
    loops = {n.lineno for n in text.nodes if isinstance(n, ast.For)}
    lines = parts.may[key] - others - loops
    own = {line for line in lines if not _tells_sizes(text.around(line))}
    return own.pop() if parts.is_whole and len(own) == 1 else None


def _tells_sizes(node: ast.stmt | None) -> bool:
    """Whether a statement gives names to sizes."""
    value = getattr(node, "value", None)
    sizes = isinstance(value, ast.Call) and callee(value) in ("size", "len")
    if isinstance(value, ast.Attribute | ast.Subscript):
        sizes = "shape" in (getattr(value, "attr", ""), getattr(value.value, "attr", ""))
    return sizes


def _joins(search: Search, line: int) -> bool:
    """Whether a line joins what rounds of a loop made, so that their order may be what is wrong."""
    statement = Text(search.wrong.source).around(line)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    return any(callee(n) in JOINS for n in calls)


def _known(search: Search, parts: Parts, key: object) -> list[str]:
    """The words of the known mistakes that give what came for one result, in all calls."""
    found = []
    for _, message, gives in search.wrong.known.mistakes:
        spoiled = wrong_parts(search.wrong, gives, parts) or set()
        if key in spoiled and is_part_of(key, search.wrong, gives):
            found.append(message)
    return found
