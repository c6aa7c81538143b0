"""All small changes of a program, each once."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from autograder.tracing.edits.kinds.as_named import of_what_it_is_named
from autograder.tracing.edits.kinds.begun import of_what_is_not_begun
from autograder.tracing.edits.kinds.brackets import of_brackets
from autograder.tracing.edits.kinds.calls import of_calls, of_filled
from autograder.tracing.edits.kinds.commas import of_commas
from autograder.tracing.edits.kinds.conditions import of_conditions
from autograder.tracing.edits.kinds.counts import of_counts
from autograder.tracing.edits.kinds.elsewhere import of_what_stands_elsewhere
from autograder.tracing.edits.kinds.gradients import of_gradients
from autograder.tracing.edits.kinds.habits import of_habits
from autograder.tracing.edits.kinds.hooks import of_hooks
from autograder.tracing.edits.kinds.indices import of_indices
from autograder.tracing.edits.kinds.lacks import of_what_it_lacks
from autograder.tracing.edits.kinds.left_out import of_what_is_left_out
from autograder.tracing.edits.kinds.methods import of_methods
from autograder.tracing.edits.kinds.missing import of_what_is_missing
from autograder.tracing.edits.kinds.moves import of_moves
from autograder.tracing.edits.kinds.names import of_names
from autograder.tracing.edits.kinds.neighbours import of_neighbours
from autograder.tracing.edits.kinds.numbers import of_numbers
from autograder.tracing.edits.kinds.operators import of_identity, of_operators
from autograder.tracing.edits.kinds.pieces import of_pieces
from autograder.tracing.edits.kinds.rounds import of_rounds
from autograder.tracing.edits.kinds.sharing import of_sharing
from autograder.tracing.edits.kinds.siblings import of_siblings
from autograder.tracing.edits.kinds.slices import of_slices
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.edits.kinds.statements import of_statements
from autograder.tracing.edits.kinds.sums import of_sums
from autograder.tracing.edits.kinds.tables import of_tables
from autograder.tracing.edits.kinds.together import of_what_stands_together
from autograder.tracing.edits.kinds.unbound import of_unbound_names
from autograder.tracing.edits.kinds.unread import of_what_is_read

KINDS: tuple[Callable[[Source, ast.AST], Iterator[Edit]], ...] = (
    of_numbers,
    of_slices,
    of_operators,
    of_identity,
    of_calls,
    of_filled,
    of_methods,
    of_what_is_left_out,
    of_what_it_lacks,
    of_pieces,
    of_indices,
    of_unbound_names,
    of_names,
    of_what_stands_elsewhere,
    of_statements,
    of_moves,
    of_habits,
    of_what_is_not_begun,
    of_hooks,
    of_gradients,
    of_rounds,
    of_brackets,
    of_commas,
    of_conditions,
    of_counts,
    of_sharing,
    of_what_is_read,
    of_sums,
    of_tables,
    of_neighbours,
    of_siblings,
    of_what_it_is_named,
    of_what_stands_together,
    of_what_is_missing,
)


# An answer of a hundred lines has some ten thousand changes; each holds the whole text once more.
LONGEST = 12_000  # characters of a text that is changed at all
MOST_MADE = 20_000_000  # characters of all changed texts


def edits(text: str) -> list[Edit]:
    """The small changes of a text, the likeliest first: all of them, or of a very long one those
    that are made first. None of a text that cannot be read, or is too long to be an answer."""
    source = source_of(text)
    if source is None:
        return []
    found: dict[str, Edit] = {}
    made = (edit for node in source.nodes() for kind in KINDS for edit in kind(source, node))
    for edit in itertools.islice(made, MOST_MADE // max(len(text), 1)):
        known = found.setdefault(edit.source, edit)
        if edit.rank < known.rank and not edit.by_name:  # the likelier of two slips it may undo
            found[edit.source] = edit
    found.pop(text, None)
    return sorted(found.values(), key=lambda edit: edit.rank)


def source_of(text: str) -> Source | None:
    """A text with its syntax; None of one that cannot be read, or is too long to be an answer."""
    try:
        return Source(text) if len(text) <= LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
