"""The card that a check shows: HTML in a notebook, plain text in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from autograder.course.asking import Finding, Verdict
from autograder.reports.findings import SHAPES
from autograder.reports.findings import rows as finding_rows

# Colour of the border, word and class by whether a check passed; None: it did but for what was
# taken off. Words have the page's own colour, which is easy to read on any theme. The colours are
# those of JupyterLab's or VS Code's theme, where one is in use, and else seen on light and dark.
_STYLE = {
    True: ("var(--jp-success-color0, var(--vscode-charts-green, #2a9d49))", "passed", "passed"),
    False: ("var(--jp-error-color0, var(--vscode-charts-red, #e0524a))", "not yet", "wrong"),
    None: ("var(--jp-warn-color0, var(--vscode-charts-orange, #bd8500))", "nearly", "nearly"),
}
# JupyterLab pads, centres and stripes the tables of a notebook: a card's rows are plain text.
_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;line-height:1.5"


@dataclass(frozen=True)
class Offer:
    """The hint that a card offers, and after how many tries, where that is why."""

    step: int = 1
    tries: int = 0


@dataclass(frozen=True)
class Card:
    """What one check says: its task, whether it passed (None: but for what was taken off), its
    findings, what was tried, and the hint to offer."""

    task: str
    passed: bool | None
    findings: tuple[Finding, ...]
    tried: str = ""
    offer: Offer = Offer()

    def rows(self) -> list[tuple[str, str]]:
        """The card's lines as (label, text)."""
        rows: list[tuple[str, str]] = []
        if self.passed and self.tried:
            rows.append(("tried", self.tried))
        true = [f.line for f in self.findings if f.check == SHAPES and f.verdict == Verdict.TRUE]
        short = self.passed is False and len(true) > 1  # what is wrong has to stand out
        for finding in self.findings:
            if not (short and finding.check == SHAPES and finding.verdict == Verdict.TRUE):
                rows += finding_rows(finding)
        if short:
            lines = ", ".join(str(line) for line in true if line)
            rows.append(("true", f"the shape comments of lines {lines}"))
        if self.passed is False:
            if self.offer.tries:
                rows.append(("tries", f"{self.offer.tries} so far; the next hint may help"))
            rows.append(("hint", f'hint("{self.task}", {self.offer.step})'))
        return rows

    def _repr_html_(self) -> str:
        color, word, kind = _STYLE[self.passed]
        cells = "".join(
            f'<tr style="background:none"><td style="{_CELL};opacity:.7">{escape(label)}</td>'
            f'<td style="{_CELL};white-space:pre-wrap">{_html(label, text)}</td></tr>'
            for label, text in self.rows()
        )
        return (
            f'<div class="card {kind}" role="status" style="border-left:4px solid {color};'
            f'padding:4px 12px;margin:4px 0;max-width:60em"><b>{word}</b> '
            f"<code>{escape(self.task)}</code>"
            '<table style="border:none;margin:4px 0 0 0;font-size:inherit">'
            f"{cells}</table></div>"
        )

    def __repr__(self) -> str:
        word = _STYLE[self.passed][1]
        width = max((len(label) for label, _ in self.rows()), default=0)
        lines = [f"{label:>{width + 2}}  {text}" for label, text in self.rows()]
        return "\n".join([f"[{word}] {self.task}", *lines])


def _html(label: str, text: str) -> str:
    if label in ("hint", "line"):
        return f"<code>{escape(text)}</code>"
    halves = escape(text).split("`")  # `code` as in Markdown
    return "".join(f"<code>{h}</code>" if i % 2 else h for i, h in enumerate(halves))


def show(card: Card) -> None:
    """Displays a card where the caller is: a notebook or a terminal."""
    display(card)


def show_hint(task: str, step: int, text: str) -> None:
    """Displays one hint."""
    display(_Hint(task, step, text))


@dataclass(frozen=True)
class _Hint:
    task: str
    step: int
    text: str

    def _repr_html_(self) -> str:
        color = _STYLE[None][0]
        return (
            f'<div role="note" style="border-left:4px solid {color};padding:4px 12px;'
            f'margin:4px 0;max-width:60em"><b>hint {self.step} of 3</b> '
            f"<code>{escape(self.task)}</code><br>{_html('', self.text)}</div>"
        )

    def __repr__(self) -> str:
        return f"[hint {self.step} of 3] {self.task}\n  {self.text}"


def display(thing) -> None:
    """Displays a thing that has a text and an HTML form, where the caller is."""
    try:
        from IPython import get_ipython
        from IPython.display import display as show_rich
    except ImportError:
        print(repr(thing))
        return
    if get_ipython() is None:
        print(repr(thing))
    else:
        show_rich(thing)
