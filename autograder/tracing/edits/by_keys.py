"""The lines of the keys whose values are wrong, of an answer that gives a dict.

A value that is made of nothing but what right ones are made of, too, is wrong where it is made.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from autograder.course.asking import Finding, Verdict, Where
from autograder.judging.difference import difference
from autograder.tracing.edits.parts import ALONE, is_part_of
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.look import TWO_AT_ONCE
from autograder.tracing.say import listed, sentence
from autograder.tracing.text import Text, callee


def at_its_key(finding: Finding, asked: WrongAnswer) -> Finding:
    """A finding without a line, with that of the one key whose value is wrong; or with both lines
    of two such keys, and the known mistakes that give what came for them."""
    if finding.where is not None or finding.verdict != Verdict.WRONG:
        return finding
    pairs = zip(asked.outcomes, asked.known.expected, strict=True)
    both = [(got.value, want.value) for got, want in pairs if want.error is None]
    if not all(isinstance(v, Mapping) for pair in both for v in pair):
        return finding
    keys = {key for pair in both for v in pair for key in v}
    bad = {k for k in keys if any(_differ(g, w, k, asked.exercise.rtol) for g, w in both)}
    text = Text(asked.source)
    lines = {key: _line_of(text, key, bad) for key in bad}
    if len(bad) not in (1, 2) or None in lines.values():
        return finding
    first = min(lines.values())
    where = Where(last_right=None, first_wrong=first, how=ALONE)
    said = finding.message if len(bad) == 1 else _both(finding.message, lines, asked)
    statement = text.statement(first)
    return replace(finding, message=said, where=where, line=first, statement=statement)


def _both(message: str, lines: Mapping[str, int], asked: WrongAnswer) -> str:
    """What is wrong with two keys, line by line."""
    parts = []
    for key, line in sorted(lines.items(), key=lambda each: each[1]):
        words = (m for _, m, gives in asked.known.mistakes if is_part_of(key, asked, gives))
        parts.append((line, next(words, "") or sentence(ALONE)))
    rest = message.partition(TWO_AT_ONCE)[0].strip()
    return f"Two things are wrong. {listed(parts)} {rest}".strip()


def _line_of(text: Text, key: str, bad: set[str]) -> int | None:
    """The line that makes the value of a wrong key; None where what it is made of may be wrong."""
    values = _values(text)
    if key not in values:
        return None
    value = _made_for_it(text, values[key])
    given = {a.arg for f in text.functions for a in f.args.args}
    right = _names_in(*(v for each, v in values.items() if each not in bad))
    names = [n for n in ast.walk(value) if isinstance(n, ast.Name)]
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)}  # of a comprehension
    made = {n.id for n in names} & text.stored - own
    alone = all(_is_made_of(text, name, given) for name in made - right - given)
    return value.lineno if alone else None


def _is_made_of(text: Text, name: str, given: set[str]) -> bool:
    """Whether a variable is made once, as a part of what was given: `weight = model.weight`."""
    own = text.made(name)
    if any(isinstance(n, ast.AugAssign) and text.of(n.target) == name for n in text.nodes):
        return False
    inside = [n for value in own for n in ast.walk(value)]
    computed = any(isinstance(n, ast.Call | ast.BinOp) for n in inside)
    return len(own) == 1 and not computed and _names_in(*own) <= given


def _made_for_it(text: Text, value: ast.expr) -> ast.expr:
    """What a variable gets that is made once and read in this one place; else the value itself."""
    while isinstance(value, ast.Name):
        often = sum(isinstance(n, ast.Name) and n.id == value.id for n in text.nodes)
        made = text.made(value.id)
        if len(made) != 1 or often != 2:
            break
        (value,) = made
    return value


def _differ(got: Mapping, wanted: Mapping, key, rtol: float) -> bool:
    both = key in got and key in wanted
    return not both or difference(got[key], wanted[key], rtol) is not None


def _values(text: Text) -> dict[str, ast.expr]:
    """By key what is put there, of those that are written out once."""
    found: list[tuple[ast.expr | str | None, ast.expr]] = []
    for node in text.nodes:
        if isinstance(node, ast.Dict):
            found += zip(node.keys, node.values, strict=True)
        elif isinstance(node, ast.Call) and callee(node) == "dict":
            found += [(each.arg, each.value) for each in node.keywords]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            found.append((node.targets[0].slice, node.value))
    named = [(getattr(key, "value", key), value) for key, value in found]
    named = [(key, value) for key, value in named if isinstance(key, str)]
    often = Counter(key for key, _ in named)
    return {key: value for key, value in named if often[key] == 1}


def _names_in(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
