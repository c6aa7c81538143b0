"""`autograder shapes` on files, as anyone would call it; and on the code of this repository."""

import json
from pathlib import Path

import pytest

from autograder.shapes.cli import main
from tests.shapes.reading import CALLS

ROOT = Path(__file__).parents[2]
CALL = "f(x[batch_size, seq_len])"
HALF = "def f(x):\n    y = x.T  # [seq_len, batch_size]\n    z = x @ y\n    return z * 2\n"
SLIP = """
class Net(nn.Module):
    def __init__(self, input_size, num_heads, head_size):
        super().__init__()
        self.k = nn.Linear(input_size, num_heads * head_size)
        self.n = num_heads

    def forward(self, x):
        bs, seq, _ = x.shape
        k = self.k(x).view(bs, seq, self.n, -1)
        # 'k' [bs, seq, input_size] -> view [bs, seq, num_heads, head_size]
        return k
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "code.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_what_is_missing_is_named_with_its_line(write, capsys):
    assert main([str(write(HALF)), "--call", CALL, "--missing"]) == 1
    out = capsys.readouterr().out
    assert ":3:" in out and ":4:" in out and ":2:" not in out


def test_json_holds_every_verdict(write, capsys):
    assert main([str(write(HALF)), "--call", CALL, "--json", "--missing"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(v["line"], v["verdict"]) for v in found] == [
        (2, "true"),
        (3, "missing"),
        (4, "missing"),
    ]
    keys = {"file", "line", "statement", "comment", "verdict", "confidence", "message"}
    assert set(found[0]) == keys


def test_comments_that_are_written_are_then_judged_true(write, capsys):
    path = write(HALF)
    main([str(path), "--call", CALL, "--write"])
    assert path.read_text().count("#") == 3
    assert main([str(path), "--call", CALL]) == 0
    assert "3 of 3" in capsys.readouterr().out


def test_a_skipped_step_is_named_where_it_is_asked_for(write, capsys):
    path, call = write(SLIP), "Net(input_size, num_heads, head_size)(x[bs, seq, input_size])"
    assert main([str(path), "--call", call]) == 0
    assert main([str(path), "--call", call, "--strict"]) == 1
    assert ":10:" in capsys.readouterr().out


def test_a_size_may_follow_from_others(write):
    code = "def f(x):\n    return x.view(x.size(0), 2, -1)  # [n, 2, half]\n"
    assert main([str(write(code)), "--call", "f(x[n, all])", "--where", "all=2*half"]) == 0


@pytest.mark.parametrize(
    "text, call",
    [("def f(:", CALL), (HALF, "f(x[1.5])("), (HALF, "f"), (HALF, "")],
)
def test_what_cannot_be_read_is_told_in_one_line(write, capsys, text, call):
    assert main([str(write(text)), "--call", call]) == 2
    error = capsys.readouterr().err
    assert error.startswith("autograder shapes: ") and "Traceback" not in error


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    assert main([str(tmp_path / "none.py"), "--call", CALL]) == 2
    assert "none.py" in capsys.readouterr().err


OURS = (
    "simple_attention(x[seq_len, hidden])",
    "ParameterAttention(input_size, hidden)(x[seq_len, input_size])",
    CALLS["SelfAttention"],
    "CausalSelfAttention(input_size, hidden, context_length)(x[batch_size, seq_len, input_size])",
    "HeadStack(input_size, head_size, context_length, num_heads)"
    "(x[batch_size, seq_len, input_size])",
    CALLS["MultiHeadSelfAttention"],
)


@pytest.mark.parametrize("call", OURS)
def test_our_own_code_passes(call, capsys):
    path = ROOT / "transformer_lm" / "modeling_attention.py"
    assert main([str(path), "--call", call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    name = call.partition("(")[0]
    assert found and {v["verdict"] for v in found} == {"true"}, (name, found)


@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadSelfAttention"])
def test_the_model_answers_of_the_homework_pass(name):
    from autograder.shapes import check_source, plan

    text = (ROOT / "solutions" / "05_homework.py").read_text(encoding="utf-8")
    start = text.index(f"class {name}(nn.Module)")
    found = check_source(text[start : text.index("\n# %%", start)], plan(CALLS[name]))
    assert len(found) > 3 and {v.verdict for v in found} == {"true"}
