"""What stands beside the result and may be meant: what a line hands on, and what lines below make.

Each public function is a fact for `facts.FACTS`, as in `readings`.
"""

from __future__ import annotations

from autograder.shapes.doubts.case import SEVERAL, Case, in_one_call
from autograder.shapes.match import results
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.tables import Stmt
from autograder.shapes.text.dims import Dims, shape_fits, without
from autograder.shapes.text.names import CHANNELS
from autograder.shapes.tracer import flat

MOVES = ("permute", "transpose", "swapaxes", "movedim", "t", "view", "reshape", "unsqueeze")
PRODUCTS = ("@", "matmul", "bmm", "mm", "einsum", "linear", "dot", "mv", "baddbmm", "tensordot")
SOON = 6  # lines below a heading in which a name may get its last shape


def not_of_what_is_handed(case: Case) -> str:
    """`y = layer(x.permute(1, 0, 2))  # [t, b, d]`: the shape in which the layer takes it."""
    if not case.sighting.trailing or case.part or len(case.claim.terms()) != 1:
        return ""
    handed = all(_has_one(case, case.last.dims, _handed(case, e), e) for e in case.runs)
    return "it may be what the line hands on" if handed else ""


def _handed(case: Case, execution: Execution) -> list[tuple[int, ...]]:
    """The shapes of what is moved for a call or a product that takes it; not of what a chain of
    methods goes on from."""
    nodes = case.matcher.traced.nodes
    values = dict(execution.events)
    taken = set()
    for number in values:
        node = nodes[number]
        if node.kind == "Call":
            taken |= {i for i in node.operands if not node.text.startswith(nodes[i].text)}
        elif node.op == "@":
            taken |= set(node.operands)
    moved = (i for i in taken if nodes[i].kind == "Call" and nodes[i].op in MOVES)
    return [shape for i in moved for shape in tensors(values.get(i))]


def not_of_the_lines_below(case: Case) -> str:
    """`# K -> [b, h, t, d]` above the lines that make it so: a heading may be of all of them.

    So may `# stacked: [b, n, t]` above the list that the next line stacks.
    """
    if case.sighting.trailing or case.sighting.place == "docstring":
        return ""
    if case.below or len(case.claim.terms()) != 1:
        return ""
    own, here = set(flat(case.stmt.targets)), case.stmt.end_line
    below = [(s, runs) for s, runs in case.room if here < s.line <= here + SOON]
    below = [(s, runs) for s, runs in below if s.id not in case.spoken_for and runs]
    for stmt, runs in below:
        goes_on = stmt.line == here + 1 and case.goes_into(stmt) and _is_a_list(case)
        anew = case.led_to and own & set(flat(stmt.targets))
        if (goes_on or anew) and _makes_it(case, stmt, runs, goes_on):
            return "it may be of what the lines below make"
    return ""


def _is_a_list(case: Case) -> bool:
    """Whether the line makes a row of tensors, which has no shape of its own."""
    return case.matcher.node(case.stmt).kind in ("List", "ListComp", "Tuple")


def _makes_it(case: Case, stmt: Stmt, runs: list[Execution], any_size: bool) -> bool:
    """Whether a statement makes the shape; any_size: whatever its names stand for that are free."""
    free = {n for n in case.names() if any_size and case.scope.free(n, runs[0])}
    dims = without(case.last.dims, free)
    return in_one_call([_has_one(case, dims, results(stmt, e), e) for e in runs], runs)


def _has_one(case: Case, dims: Dims, shapes, execution: Execution) -> bool:
    """Whether some of these shapes are what dimensions say."""
    lookup = case.scope.lookup(execution)
    return any(shape_fits(dims, shape, lookup) for shape in shapes)


def not_of_a_layer_on_the_way(case: Case) -> str:
    """`# [b, c, t]` above `net(x).max(dim=2)[0]`: what the layer gives."""
    if case.sighting.trailing or case.below or len(case.claim.terms()) != 1 or case.is_output:
        return ""
    there = all(_has_one(case, case.last.dims, _of_layers(case, e), e) for e in case.runs)
    return "it may be what a layer on the line gives" if there else ""


def _of_layers(case: Case, execution: Execution) -> list[tuple[int, ...]]:
    """The shapes of what layers of the object give before the result: `self.net(x)`."""
    nodes = case.matcher.traced.nodes
    layers = [
        value
        for number, value in execution.events
        if number != case.stmt.value and nodes[number].kind == "Call"
        if nodes[number].text.startswith(f"self.{nodes[number].op}(")
    ]
    return [shape for value in layers for shape in tensors(value)]


def not_of_what_comes_out(case: Case) -> str:
    """`def cut(self, x):  # gives [b, h, t, d]`: what the function returns."""
    if case.stmt.kind != "def" or len(case.claim.terms()) != 1:
        return ""
    ends = [(s, runs) for s, runs in case.room if s.kind == "return" and runs]
    out = bool(ends) and all(_makes_it(case, s, runs, False) for s, runs in ends)
    return "it may be what comes out" if out else ""


def not_of_numbers_one_by_one(case: Case) -> str:
    """`[b, t, d] x [t, d] -> [b, t]` above `(x * w).sum(-1)`: the sides are there, and the end.

    Which operations lead there is not said.
    """
    stages = case.claim.stages
    if len(stages) != 2 or len(stages[0].terms) < 2 or not case.ends_right():
        return ""
    nodes = case.matcher.traced.nodes
    for e in case.runs:
        if any(nodes[n].op in PRODUCTS for n, _ in e.events):
            return ""
        seen = {s for _, v in e.events for s in tensors(v)}
        if not all(_has_one(case, term.dims, seen, e) for term in stages[0].terms):
            return ""
    return "its signs may be of an operation on each number"


def not_of_the_next_line(case: Case) -> str:
    """`y = x  # [b, t * d]`, behind line after line, each time what the next one makes."""
    return "it may be of the next line, as others behind lines are" if case.early else ""


def no_letter_is_loose(case: Case) -> str:
    """`C` for the channels of each layer, whatever their number is: a letter of several sizes."""
    first = case.runs[0].config if case.runs else 0
    sizes = [case.apart.get((first, n), []) for n in case.names() & set(CHANNELS)]
    loose = any(len(own) >= SEVERAL and len(set(own)) > 1 for own in sizes)
    loose = loose and not case.exchanged()
    return "a letter of it stands for several sizes here" if loose else ""


def not_of_what_is_switched_off(case: Case) -> str:
    """`# x = x.mT` and below it `# x: [b, c, t]`: what a line that is switched off made."""
    return "it may be of the line above that is switched off" if case.sighting.behind_code else ""


BESIDE = (
    not_of_what_is_switched_off,
    not_of_what_is_handed,
    not_of_the_lines_below,
    not_of_a_layer_on_the_way,
    not_of_what_comes_out,
    not_of_numbers_one_by_one,
    not_of_the_next_line,
    no_letter_is_loose,
)
