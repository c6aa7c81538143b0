"""True comments made false are called false, and what cannot be told apart was left out."""

from collections import Counter

import pytest

from tests.shapes.mutations import Bench, mutants
from tests.shapes.reading import snippets

# Spellings of which doubt is asked.
ODD = ("other_readings", "shorthand", "steps_and_asides", "beside_the_result")


def measure(snippet_of: int = 1, mutant_of: int = 1) -> dict[bool, Counter]:
    """Mutants made and named, by whether the dimensions are words.

    One of so many snippets is looked at, and of its mutants one of so many.
    """
    counts = {True: Counter(), False: Counter()}
    number = 0
    for snippet in [s for s in snippets() if s.file not in ODD][::snippet_of]:
        bench = None
        for mutant in mutants(snippet):
            number += 1
            if number % mutant_of:
                continue
            bench = bench or Bench(snippet)
            here, elsewhere = bench.named(mutant)
            counts[snippet.words].update(
                made=1, named=here or elsewhere, here=here, beside=elsewhere and not here
            )
    return counts


def claim(counts, capsys, luck: float = 0.0) -> None:
    with capsys.disabled():
        for words, count in counts.items():
            print(f"\n{'words' if words else 'letters'}: {dict(count)}")
    assert counts[True]["named"] >= (0.97 - luck) * counts[True]["made"] > 20
    # A letter that stands in one comment alone proves nothing, and accuses nobody.
    assert counts[False]["named"] >= (0.90 - luck) * counts[False]["made"] > 10


def test_comments_made_false_are_named(capsys):
    claim(measure(snippet_of=6, mutant_of=7), capsys, luck=0.02)  # of 150


@pytest.mark.slow
def test_all_comments_made_false_are_named(capsys):
    claim(measure(), capsys)
