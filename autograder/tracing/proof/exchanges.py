"""Two right tensors that stand in each other's place: which they are, and where that comes from."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, replace

import torch

from autograder.course.steps.traces import Trace
from autograder.tracing.binding import names_in_a_row
from autograder.tracing.first_wrong import LAYOUT
from autograder.tracing.proof.replay import Bench, Proof
from autograder.tracing.reference import PRODUCTS, multiple
from autograder.tracing.text import callee, function_around, means, own_nodes


@dataclass(frozen=True)
class Swap:
    """Two right tensors that stand in each other's place, by the steps that made them."""

    one: int
    two: int
    changed: dict
    rest: Trace | None = None  # the trace with what else is wrong mended, if anything is


def exchanged(bench: Bench, swap: Swap, pivot: Proof | None) -> Proof | None:
    """Two tensors changed places where they were named, or where they are used; None where that
    cannot be told."""
    judged, text = bench.judged, bench.text
    one, two = swap.one, swap.two
    crossed = text.crossed(*((judged.steps[i], judged.like[i].known.called) for i in (one, two)))
    used = pivot is not None and pivot.all_right and bench.one_statement(pivot.suspects)
    if used and crossed is False:
        return pivot
    named = all(text.target(judged.steps[i]) for i in (one, two))
    straight = crossed is False and named
    line = _handed_over_in(bench, swap) if straight else None
    line = _unpacked_in(bench, swap) if line is None and named and not crossed else line
    if line is not None:
        trace = bench.replay.trace_with(swap.changed)
        proof = Proof(min(one, two), trace, swap.rest is None, judged.like[two].known)
        return replace(proof, suspects=(one, two), alone=swap.rest, line=line)
    if crossed or (not used and not straight and bench.one_statement((one, two))):
        should = judged.like[two].known
        trace = bench.replay.trace_with(swap.changed)
        own = swap.rest is None, should, "", (one, two), None, swap.rest
        return Proof(min(one, two), trace, *own)
    return None


def _handed_over_in(bench: Bench, swap: Swap) -> int | None:
    """The line of the one call that hands two tensors, called by what they are, to arguments of a
    function of the student's own that are called by what the other one is."""
    judged, text = bench.judged, bench.text
    makers = {text.target(judged.steps[i]): judged.like[i].known.name for i in (swap.one, swap.two)}
    if len(makers) != 2 or not all(makers.values()):
        return None
    (a, first), (b, second) = makers.items()
    lines = set()
    for call in (n for n in text.nodes if isinstance(n, ast.Call)):
        given = text.handed(call)
        to = [given.get(name, "") for name in (a, b)]
        if all(map(means, to, (second, first))) and not any(map(means, to, (first, second))):
            lines.add(call.lineno)
    return text.first_line(lines.pop()) if len(lines) == 1 else None


def _unpacked_in(bench: Bench, swap: Swap) -> int | None:
    """The line of the one statement that gives two tensors each other's names, which a function of
    the student's own made, named and returned in another order."""
    judged, text = bench.judged, bench.text
    steps = judged.steps[swap.one], judged.steps[swap.two]
    names = [text.target(step) for step in steps]
    functions = {function_around(text, text.line(step)) for step in steps}
    function = functions.pop() if len(functions) == 1 else None
    rows = [n.value for n in own_nodes(function) if isinstance(n, ast.Return)] if function else []
    row = names_in_a_row(rows[0]) if len(rows) == 1 else []
    if any(row.count(name) != 1 for name in names):
        return None
    one, two = map(row.index, names)
    lines = set()
    for each in text.statements:
        call = each.value if isinstance(each, ast.Assign) else None
        if not isinstance(call, ast.Call) or text.function(callee(call)) is not function:
            continue
        given = names_in_a_row(each.targets[0])
        if len(given) != len(row) or (given[one], given[two]) != (names[1], names[0]):
            return None  # its names do not show it
        lines.add(each.lineno)
    return lines.pop() if len(lines) == 1 else None


def turned_before(bench: Bench, pivot: Proof) -> Swap | None:
    """Two right tensors that met in a product in each other's place, where what is made of it is
    wrong in another way as well: what a division gives cannot be turned by the division."""
    judged, step = bench.judged, bench.judged.steps[pivot.number]
    product = step.inputs[0] if step.inputs else None
    like = judged.like.get(product)
    if not pivot.all_right or like is None or not like.turned or step.op in (*LAYOUT, *PRODUCTS):
        return None
    if product not in pivot.suspects or judged.steps[product].op not in PRODUCTS:
        return None
    right = pivot.trace.steps[pivot.number].value
    found = swapped(bench, {pivot.number: right})
    if found is None or product not in found.changed:
        return None
    alone = bench.outcome({one: found.changed[one] for one in (found.one, found.two)})
    if alone is None:
        return None
    factor = multiple(alone[0].get(pivot.number, step.value), right)
    mended = bench.outcome({pivot.number: step.value / factor}) if factor else None
    if mended is None:
        return None
    return replace(found, changed=alone[0], rest=bench.replay.trace_with(mended[0]))


def swapped(bench: Bench, also: dict[int, torch.Tensor] | None = None) -> Swap | None:
    """Two tensors of the answer's that have only to be exchanged to make the result right.

    also: what is mended beside them.
    """
    judged = bench.judged
    makers: dict[int, int] = {}  # a landmark's place: the first step that gave it
    for number in sorted(judged.like):
        found, step = judged.like[number], judged.steps[number]
        if found.whole and found.in_order and step.place and step.op not in LAYOUT:
            makers.setdefault(found.known.place, number)
    for one, two in itertools.combinations(makers.values(), 2):
        a, b = judged.steps[one].value, judged.steps[two].value
        known = judged.like[one].known, judged.like[two].known
        if a.shape != b.shape or judged.own.comes_of(*known) or judged.own.comes_of(*known[::-1]):
            continue
        if bench.spent:
            return None
        outcome = bench.outcome({one: b, two: a, **(also or {})})
        if outcome is not None and outcome[1]:
            return Swap(one, two, outcome[0])
    return None
