"""`b * t * d` as a shape: stars for commas, as far as what is made tells."""

from __future__ import annotations

from dataclasses import replace

from autograder.shapes.match import results
from autograder.shapes.places.attach import Sighting
from autograder.shapes.recording import wholes
from autograder.shapes.tables import Stmt
from autograder.shapes.text.dims import factors, parts_of
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.reader import Claim
from autograder.shapes.text.shapes_in_text import Term, pairs_of


def commas_for_stars(sighting: Sighting, stmts: dict[int, Stmt], runs: dict) -> Sighting:
    """With `b * t * d` as three dimensions, where all that is made has more than one."""
    found = [(e, stmts[i]) for i in sighting.stmts for e in runs[i]]
    made_ = [w for e, s in found for w in (results(s, e), *wholes(e.last(s.value))[1:])]
    labels = {t.label for c in sighting.claims for t in c.terms()} - {""}
    heads = [{**e.before, **e.after} for e, s in found if s.kind == "def"]
    made_ += [w for head in heads for n in labels & set(head) for w in wholes(head[n])]
    ranks = {len(s) for of in made_ for s in of}
    if not ranks or min(ranks) < 2:
        return sighting

    def read(term: Term) -> Term:
        apart = factors(term.dims[0]) if len(term.dims) == 1 else ()
        if len(apart) > max(ranks) and _holds_a_product(term.text):
            apart = parts_of(term.dims[0], max(ranks))
        return replace(term, dims=apart) if 1 < len(apart) <= max(ranks) else term

    def of(claim: Claim) -> Claim:
        *before, last = claim.stages or (None,)
        stages = (*before, replace(last, terms=tuple(map(read, last.terms)))) if last else ()
        return replace(claim, stages=stages, others=tuple(map(of, claim.others)))

    return replace(sighting, claims=tuple(map(of, sighting.claims)))


def _holds_a_product(text: str) -> bool:
    """Whether brackets within a shape make one dimension of a product: `(b * t) * d`."""
    found = tokens(text)
    around = {0: len(found) - 1}
    return any(j - i > 2 and around.get(i) != j for i, j in pairs_of(found).items())
