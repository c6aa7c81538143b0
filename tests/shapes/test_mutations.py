"""True comments made false are called false, and what cannot be told apart was left out."""

from collections import Counter

import pytest

from tests.shapes.mutations import Bench, mutants
from tests.shapes.reading import snippets


def measure(every: int) -> dict[bool, Counter]:
    """Mutants made and named, by whether the dimensions are words; one of `every` is judged."""
    counts = {True: Counter(), False: Counter()}
    number = 0
    for snippet in snippets():
        bench = None
        for mutant in mutants(snippet):
            number += 1
            if number % every:
                continue
            bench = bench or Bench(snippet)
            here, elsewhere = bench.named(mutant)
            counts[snippet.words].update(
                made=1, named=here or elsewhere, here=here, beside=elsewhere and not here
            )
    return counts


def claim(counts, capsys) -> None:
    with capsys.disabled():
        for words, count in counts.items():
            print(f"\n{'words' if words else 'letters'}: {dict(count)}")
    assert counts[True]["named"] >= 0.97 * counts[True]["made"] > 20
    # A letter that stands in one comment alone proves nothing, and accuses nobody.
    assert counts[False]["named"] >= 0.90 * counts[False]["made"] > 10


def test_comments_made_false_are_named(capsys):
    claim(measure(every=23), capsys)


@pytest.mark.slow
def test_all_comments_made_false_are_named(capsys):
    claim(measure(every=1), capsys)
