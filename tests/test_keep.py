"""Claims about `keep`, which copies a student's class into the library file."""

import pytest

from autograder.keep import MARK, KeepError, keep

STUDENTS_FILE = '''"""Attention."""

import torch
from torch import nn

SIZE = 3


class Before(nn.Module):
    pass


class SelfAttention(nn.Module):
    """One head."""

    def forward(self, x):
        raise NotImplementedError
        # [batch_size, seq_len, hidden]


# a comment that belongs to what follows
class After(nn.Module):
    size = SIZE
'''
ANSWER = '''import math
import torch

class SelfAttention(nn.Module):
    """Mine."""

    def forward(self, x):
        return torch.tanh(x)
        # [batch_size, seq_len, hidden]

print(SelfAttention)
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "modeling_attention.py"
    path.write_text(STUDENTS_FILE, encoding="utf-8")
    return path


def test_the_class_is_replaced_and_nothing_else(file):
    keep("SelfAttention", path=file, cells=["x = 1", ANSWER])
    text = file.read_text(encoding="utf-8")
    before, after = STUDENTS_FILE.split("class SelfAttention")[0], "# a comment that belongs"
    assert text.startswith(before + MARK + "\nclass SelfAttention")
    assert text.endswith("\n\n\n" + after + STUDENTS_FILE.split(after)[1])
    assert '"""Mine."""' in text and "tanh(x)\n        # [batch_size, seq_len, hidden]\n" in text
    assert "One head" not in text and "print" not in text


def test_the_file_as_it_was_stays_beside_it(file):
    keep("SelfAttention", path=file, cells=[ANSWER])
    assert file.with_name("modeling_attention.py.bak").read_text("utf-8") == STUDENTS_FILE


def test_the_last_cell_counts(file):
    keep("SelfAttention", path=file, cells=[ANSWER, ANSWER.replace("tanh", "relu"), "y = 2"])
    assert "relu" in file.read_text("utf-8") and "tanh" not in file.read_text("utf-8")


def test_keeping_twice_is_keeping_once(file):
    keep("SelfAttention", path=file, cells=[ANSWER])
    once = file.read_text("utf-8")
    keep("SelfAttention", path=file, cells=[ANSWER])
    assert file.read_text("utf-8") == once


def test_it_says_what_it_did(file, capsys):
    keep("SelfAttention", path=file, cells=[ANSWER])
    said = capsys.readouterr().out
    assert "SelfAttention" in said and "modeling_attention.py.bak" in said
    assert "does not define" not in said


def test_names_that_the_file_lacks_are_pointed_out(file, capsys):
    keep("SelfAttention", path=file, cells=[ANSWER.replace("torch.tanh(x)", "math.pi * F.relu(x)")])
    assert "F, math" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["x = 1"], "No cell"),
        ([ANSWER, ANSWER.replace("(self, x):", "(self, x)")], "does not parse"),
        ([ANSWER.replace("return torch.tanh(x)", "raise NotImplementedError()")], "not filled in"),
        (["class Selfattention(nn.Module):\n    pass"], "No cell"),
    ],
)
def test_what_cannot_be_kept_leaves_the_file_alone(file, cells, said):
    with pytest.raises(KeepError, match=said):
        keep("SelfAttention", path=file, cells=cells)
    assert file.read_text("utf-8") == STUDENTS_FILE
    assert not file.with_name("modeling_attention.py.bak").exists()


def test_the_complete_library_is_not_overwritten(file):
    whole = STUDENTS_FILE.replace("raise NotImplementedError", "return x")
    file.write_text(whole, encoding="utf-8")
    with pytest.raises(KeepError, match="complete library"):
        keep("SelfAttention", path=file, cells=[ANSWER])
    assert file.read_text("utf-8") == whole


def test_the_complete_library_is_overwritten_by_force(file):
    file.write_text(STUDENTS_FILE.replace("raise NotImplementedError", "return x"), "utf-8")
    keep("SelfAttention", path=file, cells=[ANSWER], force=True)
    assert "tanh" in file.read_text("utf-8")


def test_a_class_that_the_file_does_not_have_is_refused(file):
    with pytest.raises(KeepError, match="no class"):
        keep("Other", path=file, cells=["class Other:\n    pass"])


def test_a_broken_file_is_left_alone(file):
    file.write_text(STUDENTS_FILE + "def\n", encoding="utf-8")
    with pytest.raises(KeepError, match="modeling_attention.py does not parse"):
        keep("SelfAttention", path=file, cells=[ANSWER])


def test_a_missing_file_is_said_in_one_sentence(tmp_path):
    with pytest.raises(KeepError, match="cannot be read"):
        keep("SelfAttention", path=tmp_path / "none.py", cells=[ANSWER])


def test_a_file_that_may_not_be_written_is_left_as_it_was(file, monkeypatch):
    def refuse(path, text):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("autograder.keep.write_whole", refuse)
    with pytest.raises(KeepError, match=r"cannot be written \(Permission denied\)"):
        keep("SelfAttention", path=file, cells=[ANSWER])
    assert file.read_text(encoding="utf-8") == STUDENTS_FILE


def test_outside_a_notebook_it_says_where_it_works():
    with pytest.raises(KeepError, match="run it in a notebook"):
        keep("SelfAttention", path="unused.py")
