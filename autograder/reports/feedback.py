"""The feedback page: what a student gets back. Inert, whatever the student wrote.

Student text is escaped; Markdown is rendered and then cleaned through an allow-list; outputs are
reduced to text and PNG; the page forbids scripts, frames and requests by its own content security
policy. nbgrader's own template lets Markdown and outputs through as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache
from pathlib import Path

import jinja2
import mistune
import nh3
from markupsafe import Markup
from nbconvert.exporters import Exporter
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

MAX_OUTPUT = 20_000  # characters of text shown for one output
SCHEME = "scheme-"  # how the ids of cells begin that are for the grader only
PNG = b"\x89PNG\r\n\x1a\n"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
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
_CARD_STYLES = {
    "border",
    "border-left",
    "padding",
    "margin",
    "max-width",
    "color",
    "text-align",
    "vertical-align",
    "opacity",
    "white-space",
}


def plain(text) -> str:
    """Text without terminal codes, control characters and direction overrides."""
    text = "".join(text) if isinstance(text, list) else str(text)
    text = _CONTROL.sub("", _ANSI.sub("", text))
    if len(text) > MAX_OUTPUT:
        text = text[:MAX_OUTPUT] + f"\n... {len(text) - MAX_OUTPUT} more characters"
    return text


def inert(text: str) -> str:
    """Markdown whose raw HTML, links and pictures are text wherever it is shown, as in formgrader.

    A tag needs a letter, '/', '!' or '?' behind its '<', a link a '(' or ':' behind its ']':
    there stands a blank of no width. What the text looks like does not change.
    """
    text = _CONTROL.sub("", _ANSI.sub("", text))
    return re.sub(r"<(?=[A-Za-z/!?])|!(?=\[)|\](?=[(:])", "\\g<0>\u200b", text)


def markdown(text: str) -> Markup:
    """Markdown as HTML that can hold no script, link, image or style."""
    return Markup(
        nh3.clean(_markdown()(plain(text)), tags=_TEXT_TAGS, attributes={}, link_rel=None)
    )


@cache
def _markdown():
    return mistune.create_markdown(escape=True, plugins=["table", "strikethrough"])


def code(text: str, wrong: list[int] = ()) -> Markup:
    """Python, coloured, every character of it escaped; the lines that go wrong are marked."""
    formatter = HtmlFormatter(nowrap=True, hl_lines=list(wrong))
    return Markup(highlight(plain(text), PythonLexer(stripnl=False), formatter))


def card(html: str) -> Markup:
    """A check's card; cleaned, although we wrote it, since it quotes the student."""
    cleaned = nh3.clean(
        html,
        tags=_CARD_TAGS,
        attributes={t: {"style"} for t in _CARD_TAGS},
        filter_style_properties=_CARD_STYLES,
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


def shown(cell) -> list[tuple[str, object]]:
    """A cell's outputs as (kind, content): 'card', 'picture' or 'text'."""
    found: list[tuple[str, object]] = []
    graded = cell.metadata.get("nbgrader", {}).get("grade", False)
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if graded and output.output_type == "execute_result":
            continue  # the points, which stand in the heading
        if graded and "text/html" in data:
            found.append(("card", card("".join(data["text/html"]))))
        elif "image/png" in data and (source := picture(data["image/png"])):
            found.append(("picture", source))
        elif "text/plain" in data:
            found.append(("text", plain(data["text/plain"])))
        elif output.output_type == "stream":
            found.append(("text", plain(output.text)))
        elif output.output_type == "error":
            said = f"{output.get('ename', '')}: {output.get('evalue', '')}"
            found.append(("text", plain(output.get("traceback") or said)))
    return found


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
    cells = [_shown_cell(cell) for cell in nb.cells if not _left_out(cell)]
    graded = [cell for cell in cells if cell["data"].get("grade")]
    return _template().render(
        title=plain(title),
        cells=cells,
        score=max(0.0, score),
        max_score=max_score,
        late_penalty=late_penalty,
        not_marked=sum(cell["data"]["points"] for cell in graded if cell["data"].get("open")),
        graded=graded,
        colours=Markup(HtmlFormatter(style="default").get_style_defs(".code")),
    )


def _shown_cell(cell) -> dict:
    """What the page shows of a cell, with its mark where it has one.

    earned: the points before deductions and bonus, which stand on lines of their own (taken). A
    mark that a person gave stands as it is.
    """
    data, course = cell.metadata.get("nbgrader", {}), cell.metadata.get("course", {})
    taken = [] if data.get("by_hand") else course.get("taken", [])
    return {
        "kind": cell.cell_type,
        "source": _headings(cell.source) if _is_prose(cell) else cell.source,
        "data": data,
        "task": course.get("task", ""),
        "wrong": [line for line in course.get("wrong", []) if isinstance(line, int)],
        "outputs": shown(cell),
        "earned": float(data.get("score") or 0.0) - sum(line["points"] for line in taken),
        "taken": taken,
    }


def _is_prose(cell) -> bool:
    """The lesson's own text, which the student has already: its headings are enough here."""
    return cell.get("id", "").startswith("markdown-")


def _left_out(cell) -> bool:
    """Imports, prose without a heading, and what is meant for the grader only."""
    if _is_prose(cell):
        return not _headings(cell.source)
    return cell.get("id", "").startswith(("setup-", SCHEME))


def _headings(text: str) -> str:
    """The headings of a Markdown text, and nothing inside its code blocks."""
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return "\n\n".join(line for line in outside.splitlines() if re.match(r"#{1,4} ", line))


@cache
def _template() -> jinja2.Template:
    folder = Path(__file__).parent / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        markdown=markdown,
        code=code,
        plain=plain,
        points=lambda x: f"{float(x or 0):g}",
        change=lambda x: f"{x:+g}".replace("-", "\N{MINUS SIGN}") if x else "",
    )
    return environment.get_template("feedback.html")
