"""What else a comment may mean that is not true: other readings of it.

Each function of the first part is a fact for `facts.FACTS`: it gives the reason for its doubt where
another reading would make the comment true, or an empty text.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace

from autograder.shapes.binding import CODE
from autograder.shapes.doubts.case import Case, made
from autograder.shapes.doubts.chains import is_by_its_begin
from autograder.shapes.match import results, unpacks
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    evaluate,
    names_of,
    number_apart,
    rounded,
    shape_fits,
    uneven,
    without,
)
from autograder.shapes.text.flat import instead, pieces_of, runs_over, segments_of, spaced, starred
from autograder.shapes.text.lexer import WORDS, plain, tokens
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import flat

REMARK = 6  # words beside a shape in round brackets, from which on it may be a remark
SAID = 2  # other true comments that name the batch by a letter, after which to omit it is a slip
MAX_WORDS = 60  # words of a comment that may name a size


# --- other readings -------------------------------------------------------------------------------
def no_comma_is_missing(case: Case) -> str:
    """`[batch seq, hidden]` may be `[batch, seq, hidden]`."""
    for term in (c.stages[-1].terms[-1] for c in (case.claim, *case.claim.others)):
        apart = names_of(("", *term.dims)) & set(case.unproven)
        if term.style == "x":  # nobody leaves out a cross: `n x Head Dimension`
            apart = {n for n in apart if not all(p.istitle() for p in n.split("_"))}
        if any(n not in term.text and not names.known(n) for n in apart):  # two words
            return "a comma may be missing"
        words = tuple(
            ("name", part)
            for dim in term.dims
            for part in (dim[1].split("_") if dim[0] == "name" and " " in term.text else [None])
            if part
        )
        typed = tuple(("name", p) for d in term.dims for p in str(d[-1]).split("__"))  # `[b_ t]`
        for apart in (words, typed, tuple(d for dim in term.dims for d in number_apart(dim))):
            if len(apart) > len(term.dims) and any(
                shape_fits(apart, s, case.scope.lookup(e))
                for e in case.runs
                for s in results(case.stmt, e)
            ):
                return "a comma may be missing"
    return ""


def no_half_is_rounded(case: Case) -> str:
    """`irfft(x)  # [b, t]` is true of an even `t`, and the sizes of the runs are odd."""
    if case.ends_right():
        return ""
    call = case.matcher.node(case.stmt).kind == "Call"
    for e in case.runs:
        lookup = case.scope.lookup(e)
        sizes = [evaluate(d, lookup) for d in case.last.dims]
        even = tuple(("any", "?") if uneven(d, lookup) else d for d in case.last.dims)
        shapes = [s for s in made(case, e) if not (call and rounded(sizes, s))]
        if (
            even == case.last.dims
            and shapes
            or not all(shape_fits(even, s, lookup) for s in shapes)
        ):
            return ""
    return "a size may be rounded"


def nothing_on_the_way(case: Case) -> str:
    """Where words stand around, or above a line, the shape of something on the way counts."""
    claim, last = case.claim, case.last
    many = last.count.isdecimal() or case.scope.fixed(last.count, case.runs[0])[1]
    tail = claim.tail and not case.explained_behind()
    wordy = claim.told or tail or claim.words > REMARK or many
    comes = wordy and not case.led_to  # `split to [..]` is no word on what comes in
    hold = case.matcher.passes if comes else case.matcher.made_on_the_way
    chain = len(claim.stages) > 1  # it may stop before dimensions are joined
    turned = chain and case.plain() and case.exchanged() and case.begins_here()
    always = turned or (case.as_always() and not chain)
    asked = wordy or not (case.sighting.trailing or always)
    asked = asked and not (case.part or case.sighting.place == "docstring")  # it is named
    was = case.runs and last.label in case.runs[0].before  # `x = f(x)  # x: [..]`
    own = last.label in flat(case.stmt.targets) and not (comes and was)
    asked = asked and not own and not (case.is_output or case.promised)
    so_far = asked and all(case.matcher.goes_before(claim, case.stmt, e) for e in case.runs)
    if len(claim.stages) > 1 and (tail or so_far):  # `[..] -> [..], then transposed`
        claim = replace(claim, stages=claim.stages[-1:], others=())
    there = asked and all(hold(claim, case.stmt, e) for e in case.runs)
    there = there or all(_spread_over_it(case, e) for e in case.runs)
    return "it may be a step on the way" if there else ""


def _spread_over_it(case: Case, execution: Execution) -> bool:
    """Whether what is told was made on the line to be spread over more: `x * w.view(1, -1, 1)`."""
    if len(case.claim.stages) > 1 or len(case.claim.terms()) > 1:
        return False
    nodes, values = case.matcher.traced.nodes, dict(execution.events)
    return any(
        shape_fits(case.last.dims, s, case.scope.lookup(execution))
        and any(math.prod(s) < math.prod(whole) for whole in tensors(value))
        for node, value in execution.events
        if nodes[node].kind == "BinOp" and nodes[node].op != "@"
        for part in nodes[node].operands
        if nodes[part].kind in ("Call", "Subscript")
        for s in tensors(values.get(part))
    )


def not_a_product_on_the_way(case: Case) -> str:
    """`(q @ k).squeeze(1)  # [..] @ [..] -> [..]` may tell of the product alone."""
    stages = case.claim.stages
    if (
        len(stages) > 1
        and len(stages[-2].terms) > 1
        and all(case.matcher.product_on_the_way(case.claim, case.stmt, e) for e in case.runs)
    ):
        return "it may be a step on the way"
    return ""


def not_the_next_step(case: Case) -> str:
    """`x = x.mT  # [b, c, t] -> [b * t, c]` may tell what the next line makes of it."""
    stages = case.claim.stages
    later = [(s, runs) for s, runs in case.near if s.line > case.stmt.line][:1]
    later = [runs for s, runs in later if case.goes_into(s)]
    if len(stages) != 2 or not later or any(len(s.terms) > 1 for s in stages):
        return ""
    first, last = (s.terms[0].dims for s in stages)
    here = all(shape_fits(first, s, lookup) for _, lookup, s in case.seen())
    letters = {n for n in names_of(("", *last)) if len(n) == 1} | set(case.unproven)  # used anew
    anew = without(last, letters)
    there = all(
        any(
            shape_fits(anew, s, case.scope.lookup(e))
            and not shape_fits(first, s, case.scope.lookup(e))
            for n, v in e.events
            if case.matcher.traced.nodes[n].operands  # not what stands there already
            for s in tensors(v)
        )
        for e in later[0]
    )
    before = any(
        shape_fits(last, s, case.scope.lookup(e))
        for e in case.runs
        for _, v in e.events
        for s in tensors(v)
    )
    return "it may be a step of the next line" if here and there and not before else ""


def in_order(case: Case) -> str:
    """Shapes that only a comma joins need not be the operands."""
    if not case.ends_right():
        return ""
    loose = any(s.joined in (",", "*") for s in case.claim.stages)
    return "it lists shapes in an order of its own" if loose else ""


def not_one_item(case: Case) -> str:
    """`x @ x.mT  # [t, t]` may tell of each item, where no other comment names the batch.

    Where words are written, two comments of other functions that name it are enough.
    """
    dims = case.last.dims
    if case.begins_here():
        return ""  # with the whole of what enters
    if not dims or not all(
        len(s) > 1 and shape_fits(dims, s[1:], lookup) for _, lookup, s in case.seen()
    ):
        return ""
    shapes = made(case, case.runs[0])
    words = any(len(n) > 2 for n in case.names())
    if case.claim.told and not words and not case.last.sure:  # `lower triangular (t, t)`
        return "it may be the shape of each item"
    whole = {
        stmt.id
        for _, stmt in case.twins
        for e in case.at(stmt)[:1]
        for s in results(stmt, e) or [s for v in e.before.values() for s in tensors(v)]
        if (words and len(s) >= len(shapes[0])) or s[:1] in [made_[:1] for made_ in shapes]
    }
    apart = [{n for n, v in e.before.items() if v == s[0]} for e, _, s in case.seen()]
    called = all(any("." not in n for n in names_) for names_ in apart)  # `b, c, t = x.shape`
    if len(whole) >= (1 if words or called else SAID):
        return ""
    plain = words and not case.claim.told  # no `for each sample`, in any language
    if plain and all(case.told_elsewhere(e, s[0]) for e, _, s in case.seen()):
        return ""
    line, found = case.sighting.line, case.scope.confirmed
    named = (len(found.lines_of(e.config, s[0]) - {line}) >= SAID for e, _, s in case.seen())
    return "" if plain and all(named) else "it may be the shape of each item"


def not_read_flat(case: Case) -> str:
    """`batch x t, width`, `[batch, t], width`: read without its signs, it is the right shape.

    So is `(*, t, *, d)`, where each star may be any number of dimensions, or none.
    """
    dims = case.last.dims
    if case.each(lambda s, lookup: spaced(case.last, s, lookup) or starred(dims, s, lookup)):
        return "its signs leave open where a dimension begins and ends"
    segments = segments_of(tokens(case.sighting.text))
    for part in segments[-1:] if len(case.claim.stages) > 1 else segments:
        pieces = pieces_of(part)
        over = case.each(lambda s, lookup, part=part: runs_over(case.last, part, s, lookup))
        if over or (pieces and case.fits(pieces)):
            return "its signs leave open where a shape begins and ends"
    return ""


def not_told_in_words(case: Case) -> str:
    """`[t, d] without the batch`, `[b, t, d] x heads`: words may name the size that is missing."""
    text = plain(case.sighting.text)
    for term in case.claim.terms():
        text = text.replace(term.text, " ")
    words = [t.text for t in tokens(text) if t.word and t.kind != "times"][:MAX_WORDS]
    first = any(names.concept(w) == "batch" for w in words)
    for e in case.runs:
        lookup, given = case.scope.lookup(e), case.scope.sizes(e.config, e.unit[0])
        meant = [w for w in words if names.concept(w)]
        sizes = {names.by_concept(names.normal(w), given) for w in meant}
        sizes |= set(map(lookup, words)) - {None}
        for s in made(case, e):
            told = [i for i, n in enumerate(s) if n in sizes or (first and i == 0)]
            if not any(shape_fits(case.last.dims, s[:i] + s[i + 1 :], lookup) for i in told):
                return ""
    return "the words around it may name what is missing"


def not_joined_in_words(case: Case) -> str:
    """`[b * n, t, d] unfolded`: words behind it may tell of dimensions that are joined or split."""
    dims = case.claim.stages[0].terms[0].dims  # of `[b * n, t] viewed as [b, n, t]` the first
    told = (case.claim.tail or case.ends_right()) and not case.out_of_order()
    for _, lookup, s in case.seen():
        sizes = [evaluate(d, lookup) for d in dims]
        if not told or None in sizes or sorted([*sizes, 1]) == sorted([*s, 1]):
            return ""
        one, other = (list(itertools.accumulate(n, operator.mul)) for n in (sizes, s))
        if one[-1:] != other[-1:] or not (set(one) < set(other) or set(other) < set(one)):
            return ""
    return "the words behind it may tell of dimensions that are joined"


def not_one_of_several(case: Case) -> str:
    """`n x [b, t, d] -> [b, t, n * d]`, `c x h -> k x h`: a step may be of each of several."""
    stages = case.claim.stages
    if len(stages) < 2 or any(len(s.terms) > 1 for s in stages):
        return ""
    first, last, right = stages[0].terms[0].dims, case.last.dims, case.ends_right()
    counted = any(s.terms[0].count for s in stages[:-1])
    counted = counted or any(t.kind in ("along", "each") for t in tokens(case.sighting.text))
    bare = tuple(d for d in first if d != ("num", 1))
    all_told = any(d in (("any", "*"), ("...",)) for d in first)  # `(*, t, d)`: the others, too
    for e in case.runs:
        lookup = case.scope.lookup(e)
        seen = {s for _, v in e.events for s in tensors(v)}
        ends = {s[-n:] for s in seen for n in range(1, len(s))} - seen
        ones = {tuple(n for n in s if n != 1) for s in seen}
        short = not all_told and len(first) == len(last)
        short = short and any(shape_fits(first, s, lookup) for s in ends)
        extra = right and bare != first and any(shape_fits(bare, s, lookup) for s in ones)
        # `(h, w) -> (1, 1)`, `(n, c, 1, 1) -> (n, c)`
        if not (short or extra or (counted and right)):
            return ""
    return "it may be the shape of each item"


def not_a_pattern_of_its_own(case: Case) -> str:
    """`b t (h d) -> b h t d`: an einops pattern has its own letters, and `d` is what it says."""
    terms = [t for s in case.claim.stages for t in s.terms]
    if len(terms) != 2 or not any("(" in t.text and t.style == " " for t in terms):
        return ""
    wide, apart = sorted((t.dims for t in terms), key=len)
    for e in case.runs:
        seen = {s for _, v in e.events for s in tensors(v)}
        letters = [
            {d[1]: n for d, n in zip(apart, s, strict=True) if d[0] == "name"}
            for s in seen
            if len(s) == len(apart)
        ]
        if not any(shape_fits(wide, s, of.get) for of in letters for s in seen):
            return ""
    return "its letters may be those of a pattern"


def no_letter_is_of_the_chain(case: Case) -> str:
    """`(b, n, c) -> (b, c, h, w)`: a letter that both ends have may be of this chain alone."""
    stages = case.claim.stages
    if len(stages) < 2 or len(stages[0].terms) > 1:
        return ""
    if is_by_its_begin(case):
        return "a letter may be of this chain alone"
    first, last = stages[0].terms[0].dims, case.last.dims
    both = [i for i, d in enumerate(last) if d[0] == "name" and len(d[1]) < 3 and d in first]
    for e, lookup, shape in case.seen():
        free = [i for i in both if case.scope.fixed(last[i][1], e)[1] != CODE]
        free = [i for i in free if shape[i : i + 1] != (lookup(last[i][1]),)]
        anew = [instead(lookup, {last[i][1]: shape[i]}) for i in free if len(last) == len(shape)]
        if not any(
            shape_fits(last, shape, find)
            and any(shape_fits(first, s, find) for s in case.entered(e))
            for find in anew
        ):
            return ""
    return "a letter may be of this chain alone"


def not_as_for_an_argument(case: Case) -> str:
    """`x: [b, n, t]` of an argument: what a name is there, it may be in the other comments too."""
    asked = case.stmt.kind != "def" and not case.ends_right()
    for label, dims, runs in case.arguments if asked else ():
        there = {(e.config, e.unit): tensors(e.after.get(label)) for e in runs}
        held = []
        for e, lookup, shape in case.seen():
            alike = [s for s in there.get((e.config, e.unit), ()) if len(s) == len(dims)]
            own = {d[1]: n for s in alike for d, n in zip(dims, s, strict=True) if d[0] == "name"}
            held.append(shape_fits(case.last.dims, shape, instead(lookup, own)))
        if held and all(held):
            return "an argument is told with another meaning of its names"
    return ""


def not_the_operands(case: Case) -> str:
    """`(b, t, d) (d, n)`: where each of several shapes is of something that comes in."""
    word = WORDS.get(case.subject()) == "input"  # `input:`, where an argument is called so, too
    if word and all(case.matcher.passes(case.claim, case.stmt, e) for e in case.runs):
        return "it may be what comes in"
    if case.subject() or case.part or case.is_output:
        return ""  # it is compared with what is named, or with the `result:`
    claims = [c for c in case.sighting.claims if c.stages]
    several = len(claims) > 1 or (unpacks(case.stmt) and case.last.style == ",")
    side_by_side = len(claims) > 1 and case.last.label == "" and not case.claim.told
    asked = [case.claim] if side_by_side else claims  # `(b, t, d) (b, t, 1)` behind a product
    if several and all(case.matcher.passes(c, case.stmt, e) for c in asked for e in case.runs):
        return "it may be what comes in"
    first = tokens(case.sighting.text)[:2]
    signed = bool(first) and first[0].kind in ("times", "plus") and not first[0].word
    foreign = case.last.label and case.last.label not in flat(case.stmt.targets)
    if (signed or foreign) and all(
        case.matcher.passes(case.claim, case.stmt, e)
        and all(len(s) > len(case.last.dims) for s in made(case, e))
        for e in case.runs
    ):
        return "it may be what comes in"  # `* [d]`, `scale: [d]`
    name = next((a.text for a, b in itertools.pairwise(first) if b.kind == "arrow"), "")
    if name in case.tensors - set(flat(case.stmt.targets)) and all(
        case.matcher.passes(case.claim, case.stmt, e) for e in case.runs
    ):
        return "it may be what comes in"  # `words -> [b, t]`
    stages = case.claim.stages
    if len(stages) == 1 < len(stages[0].terms):  # `(b * t, d) @ (d, n)`: made flat
        if all(_of_one_item(stages[0].terms, case, e) for e in case.runs):
            return "it may be what comes in, of each item"
        for e in case.runs:
            seen = {math.prod(s) for _, v in e.events for s in tensors(v)}
            sizes = [[evaluate(d, case.scope.lookup(e)) for d in t.dims] for t in stages[0].terms]
            flat_ = any(d[0] == "*" for t in stages[0].terms for d in t.dims)
            if not flat_ or not all(None not in s and math.prod(s) in seen for s in sizes):
                return ""
        return "it may be what comes in"
    return ""


def _of_one_item(terms: Sequence[Term], case: Case, execution: Execution) -> bool:
    """Whether a product is told of each item: `[t, d] @ [d, n]` of `[b, t, d] @ [d, n]`. What has
    no batch to leave out has two dimensions."""
    lookup = case.scope.lookup(execution)
    for _, shapes in case.matcher.operations(execution):
        for first in range(len(shapes) - len(terms) + 1):
            pairs = list(zip([t.dims for t in terms], shapes[first:], strict=False))
            left_out = [len(shape) - len(dims) for dims, shape in pairs]
            whole = [shape for (_, shape), n in zip(pairs, left_out, strict=True) if n <= 0]
            fit = (shape_fits(dims, shape[-len(dims) :], lookup) for dims, shape in pairs)
            if len(whole) < len(pairs) and all(len(s) == 2 for s in whole) and all(fit):
                return True
    return False


def names_of_the_call(case: Case) -> str:
    """A docstring has its own names: only how many dimensions, and their order, is surely wrong.

    Whether one more is given that has the size 1, is up to the caller: `[n]` or `[n, 1]`.
    """
    one = ("num", 1)
    ranks = {len(s) for e in case.runs for s in made(case, e)}
    wide = {sum(n != 1 for n in s) for e in case.runs for s in made(case, e)}
    if sum(d != one for d in case.last.dims) in wide:
        ranks.add(len(case.last.dims))
    if case.sighting.place == "docstring" and _of_each_item(case):
        return "it may be the shape of each item"
    if case.sighting.place == "docstring" and len(case.last.dims) in ranks:
        return "" if case.exchanged() else "the names of a docstring need not be those of the call"
    return ""


def _of_each_item(case: Case) -> bool:
    """Whether what a docstring says is true of each item of a batch, and no other shape in it has
    as many dimensions as this tensor: it may leave the batch out everywhere."""
    dims = case.last.dims
    item = all(len(s) > 1 and shape_fits(dims, s[1:], lookup) for _, lookup, s in case.seen())
    ranks = {len(s) for e in case.runs for s in made(case, e)}
    told = {len(d) for _, d, _ in case.arguments}
    return bool(item and ranks) and not told & ranks


READINGS = (
    no_comma_is_missing,
    no_half_is_rounded,
    nothing_on_the_way,
    not_a_product_on_the_way,
    not_the_next_step,
    not_one_item,
    not_read_flat,
    not_told_in_words,
    not_joined_in_words,
    not_one_of_several,
    not_a_pattern_of_its_own,
    no_letter_is_of_the_chain,
    not_as_for_an_argument,
    not_the_operands,
    in_order,
)
