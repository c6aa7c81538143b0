"""The corpus: what students write, and what must be said of each line of it."""

import pytest

from tests.shapes.reading import snippets, verdicts

ACCUSES = ("false", "missing")


def outcome(snippet):
    """Counts of one snippet, and the lines that went wrong, for a message."""
    by_line: dict[int, set] = {}
    for verdict in verdicts(snippet):
        by_line.setdefault(verdict.line, set()).add(verdict.verdict)
    expected = dict(snippet.expected)
    counts = {"judged": 0, "planted": 0, "named": 0, "unsure": 0}
    wrong = []
    for line in sorted({*by_line, *expected}):
        said, wanted = by_line.get(line, set()), expected.get(line, "true")
        counts["judged"] += 1
        counts["planted"] += wanted in ACCUSES
        counts["named"] += wanted in ACCUSES and wanted in said
        counts["unsure"] += "cannot tell" in said and wanted != "cannot tell"
        if any(v in said and v != wanted for v in ACCUSES):
            wrong.append(f"{snippet.file}, {snippet.title}, line {line}: {sorted(said)}")
    return counts, wrong


@pytest.fixture(scope="module")
def outcomes():
    """Of every snippet, in the small form too: it takes ten seconds, and half of it hid a fault."""
    return [(s, *outcome(s)) for s in snippets()]


def test_the_corpus_is_large_and_of_many_kinds():
    comments = sum(line.count("#") > 0 for s in snippets() for line in s.source.splitlines())
    assert comments >= 300
    assert len({s.file for s in snippets()}) >= 8 and len(snippets()) >= 40


def test_nobody_is_accused_falsely(outcomes):
    assert [w for _, _, wrong in outcomes for w in wrong] == []


def test_planted_mistakes_are_named(outcomes, capsys):
    for words, least in ((True, 0.97), (False, 0.90)):
        planted = sum(c["planted"] for s, c, _ in outcomes if s.words is words)
        named = sum(c["named"] for s, c, _ in outcomes if s.words is words)
        with capsys.disabled():
            print(f"\n{'words' if words else 'letters'}: {named} of {planted} mistakes named")
        assert planted > 20 and named >= least * planted


def test_little_is_left_to_a_person(outcomes, capsys):
    judged = sum(c["judged"] for _, c, _ in outcomes)
    unsure = sum(c["unsure"] for _, c, _ in outcomes)
    with capsys.disabled():
        print(f"\n{judged} statements judged, {unsure} left to a person without need")
    assert unsure <= 0.03 * judged
