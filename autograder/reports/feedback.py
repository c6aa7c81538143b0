"""The feedback page: what a student gets back. Inert, whatever the student wrote.

Student text is escaped; Markdown is rendered and then cleaned through an allow-list; outputs are
reduced to text and PNG; the page forbids scripts, frames and requests by its own content security
policy. nbgrader's own template lets Markdown and outputs through as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape, unescape
from pathlib import Path

import jinja2
import mistune
import nh3
from markupsafe import Markup
from nbconvert.exporters import Exporter
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder.course.asking import Verdict
from autograder.reports.formulas import Formulas, in_html, without_marks
from autograder.reports.plain import ISOLATION, SCHEME, UNCHANGED, descriptions, plain

PNG = b"\x89PNG\r\n\x1a\n"
_TEXT_TAGS = {
    "p",
    "br",
    "b",
    "i",
    "em",
    "strong",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "del",
    "sub",
    "sup",
    "details",
    "summary",
}
_CARD_TAGS = {"div", "b", "code", "br", "table", "tbody", "tr", "td"}
_CARD_CLASSES = {"div": {"card", "passed", "wrong"}}  # colours are the page's, light or dark
PROSE = (3, 3, 4, 4, 4, 4)  # levels of the lesson's headings on the page
FOLDED = 30  # lines of an output that are shown unfolded


def markdown(text: str, levels: tuple[int, ...] = (4,) * 6, tags: bool = False) -> Markup:
    """Markdown as HTML that can hold no script, link, image or style; formulas as MathML.

    levels: which level each level of headings becomes: the first is the page's own. tags: whether
    tags are kept, as lessons fold their answers with some; else they are shown as they are written.
    """
    formulas = Formulas()
    render = mistune.create_markdown(
        renderer=_Lowered(levels, tags, formulas), plugins=["table", "strikethrough", "math"]
    )
    for kind, block in (("block_math", True), ("inline_math", False)):
        render.renderer.register(
            kind, lambda _, latex, block=block: formulas.mark(unescape(latex), block)
        )
    html = render(without_marks(plain(text)))
    return Markup(formulas.put(nh3.clean(html, tags=_TEXT_TAGS, attributes={}, link_rel=None)))


class _Lowered(mistune.HTMLRenderer):
    """Writes headings of other levels, and formulas in HTML."""

    def __init__(self, levels: tuple[int, ...], tags: bool, formulas: Formulas):
        super().__init__(escape=True)
        self._levels, self._tags, self._formulas = levels, tags, formulas

    def block_html(self, html: str) -> str:
        if not self._tags:
            return super().block_html(html)
        return in_html(html, lambda latex: self._formulas.mark(latex, False)) + "\n"

    def heading(self, text: str, level: int, **attrs) -> str:
        return super().heading(text, self._levels[level - 1])


def code(text: str, wrong: Sequence[int] = (), shapes: Sequence[Mapping] = ()) -> Markup:
    """Python, coloured, every character of it escaped, with the numbers of its lines; those that go
    wrong are marked.

    shapes: what was found of shape comments. It stands beside its line: a true one as a sign, of
    another one below the line what was found.
    """
    beside: dict[int, list[Mapping]] = {}
    for each in shapes:
        beside.setdefault(each["line"], []).append(each)
    lines = highlight(plain(text), PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    out = []
    for number, line in enumerate(lines.removesuffix("\n").split("\n"), start=1):
        notes = beside.get(number, ())
        line = f"{_NUMBER}{line}"
        line += "".join(_TRUE for each in notes if each["verdict"] == Verdict.TRUE)
        said = [_beside(each) for each in notes if each["verdict"] != Verdict.TRUE]
        out += [f'<span class="hll">{line}{_FIRST}\n</span>' if number in wrong else f"{line}\n"]
        out += said
    return Markup("".join(out))


_NUMBER = '<span class="line" aria-hidden="true"></span>'  # by the page's style: not copied
_TRUE = (
    '<span class="shape true" role="note"><span class="ear">shape comment: </span> ✓ true</span>'
)
_FIRST = ' <span class="shape first" role="note">\u2190 the first wrong line</span>'


def _beside(found: Mapping) -> str:
    kind = "false" if found["verdict"] in (Verdict.FALSE, Verdict.MISSING) else "unsure"
    text = said(f"shape comment: {found['verdict']}. {found['said']}")
    return f'<span class="shape {kind}" role="note">{text}\n</span>'


def said(text: str) -> Markup:
    """A sentence of the grader's; what stands in it between backticks is code."""
    parts = escape(plain(text)).split("`")
    if len(parts) % 2 == 0:  # one without its other
        return Markup("`".join(parts))
    return Markup("".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts)))


