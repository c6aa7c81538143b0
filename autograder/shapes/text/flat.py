"""How far a shape can be read: without its signs, or with names that may stand for any size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Dims,
    Lookup,
    NotADim,
    aligned,
    alone,
    fits,
    read_dims,
    shape_fits,
    split,
    without,
)
from autograder.shapes.text.lexer import Token, tokens
from autograder.shapes.text.shapes_in_text import Term

MAX_ATOMS = 60  # sizes in one comment that are read without what stands between them


def segments_of(found: list[Token]) -> list[list[Token]]:
    """The tokens between arrows, and behind labels."""
    segments: list[list[Token]] = [[]]
    for token in found:
        if token.kind == "is" and [t.kind for t in segments[-1][-2:-1]] == ["comma"]:
            segments[-1].pop()  # `[b, t], t is the length`
            segments.append([])
        elif token.kind in ("arrow", "spread", "is") and not token.word:
            segments.append([])
        else:
            segments[-1].append(token)
    return segments


def sizes_in(found: list[Token], lookup: Lookup) -> list[int]:
    """What the names of sizes and the numbers among the tokens stand for."""
    sizes = []
    for token in found:
        number = token.text.lstrip("xX") if token.word else token.text
        size = int(number) if number.isdecimal() and len(number) < 9 else None
        if size is None and token.word and token.kind != "times":
            size = lookup(token.text)
        if size is not None:
            sizes.append(size)
    return sizes


def end_of(sizes: list[int], at: int, shape: tuple[int, ...]) -> int | None:
    """Where a row of sizes ends that makes the shape from a place on; a 1 is a size as well."""
    for wanted in shape:
        product, first = 1, at
        while at < len(sizes) and (at == first or product != wanted or wanted == 0):
            product, at = product * sizes[at], at + 1
            if product > wanted:
                return None
        if at == first or product != wanted:
            return None
    return at


def pieces_of(found: list[Token]) -> Dims:
    """`b x c, m x l + m` as four dimensions; none where only one kind of sign stands between."""
    if not any(t.cross for t in found) or not any(t.text == "," for t in found):
        return ()
    dims: Dims = ()
    for piece in split(found, lambda t: t.cross or t.text == ","):
        try:
            dims += read_dims(piece)
        except NotADim:
            return ()
    return dims


def spaced(term: Term, shape: tuple[int, ...], lookup: Lookup) -> bool:
    """Whether dimensions with spaces between make the shape, some of them multiplied.

    Those of `n x [b, t]` make it in any order.
    """
    sizes = sizes_in(tokens(term.text), lookup)
    if term.count:
        return sorted([*sizes_in(tokens(term.count), lookup), *sizes]) == sorted(shape)
    plain = ("open", "close", "number")
    if [t.text for t in tokens(term.text)].count("1") > shape.count(1):
        return False  # `b x 1 x t` is no row of factors
    if term.style == " " or any(not t.word and t.kind not in plain for t in tokens(term.text)):
        return False
    return len(sizes) > 1 and end_of(sizes, 0, shape) == len(sizes)


def runs_over(term: Term, segment: list[Token], shape: tuple[int, ...], lookup: Lookup) -> bool:
    """Whether sizes of a written shape, and of what stands beside it, follow one another so.

    Some of them may be multiplied.
    """
    own, atoms = sizes_in(tokens(term.text), lookup), sizes_in(segment, lookup)
    if len(shape) < 2 or not own or not len(own) < len(atoms) <= MAX_ATOMS:
        return False
    places = [i for i in range(len(atoms)) if atoms[i : i + len(own)] == own]
    mine = {i for p in places[-1:] for i in range(p, p + len(own))}
    for start in range(len(atoms)):
        end = end_of(atoms, start, shape)
        run = set(range(start, end)) if end is not None else set()
        if run & mine and run - mine:
            return True
    return False


def may_be(dims: Dims, shape: tuple[int, ...], unknown: set[str], lookup: Lookup) -> bool:
    """Whether dimensions are a shape for some sizes of the unknown names, one for each.

    One whose usual size is not there may stand for several dimensions: `[points, 2]`.
    """
    for i, dim in enumerate(dims):
        more, behind = len(shape) - len(dims), len(dims) - i - 1
        if dim[0] == "name" and dim[1] in unknown and more > 0 and lookup(dim[1]) not in shape:
            rest, ends = (*dims[:i], *dims[i + 1 :]), (*shape[:i], *shape[len(shape) - behind :])
            if shape_fits(rest, ends, lookup):
                return True
    return shape_fits(without(dims, unknown), shape, lookup) and not clash(dims, shape, unknown)


def instead(lookup: Lookup, sizes: Mapping[str, int]) -> Lookup:
    """With other sizes for some of the names."""
    return lambda name: sizes[name] if name in sizes else lookup(name)


def clash(dims: Dims, shape: tuple[int, ...], among: set[str]) -> bool:
    """Whether one of these names would stand for two sizes.

    `[b, t, t]` is no such name, unless it is `[b, t, 1]`: who thinks of a square takes two lengths
    for one.
    """
    at: dict[str, list[tuple[int, int]]] = {}
    for i, j in aligned(dims, len(shape)) or ():
        for name in among.intersection(alone(dims[i])):
            at.setdefault(name, []).append((i, shape[j]))
    return any(
        m != n and (j > i + 1 or names.counts(name) or 1 in (m, n))
        for name, found in at.items()
        for (i, m), (j, n) in itertools.combinations(found, 2)
    )


def starred(dims: Dims, shape: tuple[int, ...], lookup: Lookup) -> bool:
    """Whether dimensions describe a shape where each star is any number of them, or none."""
    if dims.count(("any", "*")) < 2:
        return False
    ends = {0}  # how much of the shape may be told so far
    for dim in dims:
        if dim == ("any", "*"):
            ends = set(range(min(ends, default=len(shape) + 1), len(shape) + 1))
        else:
            ends = {i + 1 for i in ends if i < len(shape) and fits(dim, shape[i], lookup)}
    return len(shape) in ends


def one_more(long: list, short: list) -> bool:
    """Whether one list is the other with one more in it; None is any number."""
    if len(long) != len(short) + 1:
        return False
    rests = (long[:i] + long[i + 1 :] for i in range(len(long)))
    return any(
        all(None in pair or pair[0] == pair[1] for pair in zip(rest, short, strict=True))
        for rest in rests
    )
