"""`check` and `hint`, as a student calls them."""

import re

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from autograder import check, hint, passes
from autograder.notebook import CheckFailed, UnknownTask
from transformer_lm import modeling_attention

SelfAttention = modeling_attention.SelfAttention  # what `check` finds in this module


@pytest.fixture
def answer(monkeypatch):
    """Puts a class in the place of the right answer."""

    def put(new):
        monkeypatch.setitem(globals(), "SelfAttention", new)

    return put


def test_a_right_answer_passes_and_gives_nothing_back(capsys):
    assert check("self_attention.forward") is None
    assert capsys.readouterr().out.startswith("[passed] self_attention.forward")


def test_a_wrong_answer_raises_and_its_card_names_the_mistake(answer, capsys):
    class Unscaled(modeling_attention.SelfAttention):
        def forward(self, x):
            return torch.softmax(self.q(x) @ self.k(x).mT, -1) @ self.v(x)

    answer(Unscaled)
    with pytest.raises(CheckFailed, match="not scaled"):
        check("self_attention.forward")
    card = capsys.readouterr().out
    assert card.startswith("[not yet]")
    for label in ("tried", "expected", "got", "likely", "hint"):
        assert label in card
    assert "tensor(" not in card


def test_whether_a_check_passes_can_be_asked_without_a_card(answer, capsys):
    assert passes("self_attention.forward") is True

    class Nothing(modeling_attention.SelfAttention):
        def forward(self, x):
            return self.v(x)

    answer(Nothing)
    assert passes("self_attention.forward") is False
    assert capsys.readouterr() == ("", "")


def test_the_traceback_a_student_sees_is_one_line():
    error = CheckFailed("self_attention.forward: not scaled")
    assert error._render_traceback_() == ["CheckFailed: self_attention.forward: not scaled"]


def test_an_unknown_task_is_told_the_nearest_name():
    with pytest.raises(UnknownTask, match="self_attention.forward"):
        check("self_atention.forward")


def test_no_name_is_told_where_none_is_near():
    with pytest.raises(UnknownTask) as raised:
        check("nothing")
    assert "Did you mean" not in str(raised.value)


@pytest.mark.parametrize("names", [("a", "b"), (3,), (None,)])
def test_a_check_of_no_or_two_names_is_told_in_a_sentence(names):
    with pytest.raises(UnknownTask, match="check takes one name"):
        check(*names)


def test_an_exercise_not_filled_in_is_told_so(answer, capsys):
    class Empty(modeling_attention.SelfAttention):
        def forward(self, x):
            raise NotImplementedError()

    answer(Empty)
    with pytest.raises(CheckFailed):
        check("self_attention.forward")


def test_a_check_leaves_random_numbers_as_they_were():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    check("self_attention.forward")
    assert torch.equal(torch.rand(3), expected)


def test_hints_come_in_three_steps(capsys):
    said = []
    for step in (1, 2, 3):
        hint("multi_head.scores", step)
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 3
    with pytest.raises(UnknownTask, match="1, 2 and 3"):
        hint("multi_head.scores", 4)


def test_the_card_is_html_in_a_notebook_and_escapes_what_it_quotes():
    from autograder.course.asking import Finding
    from autograder.reports.cards import Card

    finding = Finding("x", "wrong", "<script>alert(1)</script> `<b>`", 3, "<img onerror=x>")
    html = Card("a.b", False, (finding,))._repr_html_()
    assert "<script" not in html and "<img" not in html
    assert "&lt;script&gt;" in html


def test_the_label_and_the_text_of_a_cards_row_stand_at_one_height_on_a_plain_ground():
    """JupyterLab pads and centres the cells of tables, and stripes their rows."""
    from autograder.reports.cards import Card

    html = Card("a.b", True, (), "three sizes")._repr_html_()
    cells = [
        dict(p.split(":") for p in s.split(";")) for s in re.findall(r'<td style="(.*?)"', html)
    ]
    assert len(cells) == 2
    for key in ("padding", "vertical-align", "text-align", "line-height"):
        assert cells[0][key] == cells[1][key], key
    assert '<tr style="background:none">' in html
    table = re.search(r'<table style="(.*?)"', html)[1]
    assert "font-size:inherit" in table


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("ground", ["#ffffff", "#383838", "#111111"], ids=["white", "grey", "dark"])
@pytest.mark.parametrize("passed", [True, False, None])
def test_where_no_theme_names_its_colours_a_cards_border_is_seen_on_any_ground(passed, ground):
    """Such as in Colab, whose dark page is grey. WCAG asks for 3:1 of what is not text."""
    from autograder.reports.cards import Card

    border = re.search(r"border-left:4px solid (.*?);", Card("a.b", passed, ())._repr_html_())[1]
    assert border.startswith("var(--jp-") and "var(--vscode-" in border
    low, high = sorted((luminance(re.search(r"#\w{6}", border)[0]), luminance(ground)))
    assert (high + 0.05) / (low + 0.05) >= 3


@pytest.fixture
def shell():
    """An IPython shell, as a notebook's kernel has one."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_in_a_notebook_the_answer_is_found_among_its_names(shell, capsys):
    shell.user_ns["SelfAttention"] = modeling_attention.SelfAttention
    check("self_attention.init")
    del shell.user_ns["SelfAttention"]
    with pytest.raises(CheckFailed, match="no `SelfAttention`"):
        check("self_attention.init")
