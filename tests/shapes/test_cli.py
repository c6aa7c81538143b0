"""`autograder shapes` on files, as anyone would call it; and on the code of this repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from autograder.shapes import cli
from autograder.shapes.cli import main
from tests.shapes.reading import CALLS

ROOT = Path(__file__).parents[2]
CALL = "f(x[batch_size, seq_len])"
HALF = "def f(x):\n    y = x.T  # [seq_len, batch_size]\n    z = x @ y\n    return z.sum(0)\n"
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


KEEPS = """def f(x, w):
    y = x.relu()
    y = nn.Dropout(0.1)(y) + x
    z = torch.zeros_like(y)
    y.clamp_(min=0)
    return y * z + x.shape[0]
"""
TOLD_NEAR = """def f(x, w, state=None):
    # state: [batch_size, hidden]
    if state is None:
        state = torch.zeros(x.shape[0], w.shape[1])
    y = torch.einsum("bt,td->bd", x, w)
    n = torch.arange(x.shape[0])
    z = x @ w
    assert z.shape == (x.shape[0], w.shape[1])
    q = F.linear(x, w.T)  # [batch_size, hidden]
    k = F.linear(x, w.T)
    scores = x @ w
    kept = scores.relu()  # [batch_size, hidden]
    top = torch.maximum(x[:, :1], w[:1])  # [batch_size, hidden]
    end = torch.minimum(x[:, :1], w[:1])
    return kept
"""
CHANGES = """def f(x, w):
    y = x.mT
    z = x.max(-1, keepdim=True).values
    a, b = x * z, x.sum(0)
    return [x, a @ w]
"""


@pytest.mark.parametrize(("code", "lines"), [(KEEPS, []), (TOLD_NEAR, []), (CHANGES, [2, 3, 4, 5])])
def test_a_line_whose_shape_is_clear_all_the_same_asks_for_no_comment(write, capsys, code, lines):
    call = "f(x[batch_size, seq_len], w[seq_len, hidden])"
    main([str(write(code)), "--call", call, "--json", "--missing"])
    found = json.loads(capsys.readouterr().out)
    assert [v["line"] for v in found if v["verdict"] == "missing"] == lines


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


@pytest.mark.parametrize("more", [[], ["--missing"]])
def test_what_is_written_is_told_and_no_longer_missing(write, capsys, more):
    path = write(HALF)
    assert main([str(path), "--call", CALL, "--write", *more]) == 0
    assert lines(capsys) == [
        f"{path}:3: written: [batch_size, batch_size]",
        f"{path}:4: written: [batch_size]",
        "1 of 1 shape comments and statements are true; 0 cannot tell",
        "2 comments are written",
    ]


def test_what_cannot_be_written_is_named(write, capsys):
    made = "torch.ones(7 * x.shape[0] + 3 * x.shape[1])"
    path = write(f"import torch\n\n\ndef f(x):\n    return {made}\n")
    assert main([str(path), "--call", CALL, "--write", "--missing"]) == 1
    assert f":5: `return {made}` makes a tensor" in capsys.readouterr().out


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


# --- what is looked at, and how it is called ------------------------------------------------------
TOLD = '''"""A layer.

