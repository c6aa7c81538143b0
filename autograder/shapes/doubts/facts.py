"""What speaks against calling a comment false: one fact a function, each on its own.

A comment that is not true is called false only where no fact doubts it. `FACTS` is the whole of the
policy: the five conditions, and what each of them asks. A fact gives the reason for its doubt, or
an empty text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from autograder.shapes.binding import CODE
from autograder.shapes.doubts.beside import BESIDE
from autograder.shapes.doubts.by_the_code import DECIDED
from autograder.shapes.doubts.case import Case, in_one_call, made, opened
from autograder.shapes.doubts.elsewhere import ELSEWHERE
from autograder.shapes.doubts.other_sizes import (
    OTHER_SIZES,
    not_a_name_of_its_own,
    numbers_that_hold,
)
from autograder.shapes.doubts.products import PRODUCTS
from autograder.shapes.doubts.proof import names_are_proven
from autograder.shapes.doubts.readings import READINGS, REMARK, names_of_the_call
from autograder.shapes.doubts.slips import explained_by_a_slip
from autograder.shapes.match import results, unpacks
from autograder.shapes.places.layout import MAKES
from autograder.shapes.recording import Execution, Weight, hides, tensors
from autograder.shapes.text.dims import (
    Dims,
    crossed,
    factors,
    shape_fits,
    shape_names,
    without,
)
from autograder.shapes.text.glue import leads_on, of_another_expression
from autograder.shapes.text.lexer import Token, plain, tokens
from autograder.shapes.text.names import normal
from autograder.shapes.tracer import flat

OFTEN = 6  # true comments above, beside which another one is not of axes that its line joins
NEAR = 3  # statements before and after, whose tensors a comment of its own line may be about
ANOTHER_CASE = {"case", "or", "input", "power", "after", "below", "with"}  # behind a shape
REASONS, BREAKS = (".", "because", "since"), ("comma", "minus")  # a clause ends at them
NOT = ("not", "no longer", "instead of", "rather than", "unlike")
TURNS = {"permute", "transpose", "reshape", "view", "flatten", "rearrange", "unsqueeze", "squeeze"}
OTHER = "the expression that is named is not on this line"
JOINS = ("stack", "cat", "concat", "hstack", "vstack")
WEIGHTS = ("w", "weight", "weights", "bias")


# --- 1. it is surely a shape ----------------------------------------------------------------------
def written_as_a_shape(case: Case) -> str:
    """Brackets, crosses or commas; no list of shapes, and no remark in round brackets."""
    for term in case.claim.terms():
        signed = any(t.cross for t in tokens(term.text))  # `(b * t * 1, b * t * d)`
        listed = all(crossed(d) if signed else len(factors(d)) > 2 for d in term.dims)
        if len(term.dims) > 1 and listed:  # `[b x t, b x t / 2]`
            return "it may be a list of shapes"
        letters = all(len(n) <= 2 for n in case.names())  # `part (b, c) of the figure`
        most = 2 if case.claim.tail and letters else REMARK
        moved = len(term.dims) > 2 and not case.claim.tail and case.exchanged()  # in another order
        sure = any(t.sure for t in case.claim.terms()) or moved
        numbers = [d for d in term.dims if d[0] == "num" and d[1] > 1]
        if not shape_names(term.dims) and not all(map(case.told_again, numbers)):
            most = -1 if term.label else 0  # `crop (3, 64, 64)`
        sure = sure or case.sighting.place == "docstring"
        if term.style in ("(", "{", "<") and case.claim.words > most and not sure:
            return "it may be a remark, and no shape"
    return ""


def not_set_aside(case: Case) -> str:
    """No word says that it is not what this line makes."""
    if case.claim.aside:
        return "it is not clear which tensor is meant"
    own = case.claim.role_of & set(flat(case.stmt.targets))
    if case.claim.role == "input" and not own and (case.sighting.trailing or not case.nowhere):
        return "it may be what comes in"
    fewer = any(len(case.last.dims) < len(s) for e in case.runs for s in made(case, e))
    if_so = [t.text.lower() for t in tokens(case.sighting.text)[:1]] == ["if"]
    lead, _, rest = plain(case.sighting.text).rpartition(case.last.text)
    before, behind = tokens(lead), tokens(rest)
    if case.stmt.kind == "def" and any(t.kind == "output" for t in (*before, *behind[:1])):
        return "it may be what comes out"
    there = itertools.takewhile(lambda t: not leads_on(t), before[::-1])  # not of the way to it
    each = any(t.kind == "each" for t in (*there, *behind))
    item = each and fewer and case.last.label not in flat(case.stmt.targets)
    next_ = [t for t in behind if t.kind not in ("comma", "open", "close")][:1]
    purpose = case.led_to
    both = [t.text for t in behind[:2]] in (["for", "both"], ["for", "all"])  # that are made
    next_ = [t for t in next_ if t.text != "for" or not (purpose or both)]  # `to [..] for heads`
    called = rest.startswith(".") and rest[1:2].isalpha()  # `(t, b, d).transpose(0, 1)`
    other = any({t.kind, t.text} & ANOTHER_CASE for t in next_)  # `[t, b] in keras`
    if called or (other and not case.out_of_order()):
        return "it is true of another case perhaps"
    told = case.claim.told and any(t.kind == "or" for t in tokens(case.sighting.text))
    if case.sighting.place == "docstring":  # it describes what it names: `the previous step (b, d)`
        before = [t for t in before if t.text in NOT]
    clause = itertools.takewhile(lambda t: t.kind not in BREAKS and t.text not in REASONS, behind)
    aside = any(t.kind == "aside" for t in (*before, *clause))
    if aside or item or if_so or told:  # `[t, d] for each sample`
        return "the words around it leave open what is meant"
    return ""


# --- 2. it is surely about this tensor ------------------------------------------------------------
def makes_a_tensor(case: Case) -> str:
    """The statement ran to its end, and made a tensor."""
    stmt, runs = case.stmt, case.runs
    if not runs:
        return "this line never ran"
    stopped = [e for e in runs if not e.finished and e.last(stmt.value) is None]
    if stmt.kind in ("assign", "augmented", "expression") and stopped:
        return "the code stopped here"
    if stmt.kind not in MAKES and not case.subject():
        return "it is not clear which tensor is meant"
    if any(isinstance(e.last(stmt.value), Weight) for e in runs):
        return "a layer is no tensor"
    if stmt.kind == "expression" and stmt.receiver is None:
        return "this line makes no tensor"
    unseen = unpacks(stmt) and any(hides(e.last(stmt.value)) for e in runs)
    if (unseen and not case.subject()) or not all(made(case, e) for e in runs):
        return "what this line makes has no shape of its own"
    return ""


def one_shape(case: Case) -> str:
    """What it makes has one shape, the same every time."""
    if _is_as_long_as_it_ran(case):
        return "the shape is not the same every time"
    named = case.last.label if case.last.label in flat(case.stmt.targets) else ""
    shapes = [made(case, e) if not named else tensors(e.after.get(named)) for e in case.runs]
    apart = {len(results(case.stmt, e)) for e in case.runs} if unpacks(case.stmt) else ()
    anew = opened(case.last.dims, set(case.unproven), case)
    one = not unpacks(case.stmt) or len(case.sighting.claims) > 1
    one = one or any(shape_fits(anew, s, lookup) for _, lookup, s in case.seen())
    ranks = {len(s) for of in shapes for s in of}
    one = one and not (case.nowhere and len(case.last.dims) in ranks)  # it is of none of them
    if (one and any(len(set(m)) > 1 for m in shapes)) or len(apart) > 1:  # `q, k = a, b`
        return "this line makes tensors of several shapes"
    if any(len(set(map(tuple, m))) > 1 for m in case.by_call(shapes)) and any(
        case.scope.free(n, case.runs[0]) for n in case.names()
    ):
        return "the shape is not the same every time"
    held = [case.matcher.holds(case.claim, case.sighting, case.stmt, e) for e in case.runs]
    if any(any(h) and not all(h) for h in case.by_call(held)):
        return "the shape is not the same every time"
    apart = [h and not _the_same_here(case, e) for h, e in zip(held, case.runs, strict=True)]
    if in_one_call(apart, case.runs) and not all(held):
        return "it is true of another call"
    return ""


def _is_as_long_as_it_ran(case: Case) -> bool:
    """`torch.stack(tokens)` of a list that grows in a loop until something stops it: how long it is
    depends on the numbers."""
    node, nodes = case.matcher.node(case.stmt), case.matcher.traced.nodes
    if node.op not in JOINS:
        return False
    joined = {nodes[i].text for i in node.operands}
    stmts = [stmt for stmt, _ in case.room]
    grows = [s for s in stmts if case.matcher.node(s).op == "append"]
    grows = [s for s in grows if nodes[case.matcher.node(s).operands[0]].text in joined]
    return any(
        low <= s.line <= high and any(e.leaves and low <= e.line <= high for e in stmts)
        for low, high in (h.body for h in stmts if h.kind == "header")
        for s in grows
    )


def _the_same_here(case: Case, execution: Execution) -> bool:
    """Whether a name of the claim has the size of another one, which the code tells apart.

    In a call for which `q_len` is `k_len`, one is as true as the other.
    """
    every = {n for group in case.scope.comments for n in group}

    def sizes(e: Execution) -> dict[str, int | None]:
        return {n: s for n, (s, by) in ((n, case.scope.fixed(n, e)) for n in every) if by == CODE}

    here, used = sizes(execution), set(map(normal, case.names()))
    if _alike_in_it(case, execution):
        return True
    return any(
        here[a] == here[b] and there[a] != there[b]
        for there in map(sizes, case.runs)
        for a in used & set(here) & set(there)
        for b in set(here) & set(there)
    )


def _alike_in_it(case: Case, execution: Execution) -> bool:
    """Whether two names of the claim are one size in this execution, and two in another."""
    pairs = [*itertools.combinations(sorted(case.names()), 2)]
    found = [case.scope.lookup(e) for e in case.runs]
    here = case.scope.lookup(execution)
    return any(here(a) == here(b) and any(f(a) != f(b) for f in found) for a, b in pairs)


def labelled_as_it(case: Case) -> str:
    """No label names another tensor, or the weight of a layer."""
    own = set(flat(case.stmt.targets))
    subject = case.subject()
    lead = tokens(plain(case.sighting.text).partition(case.last.text)[0])
    other = of_another_expression(lead, case.matcher.node(case.stmt).text)
    if other and any(t.text == "]" for t in lead[-2:]):  # `h[-1]: [b, d]`, whatever `h` is
        return OTHER
    if subject in own:
        return ""
    if subject:
        prose = case.claim.words > 2 and case.sighting.place != "docstring"
        if prose and not case.claim.tail:  # `the rows of x and y: [t, d]`
            return "the words around it leave open what is meant"
        there = all(tensors(e.before.get(subject)) for e in case.runs)
        return "" if there else "the tensor that is named is not here"
    if other:
        return OTHER
    if _is_of_a_step(case, lead):
        return "a call on the way is named, and not what this line makes"
    stages = case.claim.stages
    labels = {t.label for t in stages[-1].terms if t.label}
    if len(stages) == 1 and len(stages[0].terms) > 1:
        labels = set()  # the operands of a product have their own names
    times = any(t.kind == "times" for t in tokens(case.sighting.text))  # `q @ k.mT: [b, t, t]`
    named = set() if times else {label.split(".")[0] for label in labels}
    named |= _misspelt(labels, case)
    if (labels | named) & (case.tensors - own) and case.stmt.kind != "return":
        return "the tensor that is named is not what this line makes"
    begins = {label.lower().split("_")[0] for label in labels - case.tensors}
    here = {part for t in tokens(case.matcher.node(case.stmt).text) for part in t.text.split(".")}
    layer = here & set(WEIGHTS) or any(
        isinstance(v, Weight) for e in case.runs for _, v in e.events
    )
    if layer and begins & set(WEIGHTS) and len(case.last.dims) <= 2:
        return "the weight of a layer is not looked at"
    foreign = labels - own - _words(labels)
    every = {t.label for c in case.sighting.claims for t in c.terms()} - {""}
    known = any(map(case.in_code, every)) or not case.nowhere
    several = case.nowhere and _one_is_true(case)
    if case.sighting.place in ("above", "below", "between") and foreign and known and not several:
        return "the tensor that is named is not on this line"
    return ""


def _misspelt(labels: set[str], case: Case) -> set[str]:
    """The names that a statement reads and a label all but spells: `feature: [..]`, of
    `features`."""
    read = {t.text for t in tokens(case.matcher.node(case.stmt).text)}
    near = {f"{label}s" for label in labels} | {label.removesuffix("s") for label in labels}
    return near & read


def _is_of_a_step(case: Case, lead: list[Token]) -> bool:
    """`the output of conv(): [b, c, t]` above `conv(x)[:, -1]`: whether a call is named whose
    result is worked on in the same statement."""
    nodes = case.matcher.traced.nodes
    steps = {n for e in case.runs for n, _ in e.events} - {case.stmt.value}
    called = {nodes[n].op for n in steps if nodes[n].kind == "Call"}
    pairs = zip(lead, lead[1:], strict=False)
    named = {one.text.rsplit(".", 1)[-1] for one, two in pairs if two.text == "(" and two.glued}
    outer = nodes[case.stmt.value].op if case.stmt.value is not None else ""
    return bool(named & called - {outer})


def _one_is_true(case: Case) -> bool:
    """`h_n: [..]`, `c_n: [..]` above `out, state = rnn(x)`: whether the other one is told right."""
    others = [c for c in case.sighting.claims if c is not case.claim and c.stages]
    others = [c for c in others if all({t.label} - case.tensors - {""} for t in c.terms())]
    return any(len(c.terms()) == 1 and case.fits(c.terms()[0].dims) for c in others)


def _words(labels: set[str]) -> set[str]:
    """Labels that are words of a sentence, and no names: `queries [b, t, d]`, `về [b, t, d]`."""
    return {n for n in labels if n.isalpha() and (len(n) > 2 or not n.isascii())}


def placed_beside_it(case: Case) -> str:
    """At the end of the line, or next to one statement that it can be about."""
    place, styles = case.sighting.place, case.styles
    low, high = sorted((case.sighting.line, case.stmt.line))
    between = sum(low < s.line < high and s.kind in MAKES for s, _ in case.room)
    alone = place == "named" and len(case.sighting.stmts) == 1
    if alone and between > NEAR and case.stmt.kind != "def":
        return "it may be about another line"
    if alone or case.part or place in ("end", "link", "docstring"):
        return ""
    if _tells_of_more(case):
        return "it may tell of several steps"
    if case.out_of_order():
        return ""
    if place != "inner" and case.nowhere:
        return ""
    if {t.label for t in case.claim.terms()} & set(flat(case.stmt.targets)):
        return ""
    one = (case.claim.role == "output" or case.led_to) and len(case.sighting.block) < 2
    if len({c.line for c in case.sighting.claims}) > 1 and not one:
        return "it may tell of several steps"
    if place == "inner":
        begun = case.sighting.line == case.stmt.line and case.nowhere  # `f(x,  # [b, t, d]`
        return "" if case.argument or begun else "it stands inside a statement"
    above, below = styles.get("above", 0), styles.get("below", 0)
    one = place == "above" and not any(_apart(case, s) for s in case.sighting.block)
    if (one and below <= above) or (place != "below" and case.begins_here()):
        return ""
    if case.always_there() or (place == "between" and not _near(case)):
        return ""
    return "it may be about another line"


def _near(case: Case) -> bool:
    """Whether a tensor around has the shape, or would for some size of what is not proven."""
    dims = opened(case.last.dims, {*case.unproven, *case.foreign, *case.lengths}, case)
    every = [(s, e) for s, runs in case.near for e in runs]
    made_ = (x for s, e in every for _, v in e.events for x in tensors(v))
    find = case.scope.lookup(case.runs[0])
    return case.alive(dims, None) or any(shape_fits(dims, x, find) for x in set(made_))


def _tells_of_more(case: Case) -> bool:
    """Whether a comment above tells of later lines, too: by numbers (`1. cut`, `2. project`), a
    step of a chain that is told again, or an operation that a later line has and this one not."""
    cases = case.sighting.place == "block" and len(case.sighting.claims) > 1  # above an `if`
    if case.sighting.listed or cases:
        return True
    shapes = [tuple(t.dims for t in s.terms) for s in case.claim.stages]
    if len(set(shapes)) + 1 < len(shapes) and case.ends_right():
        return True
    lead = plain(case.sighting.text).partition(case.last.text)[0]
    words = {t.text.lower() for t in tokens(lead)} & TURNS
    own = {t.text.rsplit(".", 1)[-1] for t in tokens(case.matcher.node(case.stmt).text)}
    later = {
        t.text.rsplit(".", 1)[-1]
        for s, _ in case.room
        if s.line > case.stmt.line
        for t in tokens(case.matcher.node(s).text)
    }
    return bool(words & later - own) and not words & own


def _apart(case: Case, stmt_id: int) -> bool:
    """Whether another statement without a comment makes tensors of other shapes than this."""
    mine = [results(case.stmt, e) for e in case.runs]
    return stmt_id in case.bare and any(
        s.id == stmt_id and [results(s, e) for e in runs] != mine for s, runs in case.room
    )


def nothing_near_has_it(case: Case) -> str:
    """No tensor that is alive within three statements has the shape that a comment above claims."""
    own = set(flat(case.stmt.targets))
    sentence = case.claim.told and len(case.claim.stages) == 1 and case.claim.role != "output"
    sentence = sentence and not case.led_to
    if case.sighting.trailing and sentence and case.last.label not in own:  # `split, then [..]`
        return "a tensor near this line has that shape" if case.seen_near() else ""
    named = case.stmt.kind == "def" or case.part or case.sighting.place == "docstring"
    if case.sighting.trailing or named or case.nowhere:
        return ""  # what comes in is told by its name
    chain = len(case.claim.stages) > 1
    if chain and (case.ends_right() or _takes_its_operands(case)):
        return ""  # a step of it is wrong
    if (case.last.label in own or case.claim.role == "output") and not chain:
        name = {case.last.label} & own
        was = bool(name) and not (case.below or case.led_to or case.as_always())
        was = was and case.alive(without(case.last.dims, case.foreign), name)
        if name and _again(case):
            return "a tensor near this line has that shape"
        return "it may be what comes in" if was else ""  # the shape that `x` has until here
    # Then only what the line itself changes can be meant, unless several shapes are told.
    sure = case.as_always()
    becomes = (sure and (case.plain() or case.below)) or (case.led_to and not case.claim.tail)
    claims = (case.claim, *case.claim.others)
    for dims in (t.dims for c in claims for t in c.stages[-1].terms):
        dims = opened(dims, set(case.unproven), case) if case.unproven else dims
        dims = without(dims, case.foreign)
        fewer = all(len(s) < len(dims) for e in case.runs for s in made(case, e))
        few = sure and fewer and case.styles.get("above", 0) < OFTEN
        if few and not (chain or case.led_to or case.below) and case.alive(dims, own):
            return "it may be what comes in"
        if not (chain or becomes) and case.alive(dims, own if sure else None):
            return "a tensor near this line has that shape"
        if _made_near(dims, sure, case):
            return "a tensor near this line has that shape"
    return ""


def _takes_its_operands(case: Case) -> bool:
    """`[b, t, d] @ [b, d, t] -> [b, t, d]`: whether the line multiplies these two."""
    return len(case.claim.stages[0].terms) > 1 and case.begins_here()


def _again(case: Case) -> bool:
    """Whether the next statement makes the same name again, and then with the last shape."""
    later = [(s, runs) for s, runs in case.near if s.line > case.stmt.line][:1]
    later = [(s, runs) for s, runs in later if runs and s.id not in case.spoken_for]
    return any(case.last.label in flat(s.targets) for s, _ in later) and all(
        any(shape_fits(case.last.dims, made_, case.scope.lookup(e)) for made_ in results(s, e))
        for s, runs in later
        for e in runs
    )


def _made_near(dims: Dims, sure: bool, case: Case) -> bool:
    """Whether a statement near makes such a tensor, and no other comment tells what it makes.

    `return x` makes none. In the paragraph below always; else only where nobody can be sure which
    line is meant.
    """
    begun = not case.below and (case.begins_here() or case.led_to)  # then no line before is meant
    for stmt, runs in case.near:
        before = begun and stmt.line < case.stmt.line
        asked = stmt.id in case.sighting.block or not (sure or begun)
        named = case.matcher.node(stmt).kind == "Name"
        if before or named or not asked or stmt.id in case.spoken_for:
            continue
        fits_it = [
            any(shape_fits(dims, s, case.scope.lookup(e)) for s in results(stmt, e)) for e in runs
        ]
        if in_one_call(fits_it, runs):
            return True
    return False


def made_in_any_case(case: Case) -> str:
    """Not of `a if asked else b`, which makes another tensor in another call."""
    asks = case.matcher.node(case.stmt).kind == "IfExp"
    return "the line makes something else where it is asked otherwise" if asks else ""


FACTS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("surely about this tensor", makes_a_tensor),
    ("surely a shape", written_as_a_shape),
    ("surely a shape", numbers_that_hold),
    ("surely about this tensor", not_set_aside),
    ("surely about this tensor", made_in_any_case),
    ("surely about this tensor", labelled_as_it),
    ("surely about this tensor", one_shape),
    ("surely about this tensor", placed_beside_it),
    ("surely about this tensor", nothing_near_has_it),
    ("every name is proven", names_are_proven),
    ("every name is proven", not_a_name_of_its_own),
    ("every name is proven", names_of_the_call),
    *(("every reading is false", fact) for fact in (*READINGS, *PRODUCTS, *OTHER_SIZES)),
    *(("every reading is false", fact) for fact in (*DECIDED, *BESIDE, *ELSEWHERE)),
    ("a slip explains it", explained_by_a_slip),
)


def evidence(case: Case) -> list[tuple[str, str, str]]:
    """Each condition, the fact that was asked, and the reason for doubt where there is one."""
    found = []
    for condition, fact in FACTS:
        reason = fact(case)
        found.append((condition, fact.__name__.replace("_", " "), reason))
        if reason:
            break
    return found


def unlike(found: Sequence[tuple[str, str, str]]) -> bool:
    """Whether nothing but the want of a slip speaks against it: another line may be meant."""
    return bool(found) and found[-1][0] == FACTS[-1][0]
