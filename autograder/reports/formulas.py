"""Formulas of a Markdown text as MathML, which browsers draw without a script or a request.

What a student writes is among them: only elements and attributes of the lists below are written,
every text is escaped, and what is too long or cannot be read is shown as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

LONGEST = 1_000  # characters of one formula
MOST = 200  # formulas of one text
DEEPEST = 40  # elements within each other
_IN_HTML = re.compile(rf"\$([^$<>]{{1,{LONGEST}}})\$")
_MARK = re.compile("\ue000([0-9]{1,4})\ue001")
_TAGS = {
    *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot"),
    *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd"),
    *("mstyle", "mpadded", "mphantom", "menclose"),
}
_ATTRIBUTES = {
    *(
        "display",
        "stretchy",
        "fence",
        "form",
        "separator",
        "accent",
        "movablelimits",
        "linethickness",
    ),
    *("columnalign", "rowspacing", "columnspacing", "width", "mathvariant", "displaystyle"),
    *("scriptlevel", "lspace", "rspace", "minsize", "maxsize", "notation"),
}
_VALUE = re.compile(r"[A-Za-z0-9 .%+-]{1,60}")


def mathml(latex: str, block: bool = False) -> str | None:
    """A formula as MathML; None where it is too long or is none."""
    if len(latex) > LONGEST:
        return None
    try:
        root = convert_to_element(latex.strip(), display="block" if block else "inline")
        return _written(root, DEEPEST)
    except Exception:  # the converter has an error for each way in which LaTeX can be broken
        return None


def _written(element: Element, depth: int) -> str:
    if not depth:
        raise ValueError("too deep")
    inner = escape(unescape(element.text or "")) + "".join(
        _written(child, depth - 1) + escape(unescape(child.tail or "")) for child in element
    )
    if element.tag not in _TAGS:
        return inner
    kept = "".join(
        f' {name}="{value}"'
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES and _VALUE.fullmatch(value)
    )
    return f"<{element.tag}{kept}>{inner}</{element.tag}>"


class Formulas:
    """Formulas found while a text is rendered: marks stand for them until it has been cleaned."""

    def __init__(self):
        self._found: list[str] = []

    def mark(self, latex: str, block: bool) -> str:
        """What stands for a formula in the text."""
        written = mathml(latex, block) if len(self._found) < MOST else None
        sign = "$$" if block else "$"
        self._found.append(written or f"<code>{escape(sign + latex + sign)}</code>")
        return f"\ue000{len(self._found) - 1}\ue001"

    def put(self, html: str) -> str:
        """The cleaned text with the formulas in their places."""
        return _MARK.sub(lambda m: "".join(self._found[int(m[1]) : int(m[1]) + 1]), html)


def in_html(html: str, written: Callable[[str], str | None]) -> str:
    """HTML of a Markdown text, whose formulas no Markdown reader looks for.

    written: what stands for a formula; None where it stays as it is.
    """
    return _IN_HTML.sub(lambda m: written(unescape(m[1])) or m[0], html)


def without_marks(text: str) -> str:
    """A text in which nothing can be taken for one of the marks."""
    return text.replace("\ue000", "").replace("\ue001", "")
