"""Sphinx's settings for the site; `tools/site/build.py` puts its pages together."""

from docutils import nodes

from autograder.course.course import Course
from autograder.reports.formulas import mathml

project = Course.find().settings.title
author, copyright = "", ""  # noqa: A001
extensions = ["myst_nb"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 6
nb_execution_mode = "off"  # the lessons come executed, as they were built
nb_render_markdown_format = "myst"
html_theme = "furo"
pygments_dark_style = "github-dark"  # as on the feedback pages; names of modules are no links
html_title = project
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
templates_path, html_static_path = [], []
linkcheck_ignore = [r"https?://"]  # no page needs the network to be right
suppress_warnings = ["myst.header"]  # lessons and pages begin as they do elsewhere


def _math(self, node, block: bool) -> None:
    """A formula as MathML, which browsers draw without a script and without a request."""
    text = node.astext()
    written = mathml(text, block)
    if written is None:
        written = f"<code>{self.encode(text)}</code>"
    self.body.append(f'<div class="math">{written}</div>' if block else written)
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: _math(self, node, False), None),
        block_renderers=(lambda self, node: _math(self, node, True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