def card(html: str) -> Markup:
    """A check's card; cleaned, although we wrote it, since it quotes the student."""
    cleaned = nh3.clean(
        html,
        tags=_CARD_TAGS,
        attributes={},
        allowed_classes=_CARD_CLASSES,
        link_rel=None,
    )
    return Markup(cleaned)


def picture(data) -> str | None:
    """A PNG as a data address, or None where it is not one."""
    try:
        raw = base64.b64decode("".join(data) if isinstance(data, list) else data, validate=False)
    except (binascii.Error, TypeError, ValueError):
        return None
    if not raw.startswith(PNG) or len(raw) > 5_000_000:
        return None
    return "data:image/png;base64," + base64.b64encode(raw).decode("ascii")


def shown(cell) -> list[tuple[str, object, str]]:
    """A cell's outputs as (kind, content, more): 'card', 'picture', 'text' or 'columns'.

    more: the alternative text of a picture; of a text, the lines that are folded away.
    """
    found: list[tuple[str, object, str]] = []
    graded = cell.metadata.get("nbgrader", {}).get("grade", False)
    described = iter(descriptions(cell.source) if cell.cell_type == "code" else ())
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if graded and output.output_type == "execute_result":
            continue  # the points, which stand in the heading
        if graded and output.get("text") == ISOLATION.format(_isolation(cell)):
            continue  # which stands once, at the end of the page
        if graded and "text/html" in data:
            found.append(("card", card("".join(data["text/html"])), ""))
        elif "image/png" in data and (source := picture(data["image/png"])):
            found.append(("picture", source, next(described, "A figure without a description")))
        elif "text/plain" in data:
            found.append(("text", *folded(data["text/plain"])))
        elif output.output_type == "stream":
            kind = "columns" if in_columns(plain(output.text)) else "text"
            found.append((kind, *folded(output.text)))
        elif output.output_type == "error":
            said = f"{output.get('ename', '')}: {output.get('evalue', '')}"
            found.append(("text", *folded(output.get("traceback") or said)))
    return found


def _isolation(cell) -> str:
    """The isolation that a check's answer was run in; '' where nothing says it."""
    return cell.metadata.get("course", {}).get("isolation", "")


def in_columns(text: str) -> bool:
    """Whether a printed text is a table, whose lines would be no columns if they were broken."""
    return sum("  " in line.strip() for line in text.split("\n")) > 1


def folded(text) -> tuple[str, str]:
    """The beginning of a text, and the rest where it is long."""
    lines = plain(text).split("\n")
    return "\n".join(lines[:FOLDED]), "\n".join(lines[FOLDED:]).rstrip()


