"""What a stranger writes costs no more work than its length allows, whatever it is."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from autograder.shapes import judge, plan, prepare, record
from autograder.shapes.text.comments import find_comments, is_code
from autograder.shapes.text.lexer import MAX_TEXT, plain, tokens
from autograder.shapes.text.limits import Clock
from autograder.shapes.text.reader import legends, read
from autograder.shapes.text.shapes_in_text import Vocabulary
from tests.forms import examples, first_of, share
from tests.shapes.steps import steps

KNOWN = Vocabulary(tensors=("q", "k", "x"), sizes=("bs", "seq", "hidden", "heads"))
A_CHARACTER, AT_LEAST = 1_000, 5_000  # lines of code executed

HOSTILE = {
    "a word of words": "k is the projected_input_of_the_attention + bias ",
    "letters": "a",
    "letters and spaces": "a b ",
    "round brackets": "(",
    "square brackets": "[",
    "brackets of every kind": "[({<",
    "pairs of brackets": "()",
    "brackets in brackets": "[a,b",
    "arrows": "->",
    "dashes": "-",
    "a chain": "[a, b] -> ",
    "products": "(b, s) x ",
    "crosses": "x ",
    "commas": "a,b;",
    "legends": "a = b, ",
    "remarks": "b, s, h; c=d",
    "labels": "q: [bs, seq] ",
    "combining characters": "e\u0301",
    "characters that grow": "\ufdfa",
    "commands of LaTeX": "\\times",
    "digits": "0",
    "powers": "[((((a^4)^4)^4)^4)^4, b]",
    "angles": "<a>",
    "words for a shape": "shape of ",
    "quotes": "'\"`$",
    "stars": "*",
    "underscores": "_",
    "surrogates of a face": "\U0001f600",
}
LENGTHS = first_of(4_000, 60, 250, 600)
SETTINGS = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def allowed(text: str) -> int:
    return AT_LEAST + A_CHARACTER * len(text)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("length", LENGTHS)
def test_reading_a_comment_is_linear(kind, length):
    text = (HOSTILE[kind] * length)[:length]
    for ending in ("", "]", ")", " [b, s]", "!"):
        text = text[: length - len(ending)] + ending
        assert steps(lambda t=text: read([(1, t)], KNOWN)) <= allowed(text), text[:80]
        assert steps(lambda t=text: legends(t, KNOWN)) <= allowed(text), text[:80]


pieces = st.sampled_from(
    [
        "[",
        "]",
        "(",
        ")",
        "{",
        "<",
        ">",
        "->",
        "=>",
        "→",
        ",",
        ";",
        ":",
        "=",
        "@",
        "x",
        "*",
        "/",
        "^",
    ]
    + ["b", "seq", "hidden", "q", "shape", "of", "is", "to", "and", "or", "not", "each", "3", "0"]
    + [" ", "...", "-", "_", "'", "\\times", "形状为", "\u0301", "torch.Size", "view", "\n"]
)
texts = st.lists(pieces, max_size=300).map("".join) | st.text(max_size=700)


@settings(max_examples=examples(60, 300), **SETTINGS)
@given(texts)
def test_whatever_is_written_is_read_in_linear_work(text):
    assert steps(lambda: read([(1, text)], KNOWN)) <= allowed(text)


@settings(max_examples=examples(60, 200), **SETTINGS)
@given(texts)
def test_tokens_are_in_order_and_hold_the_text(text):
    text = plain(text)
    found = tokens(text)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert all(0 <= t.start < t.end <= MAX_TEXT for t in found)


@settings(max_examples=examples(15, 100), **SETTINGS)
@given(st.lists(texts, min_size=1, max_size=8))
def test_a_comment_of_several_lines_is_read_in_linear_work(lines):
    numbered = list(enumerate(lines, start=1))
    assert steps(lambda: read(numbered, KNOWN)) <= allowed("".join(lines)) * 2


SOURCE = """def f(x):
    y = x.transpose(0, 1)  # {0}
    # {0}
    z = y @ x
    return z  # [t, t]
"""
PLAN = plan("f(x[b, t])")


@pytest.mark.parametrize("kind", share(HOSTILE, 3))
def test_judging_hostile_comments_is_linear_too(kind):
    text = (HOSTILE[kind] * 600)[:600].replace("\n", " ")
    source = SOURCE.format(text)
    recording = record.run(prepare(source, PLAN))
    found = []
    work = steps(lambda: found.extend(judge(source, PLAN, recording)))
    assert work <= 20_000 + 4 * A_CHARACTER * len(source)
    assert {v.verdict for v in found if v.line == 5} == {"true"}


def test_a_thousand_comments_cost_a_thousand_times_one():
    def cost(count):
        lines = ["    x = x * 2  # [b, t] -> [b, t]"] * count
        source = "def f(x):\n" + "\n".join(lines) + "\n    return x\n"
        recording = record.run(prepare(source, PLAN))
        return steps(lambda: judge(source, PLAN, recording))

    few, many = cost(25), cost(200)
    assert many <= 12 * few


@pytest.mark.parametrize("text", ["(" * 4_000, "[" * 4_000, "-" * 4_000 + "1", "a." * 4_000])
def test_code_in_a_comment_is_looked_for_within_limits(text):
    assert is_code(text) in (True, False)
    assert isinstance(find_comments(f"x = 1  # {text}\n"), list)


def test_a_judgement_that_takes_too_long_is_cannot_tell(monkeypatch):
    monkeypatch.setattr(Clock, "__init__", lambda self, seconds=0.0: setattr(self, "end", 0.0))
    source = SOURCE.format("[t, b]")
    (verdict,) = judge(source, PLAN, record.run(prepare(source, PLAN)))
    assert verdict.verdict == "cannot tell" and "too long" in verdict.message


STACK = """class Stack(nn.Module):
    def __init__(self, vocab, layers, heads, wide):
        super().__init__()
        self.embed = nn.Embedding(vocab, wide)
        self.up = nn.ModuleList([nn.Linear(wide, 4 * wide) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(4 * wide, wide) for _ in range(layers)])

    def forward(self, i):
        x = self.embed(i)  # [b, t, wide]
        for up, down in zip(self.up, self.down):
            x = x + down(up(x))  # [b, t, wide]
        return x
"""


def test_a_size_that_is_a_product_costs_the_run_no_more_than_it_must():
    asked = plan(
        "Stack(vocab, layers, heads, wide)(i[b, t].ints(vocab)) where wide=heads*2*head_size"
    )
    with FlopCounterMode(display=False) as counted:
        record.run(prepare(STACK, asked))
    assert 0 < counted.get_total_flops() < 2 * 10**9


LARGE = """
import torch
def large(x):
    B, C = x.shape
    y = torch.zeros(10**9, dtype=torch.bool, device="meta")  # [2*C]
    z = torch.zeros(10**9, dtype=torch.bool, device="meta")  # [C + 1]
    return x + 1
"""


def test_no_one_counts_up_to_the_size_of_a_tensor():
    asked = plan("large(x[B, C])")
    recording = record.run(prepare(LARGE, asked))
    found = []
    assert steps(lambda: found.extend(judge(LARGE, asked, recording))) < 100_000
    assert {v.verdict for v in found if v.line < 7} == {"cannot tell"}
