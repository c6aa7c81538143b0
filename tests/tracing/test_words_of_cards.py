"""Cards say what a teacher would: nouns for tensors, plural or not, and how a number differs."""

from types import SimpleNamespace

import pytest
import torch

from autograder.course.asking import Finding, Verdict, Where
from autograder.judging.difference import difference
from autograder.reports.findings import where_in_words
from autograder.tracing.reference import reference
from autograder.tracing.say import called
from tests.asked import known
from tests.conftest import ROOT
from tests.tracing.helper import told


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("probs", "the probabilities"),
        ("grad_q", "the gradient of q"),
        ("grad_scores", "the gradient of the scores"),
        ("cos", "the cosines"),
    ],
)
def test_a_variable_of_the_answer_is_called_by_words(name, words):
    assert called(SimpleNamespace(name=name)) == words


@pytest.mark.parametrize("landmark", ["the bias", "the gradient of the scores", "the loss"])
def test_one_thing_is_no_plural(landmark):
    finding = Finding("x", Verdict.WRONG, "x", where=Where(2, 3, landmark))
    assert f"this is {landmark}." in where_in_words(finding)


def test_what_is_no_noun_is_no_name_of_a_tensor():
    own = known("simple.rnn", 0).bank
    names = {each.name for each in reference(own.right(0)).known}
    assert "state" in names and not names & {"token", "before"}


@pytest.mark.parametrize(
    ("got", "wanted", "said"),
    [
        (torch.tensor(3), torch.tensor(5), "the result is too small"),
        (torch.tensor(7), torch.tensor(5), "the result is too large"),
        (torch.tensor(0.5), torch.tensor(0.25), "the result is too large"),
        (torch.tensor(True), torch.tensor(False), "the result is another one than asked for"),
    ],
)
def test_a_number_is_told_by_the_side_on_which_it_is_wrong(got, wanted, said):
    assert difference(got, wanted, 1e-4).text == said


def test_a_count_that_no_known_mistake_gives_says_more_than_that_it_is_another():
    text = """\
def attention_parameters(input_size, hidden, num_heads, qkv_bias=False):
    biases = 3 * input_size if qkv_bias else 0
    return 3 * input_size * hidden + biases + hidden * hidden + hidden
"""
    (found,) = told("heads.count", text)
    assert "too small. 3 of 6 calls give what they should" in found.message


def test_no_text_belongs_into_anything():
    folders = ROOT / "autograder", ROOT / "solutions"
    texts = [p.read_text(encoding="utf-8") for f in folders for p in f.rglob("*.py")]
    for strange in ("belongs into", "belong into", "says nothing of any"):
        assert not [text for text in texts if strange in " ".join(text.split())]