class FeedbackExporter(Exporter):
    """Turns a graded notebook (after nbgrader's `GetGrades`) into the feedback page."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(self, nb, resources=None, **kwargs):
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        resources["output_extension"] = self.file_extension
        where = resources["nbgrader"]
        html = page(
            nb,
            where["notebook"],
            where.get("score", 0.0),
            where.get("max_score", 0.0),
            where.get("late_penalty", 0.0),
        )
        return html, resources


def page(nb, title: str, score: float, max_score: float, late_penalty: float = 0.0) -> str:
    """The feedback page of one graded notebook."""
    kept = [cell for cell in nb.cells if not _left_out(cell)]
    cells = [_shown_cell(cell, after) for cell, after in zip(kept, [*kept[1:], None], strict=True)]
    graded = [cell for cell in cells if cell["data"].get("grade")]
    return render(
        "feedback.html",
        title=plain(title),
        cells=cells,
        score=max(0.0, score),
        max_score=max_score,
        late_penalty=late_penalty,
        not_marked=sum(cell["data"]["points"] for cell in graded if cell["data"].get("open")),
        graded=graded,
        next=[cell for cell in graded if cell["advice"]],
        isolation=sorted({_isolation(c) for c in kept} - {""}),
    )


def _shown_cell(cell, after) -> dict:
    """What the page shows of a cell, with its mark where it has one.

    earned: the points before deductions and bonus, which stand on lines of their own (taken). A
    mark that a person gave stands as it is. given: whether it is code of the lesson's own, which is
    folded so that the answers stand out. headings and asked: of the lesson's own text, which is
    shown whole where a question follows (after), and folded elsewhere.
    """
    data, course = cell.metadata.get("nbgrader", {}), cell.metadata.get("course", {})
    taken = [] if data.get("by_hand") else course.get("taken", [])
    prose = _is_prose(cell)
    answer = after.metadata.get("nbgrader", {}) if after is not None else {}
    earned = float(data.get("score") or 0.0) - sum(line["points"] for line in taken)
    return {
        "kind": "prose" if prose else cell.cell_type,
        "source": _body(cell.source) if prose else cell.source,
        "headings": _headings(cell.source) if prose else "",
        "asked": bool(answer.get("solution") and answer.get("grade")),
        "given": bool(_GIVEN.match(cell.get("id", ""))) and not data.get("grade"),
        "data": data,
        "task": course.get("task", ""),
        "wrong": [line for line in course.get("wrong", []) if isinstance(line, int)],
        "shapes": [each for each in course.get("shapes", []) if isinstance(each["line"], int)],
        "outputs": shown(cell),
        "earned": earned,
        "taken": taken,
        "advice": _advice(cell, earned, taken),
    }


def _advice(cell, earned: float, taken: list) -> str:
    """What to do about a task that did not get all its points, if anything."""
    data, task = cell.metadata.get("nbgrader", {}), cell.metadata.get("course", {}).get("task", "")
    if not data.get("grade") or data.get("open"):
        return ""
    if earned < data["points"] and data.get("comment") == UNCHANGED:
        return "not answered yet: write your answer below the question."
    if earned < data["points"] and cell.cell_type != "code":
        read = "comment" if data.get("comment") else "question again"
        return f"read the {read}, and write the answer anew."
    if earned < data["points"] and data.get("by_hand"):
        return "a person gave this mark: read the comment on your answer, or ask for the reason."
    if earned < data["points"]:
        cause = cell.metadata.get("course", {}).get("cause") or "mend what the check says;"
        return f'{cause} `hint("{task}", 1)` helps.'
    lost = " ".join(line["message"] for line in taken if line["points"] < 0)
    return f"right, but for what was taken off. {lost}" if lost else ""


def _is_prose(cell) -> bool:
    """Whether it is the lesson's own text."""
    return cell.get("id", "").startswith("markdown-")


def _left_out(cell) -> bool:
    """Imports, and what is meant for the grader only."""
    return cell.get("id", "").startswith(("setup-", SCHEME))


def _headings(text: str) -> str:
    """The headings of a Markdown text, and nothing inside its code blocks."""
    return "\n\n".join(line for line, heading in _lines(text) if heading)


def _body(text: str) -> str:
    """The rest of it."""
    return "\n".join(line for line, heading in _lines(text) if not heading).strip()


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    inside = False
    for line in text.splitlines():
        inside ^= line.startswith("```")
        yield line, not inside and bool(re.match(r"#{1,4} ", line))


_GIVEN = re.compile(r"code-\d")  # ids of the lesson's code that no exercise is


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        markdown=markdown,
        said=said,
        prose=lambda text: markdown(text, PROSE, tags=True),
        code=code,
        plain=plain,
        points=lambda x: f"{float(x or 0):g}",
        change=lambda x: f"{x:+g}".replace("-", "\N{MINUS SIGN}") if x else "",
    )
    return environment


def render(template: str, **values) -> str:
    """A page from one of the templates, in the colours of all pages; every text is escaped."""
    return (
        _environment()
        .get_template(template)
        .render(
            colours=Markup(HtmlFormatter(style="default").get_style_defs(".code")),
            dark_colours=Markup(HtmlFormatter(style="github-dark").get_style_defs(".code")),
            **values,
        )
    )