Shapes: Twice(hidden)(x[batch, seq, hidden])
"""

from __future__ import annotations

import torch
from torch import nn


class Twice(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.mix = nn.LazyLinear(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.mix(x)  # [batch, hidden, seq]
        return y * 2  # [batch, seq, hidden]
'''


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_a_call_may_stand_in_a_docstring(write, capsys):
    assert main([str(write(TOLD))]) == 1
    assert any(":18: `y` is [batch, seq, hidden]" in line for line in lines(capsys))


def test_a_call_may_stand_in_the_project_file(tmp_path, capsys):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text(HALF)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.autograder.shapes]\nmissing = true\n[tool.autograder.shapes.calls]\n"
        f'"src/code.py" = ["{CALL}"]\n'
    )
    assert main([str(tmp_path / "src" / "code.py")]) == 1
    assert sum("not in a comment" in line for line in lines(capsys)) == 2


def test_a_folder_is_searched_and_files_without_a_call_are_passed_over(tmp_path, capsys):
    (tmp_path / "a.py").write_text(TOLD)
    (tmp_path / "b.py").write_text("def f(x):\n    return x  # [a, b]\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.py").write_text("def f(:")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "a.py:18:" in printed.out and "1 files have no call" in printed.err


def test_a_file_without_a_call_says_where_to_write_one(write, capsys):
    assert main([str(write(HALF))]) == 2
    error = capsys.readouterr().err
    assert "--call" in error and "Shapes:" in error and "pyproject.toml" in error
    assert main([str(write(HALF)), "--skip"]) == 0


def test_a_notebook_is_read_cell_by_cell(tmp_path, capsys):
    cells = [
        {"cell_type": "markdown", "source": [f"Shapes: {CALL}"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import math"]},
        {
            "cell_type": "code",
            "source": ["def f(x):\n", "    return x * 2  # [seq_len, batch_size]"],
        },
    ]
    path = tmp_path / "code.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert main([str(path)]) == 1
    assert "code.ipynb:cell 2:2:" in capsys.readouterr().out


def test_relative_imports_of_a_package_work(tmp_path, capsys):
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def double(t):\n    return t * 2\n")
    (package / "model.py").write_text(
        "from .parts import double\n\ndef f(x):\n    return double(x)  # [seq_len, batch_size]\n"
    )
    assert main([str(package / "model.py"), "--call", CALL]) == 1
    assert ":4: what is returned is [batch_size, seq_len]" in capsys.readouterr().out


def test_sizes_under_the_main_guard_are_known(write):
    code = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.l = nn.Linear(width, 2 * width)\n\n"
        "    def forward(self, x):\n        return self.l(x)  # [n, 2 * width]\n\n\n"
        'if __name__ == "__main__":\n    width = 6\n    raise SystemExit("never run")\n'
    )
    assert main([str(write(code)), "--call", "Net()(x[n, 6])"]) == 0


def test_an_exception_is_shown_with_its_line(write, capsys):
    code = "def f(x):\n    y = x * 2  # [batch_size, seq_len]\n    return y.view(3, 1, 4, 1, 5)\n"
    assert main([str(write(code)), "--call", CALL]) == 2
    error = capsys.readouterr().err
    assert "code.py:3:" in error and "RuntimeError" in error and "batch_size=" in error


def test_code_that_takes_all_the_memory_is_told(write, capsys, monkeypatch):
    monkeypatch.setattr(cli, "MEMORY", 2**28)
    code = "def f(x):\n    y = [0] * 2**27\n    return x * len(y)  # [batch_size, seq_len]\n"
    assert main([str(write(code)), "--call", CALL]) == 2
    error = capsys.readouterr().err
    assert "code.py:2:" in error and "MemoryError" in error


def test_a_module_that_cannot_be_loaded_is_told(write, capsys):
    code = "class Net(Missing):\n    def forward(self, x):\n        return x * 2  # [b, c]\n"
    assert main([str(write(code)), "--call", "Net()(x[b, c])"]) == 2
    assert "NameError" in capsys.readouterr().err


def test_a_line_may_be_ignored(write):
    code = "def f(x):\n    return x * 2  # [seq_len, batch_size]  # shapes: ignore\n"
    assert main([str(write(code)), "--call", CALL]) == 0


def test_annotations_for_github(write, capsys):
    code = "def f(x):\n    return x * 2  # [seq_len, batch_size]\n"
    path = write(code)
    assert main([str(path), "--call", CALL, "--format", "github"]) == 1
    (line,) = lines(capsys)
    assert line.startswith(f"::error file={path},line=2::what is returned is [batch_size, seq_len]")


def test_each_condition_is_explained_by_what_was_seen(write, capsys):
    code = "def f(x):\n    n = x.shape[0]\n    return x * 2  # [seq_len, n]\n"
    main([str(write(code)), "--call", CALL, "--explain"])
    said = [line.strip() for line in lines(capsys)[1:-1]]
    assert said == [
        "yes  surely about this tensor: line 3 makes [3, 5] where batch_size = 3, seq_len = 5",
        "yes  surely a shape: `[seq_len, n]`",
        "yes  every name is proven: seq_len = 5 by the call; n = 3 by the code",
        "yes  every reading is false: it says [5, 3] there, and none is [3, 5]",
        "yes  a slip explains it: the same sizes in another order",
    ]


def test_what_is_in_doubt_is_explained_with_the_line_that_raises_it(write, capsys):
    code = "def f(x):\n    y = x @ x.mT  # {0}\n    # {0}\n    z = y @ x\n    return z\n"
    code = code.format("[batch_size, batch_size]")
    main([str(write(code)), "--call", CALL, "--explain"])
    assert "has that shape (line 2 makes [3, 3])" in capsys.readouterr().out


def test_dicts_tuples_whole_numbers_and_lengths_may_be_given(write):
    code = (
        "def f(batch, pair, lengths):\n"
        "    e = torch.zeros(batch['vocab'], 4)[batch['tokens']]  # [n, t, 4]\n"
        "    m = torch.arange(e.shape[1])[None] < lengths[:, None]  # [n, t]\n"
        "    assert bool(m.all()) and isinstance(pair, tuple)\n"
        "    return pair[0] @ pair[1]  # [n, n]\n"
    )
    call = "f({'tokens': x[n, t].ints(vocab), 'vocab': vocab}, (a[n, k], b[k, n]), l[n].full(t))"
    assert main([str(write(code)), "--call", call]) == 0


def test_a_file_knows_where_it_stands(write, capsys):
    place = "from pathlib import Path\nHERE = Path(__file__).parent\n"
    known = "FOUND = (HERE / 'code.py').exists()\n"
    code = "def f(x):\n    return x[int(FOUND) :]  # [batch - 1, seq]\n"
    assert main([str(write(place + known + code)), "--call", "f(x[batch, seq])", "--strict"]) == 0
    assert "1 of 1" in capsys.readouterr().out


def test_setup_runs_before_the_file(write):
    code = "def f(x):\n    return helper(x)  # [batch_size, seq_len]\n"
    setup = "helper = lambda t: t * 2"
    assert main([str(write(code)), "--call", CALL, "--setup", setup]) == 0
    assert main([str(write(code)), "--call", CALL]) == 2


@pytest.mark.parametrize(
    "setup, told",
    [
        ("y = 1\nraise ValueError(3)", "`raise ValueError(3)` raised ValueError: 3"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("f(a=1, a=2)", "the setup cannot be read: keyword argument repeated: a, `f(a=1, a=2)`"),
        ("y = = 1", "the setup cannot be read: invalid syntax, `y = = 1`"),
    ],
)
def test_a_setup_that_fails_is_told(write, capsys, setup, told):
    code = "def f(x):\n    return x  # [batch_size, seq_len]\n"
    assert main([str(write(code)), "--call", CALL, "--setup", setup]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["from no_such_module import helper", "from no_such_module import *"]
)
def test_a_name_that_an_import_failed_to_bring_is_told_with_the_import(write, capsys, line):
    code = f"{line}\ndef f(x):\n    return helper(x)  # [batch_size, seq_len]\n"
    assert main([str(write(code)), "--call", CALL]) == 2
    out = capsys.readouterr().err
    assert f"name 'helper' is not defined, since `{line}` raised ModuleNotFoundError" in out
    code = f"{line}\nclass M(helper):\n    pass\n"
    assert main([str(write(code)), "--call", "M()(x[n])"]) == 2
    assert "could not be loaded: NameError" in (out := capsys.readouterr().err) and line in out


def test_a_function_without_a_statement_stops_nothing(write):
    code = "def g(x):\n    # x: [batch_size, seq_len]\n    pass\n\n"
    code += "def f(x):\n    g(x)\n    return x * 2  # [batch_size, seq_len]\n"
    assert main([str(write(code)), "--call", CALL, "--missing"]) == 0


def test_the_room_does_not_import_torch_until_something_runs():
    code = "import sys, autograder.shapes.cli; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_the_hook_runs_as_pre_commit_runs_it(tmp_path):
    """All files of a commit are handed to `entry`, in the root of the project."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    module, command, *options = hook["entry"].split()
    assert (module, command) == ("autograder", "shapes")
    told = f'"""Shapes: {CALL}"""\ndef f(x):\n    return x.T  # [batch_size, seq_len]\n'
    (tmp_path / "told.py").write_text(told, encoding="utf-8")
    (tmp_path / "plain.py").write_text("import os\n", encoding="utf-8")
    run = [sys.executable, "-m", "autograder.cli", command, *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def commit(*files):
        done = subprocess.run(
            [*run, *files], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout

    code, out = commit("told.py", "plain.py")
    assert code == 1 and out.startswith("told.py:3: what is returned is [seq_len, batch_size]")
    assert commit("plain.py")[0] == 0


def test_the_project_file_may_ask_for_what_is_missing(tmp_path):
    table = f"[tool.autograder.shapes]\nmissing = true\ncalls = {{ 'code.py' = '{CALL}' }}\n"
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    (tmp_path / "code.py").write_text(HALF, encoding="utf-8")
    assert main([str(tmp_path / "code.py")]) == 1
    (tmp_path / "pyproject.toml").write_text(table.replace("true", "false"), encoding="utf-8")
    assert main([str(tmp_path / "code.py")]) == 0


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_an_exception_ends_with_two_in_every_format(write, capsys, form):
    code = "def f(x):\n    y = x * 2  # [batch_size, seq_len]\n    return y @ y  # [batch_size]\n"
    path = write(code)
    assert main([str(path), "--call", CALL, "--format", form]) == 2
    told = capsys.readouterr()
    assert f"{path}:3: `{CALL}` raised RuntimeError" in told.err
    if form == "json":
        assert [row["line"] for row in json.loads(told.out)] == [2, 3]
    if form == "github":
        assert f"::error file={path},line=3::" in told.out


def test_a_package_is_searched_and_its_modules_import_each_other(tmp_path, capsys):
    package = tmp_path / "layers"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "turn.py").write_text("def turn(x):\n    return x.T\n", encoding="utf-8")
    use = f'"""Shapes: {CALL}"""\nfrom .turn import turn\n\n\n'
    use += "def f(x):\n    return turn(x)  # [batch_size, seq_len]\n"
    (package / "use.py").write_text(use, encoding="utf-8")
    assert main([str(package)]) == 1
    assert f"{package / 'use.py'}:6: what is returned is" in capsys.readouterr().out


def test_a_comment_on_an_argument_is_named_in_its_own_line(write, capsys):
    code = "def f(x):\n    # x: [seq_len, batch_size]\n    return x * 2  # [batch_size, seq_len]\n"
    path = write(code)
    assert main([str(path), "--call", CALL]) == 1
    assert lines(capsys)[0].startswith(f"{path}:2: `x` is [batch_size, seq_len]; your comment")


TIED = "def f(x):\n    return x * 2  # [b, t, h]\n"


def test_sizes_that_follow_from_others_may_stand_in_any_order(write, capsys):
    ties = ["--where", "h = heads * d", "--where", "heads = 2 * m"]
    assert main([str(write(TIED)), "--call", "f(x[b, t, h])", *ties]) == 0


@pytest.mark.parametrize(
    "ties, said",
    [
        (["h = n * d", "n = h"], "`h` from `n` from `h`"),
        (["h = n * ("], "no expression"),
        (["h = n / 0"], "is no size"),
        (["h = n.d"], "is no size"),
        (["3 = h"], "the name of a size"),
        (["h"], "expected NAME=EXPRESSION"),
        (["h = n - n"], "cannot be confused"),
    ],
)
def test_a_tie_that_cannot_be_is_told_in_a_sentence(write, capsys, ties, said):
    given = [part for tie in ties for part in ("--where", tie)]
    assert main([str(write(TIED)), "--call", "f(x[b, t, h])", *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "call", ["[f](x[b, t, h])", "x[b](y[t])", "3(x[b])", "f[b](x[b])", "'f'(x[b])"]
)
def test_what_cannot_be_called_is_told_in_a_sentence(write, capsys, call):
    assert main([str(write(TIED)), "--call", call]) == 2
    assert "cannot be called" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["calls = 3", "setup = 3", "where = [3]", "calls = []", "where = {a = 1}"]
)
def test_a_table_of_another_kind_is_told_in_a_sentence(tmp_path, capsys, text):
    (tmp_path / "pyproject.toml").write_text(f"[tool.autograder.shapes]\n{text}\n", "utf-8")
    path = tmp_path / "turn.py"
    path.write_text(TIED, "utf-8")
    assert main([str(path), "--call", "f(x[b, t, h])"]) == 2
    assert "pyproject.toml" in capsys.readouterr().err


def test_one_tie_of_the_project_may_be_a_text(tmp_path):
    table = '[tool.autograder.shapes]\nwhere = "h = heads * d"\n'
    (tmp_path / "pyproject.toml").write_text(table, "utf-8")
    path = tmp_path / "turn.py"
    path.write_text(TIED, "utf-8")
    assert main([str(path), "--call", "f(x[b, t, h])"]) == 0
