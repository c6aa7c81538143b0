"""The feedback page can be read by everyone: by eye, light or dark, by keyboard, by ear."""

import copy
import json
import re
import shutil
import subprocess
from html import unescape
from importlib.resources import files

import nbformat
import pytest

from autograder.course.asking import Finding, Verdict
from autograder.course.course import Course
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from autograder.grading.notebooks import cause
from autograder.reports.cards import Card
from autograder.reports.feedback import FOLDED, PROSE, code, markdown, page, said
from autograder.reports.plain import descriptions
from tests.conftest import ROOT

HOMEWORK = "05_homework"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# Axe is run in the page itself, and what it finds is written into the title.
AXE = """
axe.run(document, {resultTypes: ["violations"]}).then(found => {
  document.title = JSON.stringify(found.violations.map(v => [v.impact, v.id, v.nodes[0].html]));
});
"""
LINES = 3000
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WRONG = Finding("scale.missing", Verdict.WRONG, "The scores are not scaled.", 5, "s = q @ k")
TRUE = Finding("shape_comments", Verdict.TRUE, "Line 9: true.", 9, "q = self.q(x)")

COMMENTS = [
    {"line": 11, "verdict": "true", "said": ""},
    {"line": 12, "verdict": "false", "said": "`k` is [b, <i>s</i>], not [s, b]."},
    {"line": 13, "verdict": "cannot tell", "said": "`n` is not known."},
]


@pytest.fixture(scope="module")
def notebook():
    """The homework as it comes out of nbgrader: a mark of each kind, a figure, a flood of text."""
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    models = model_answers(Course.at(ROOT), HOMEWORK)
    answers = {cell: text.partition("**Marking")[0] for cell, text in models.items()}
    nb = nbformat.reads(fill_in(lesson, answers), as_version=4)
    marked = iter([(1, True), (0, False), (2, None)])
    for cell in nb.cells:
        data = cell.metadata.get("nbgrader", {})
        if cell.id == "self_attention":
            cell.metadata.course["shapes"] = COMMENTS
            cell.metadata.course["wrong"] = [12]
        if data.get("grade") and cell.cell_type == "markdown":
            data["open"], data["score"] = True, 0
        elif data.get("grade"):
            data["score"], passed = next(marked, (data["points"], True))
            card = Card(cell.metadata.course.task, passed, (TRUE,) if passed else (WRONG,))
            cell.metadata.course["cause"] = cause(card.findings)
            html = {"text/html": card._repr_html_(), "text/plain": repr(card)}
            cell.outputs = [nbformat.v4.new_output("display_data", data=html)]
            if passed is None:
                said = "1 point off for the scale."
                taken = {"verdict": "deduction", "message": said, "points": -1.0}
                cell.metadata.course["taken"] = [taken]
                data["comment"] = "Well done, $\\sqrt{d}$ and all."
        elif "show(" in cell.source:
            flood = nbformat.v4.new_output("stream", text="line\n" * LINES)
            cell.outputs = [
                flood,
                nbformat.v4.new_output("display_data", data={"image/png": PIXEL}),
            ]
    return nb


@pytest.fixture(scope="module")
def html(notebook) -> str:
    return page(notebook, HOMEWORK, 8, 15)


def test_there_is_one_heading_of_the_first_level(html):
    assert html.count("<h1>") == 1
    levels = [int(n) for n in re.findall(r"<h([1-6])", html)]
    assert levels[0] == 1 and set(levels[1:]) <= {2, 3, 4, 5, 6}


def test_a_question_stands_above_its_answer(html):
    asked, answered = "respond most strongly to a", "They become more focused"
    assert html.index(asked) < html.index(answered)
    before = html[: html.index(asked)]
    assert before.count("<details>") == before.count("</details>")  # it is not folded away


def test_a_figure_has_the_text_that_the_lesson_gives_it(html):
    texts = re.findall(r'<img alt="([^"]*)"', html)
    assert texts and any(t.startswith("Influence of each input token") for t in texts)


def test_a_figure_without_one_is_called_so():
    assert descriptions("show(fig, text)\nother(fig, 'x')") == ["A figure of the lesson"]
    assert descriptions("show(fig, alt='a plot')") == ["a plot"]
    assert descriptions("show(fig, 'one" + "\n") == []


def test_a_flood_of_output_is_folded(html):
    assert f"{LINES - FOLDED} more lines" in html


def test_what_is_to_be_done_leads_to_the_task_and_all_else_is_left_out(html):
    section = html.partition('id="next"')[2].partition("</ol>")[0]
    assert section.count("<li>") == 2
    assert "The scores are not scaled. <code>hint(" in section  # the mistake, and what helps
    assert "right, but for what was taken off" in section
    assert html.index('id="next"') < html.index('<table class="marks">')
    for target in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{target}"' in html


def test_a_page_without_a_cause_says_to_read_the_check(notebook):
    bare = copy.deepcopy(notebook)
    for cell in bare.cells:
        cell.metadata.get("course", {}).pop("cause", None)
    section = page(bare, HOMEWORK, 8, 15).partition('id="next"')[2].partition("</ol>")[0]
    assert "mend what the check says; <code>hint(" in section


def graded(task: str, kind: str, score: float, most: float, **facts) -> nbformat.NotebookNode:
    """A notebook of one mark."""
    data = {"grade": True, "solution": False, "grade_id": "g", "points": most, "score": score}
    new = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}[kind]
    cell = new("an answer", metadata={"nbgrader": {**data, **facts}, "course": {"task": task}})
    return nbformat.v4.new_notebook(cells=[cell])


@pytest.mark.parametrize(
    ("kind", "facts", "advice"),
    [
        ("code", {}, "mend what the check says;"),
        ("code", {"by_hand": True}, "a person gave this mark: read the comment on your answer"),
        ("markdown", {"comment": "Why?"}, "read the comment, and write the answer anew."),
        (
            "markdown",
            {"comment": "No response."},
            "not answered yet: write your answer below the question.",
        ),
        ("markdown", {}, "read the question again, and write the answer anew."),
    ],
)
def test_what_is_to_be_done_follows_who_gave_the_mark(kind, facts, advice):
    html = page(graded("t", kind, 0.5, 1.0, **facts), "n", 0.5, 1.0)
    (line,) = re.findall(r"<li>(.*?)</li>", html)
    assert advice in line
    assert "<li>" not in page(graded("t", kind, 1.0, 1.0, **facts), "n", 1.0, 1.0)


def test_the_first_wrong_line_is_told_in_words_and_not_by_its_colour_alone(html):
    answer = html.partition('id="self_attention"')[2].partition("</section>")[0]
    (marked,) = re.findall(r'<span class="hll">(.*?)\n</span>', answer, re.DOTALL)
    assert "the first wrong line" in marked
    assert html.count("the first wrong line") == 1


def test_a_printed_table_is_not_broken_into_pieces_and_a_sentence_is():
    def shown_as(text: str) -> str:
        cell = nbformat.v4.new_code_cell(
            "f()", outputs=[nbformat.v4.new_output("stream", text=text)]
        )
        html = page(nbformat.v4.new_notebook(cells=[cell]), "n", 0, 0)
        return re.search(r'<div class="output">(<pre.*?>)', html)[1]

    assert shown_as("   h   spread\n  16     4.05\n") == '<pre class="columns" tabindex="0">'
    assert shown_as("  a sentence that is long\n  and another\n") == "<pre>"
    assert shown_as(" " * 200_000) == "<pre>"


def test_the_isolation_is_told_once_at_the_end(notebook):
    marked = copy.deepcopy(notebook)
    for cell in marked.cells:
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
            text = "isolation: namespaces\n"
            cell.metadata.course["isolation"] = "namespaces"
            cell.outputs.append(nbformat.v4.new_output("stream", name="stdout", text=text))
    html = page(marked, HOMEWORK, 8, 15)
    assert html.count("isolation") == 1
    assert html.index("isolation: namespaces") > html.rindex("</section>")


def test_the_lessons_own_code_is_folded_and_no_answer_is(html):
    folded = re.findall(r"<summary>The lesson&#39;s code</summary>|The lesson's code", html)
    cells = [c for c in Course.at(ROOT).lessons[HOMEWORK].notebook.cells if "code-0" in c.id]
    assert len(folded) == len(cells) > 3
    answer = html.partition('id="self_attention"')[2].partition("</section>")[0]
    assert "<details>" not in answer


def test_a_card_of_a_wrong_answer_sums_up_the_comments_that_are_true():
    true = tuple(Finding("shape_comments", Verdict.TRUE, "", n, "x = 1") for n in (3, 5))
    false = Finding("shape_comments", Verdict.FALSE, "Line 7: no.", 7, "y = 1")
    rows = Card("t", False, (WRONG, *true, false)).rows()
    assert ("true", "the shape comments of lines 3, 5") in rows and ("line 7", "false: no.") in rows
    assert not [label for label, _ in rows if label in ("line 3", "line 5")]
    assert ("line 3", "true: `x = 1`") in Card("t", True, true).rows()


def test_what_stands_between_backticks_is_code_and_nothing_of_it_is_markup():
    assert said("`q` is <b>") == "<code>q</code> is &lt;b&gt;"
    assert said("one ` alone") == "one ` alone"


def test_a_task_that_lost_a_point_only_is_not_called_wrong(html):
    (task,) = re.findall(r"<b>nearly</b>\s*<code>([\w.]+)</code>", html)
    assert f"<b>not yet</b> <code>{task}</code>" not in html


def test_a_shape_comment_is_judged_beside_its_line(html):
    source = html.partition('id="self_attention"')[2].partition("</pre>")[0]
    lines = unescape(re.sub(r"<(?!i>|/i>)[^>]*>", "", source[source.index("<pre") :])).split("\n")
    place = next(n for n, line in enumerate(lines) if "✓ true" in line)
    assert "#" in lines[place] or "=" in lines[place]  # the very line that it judges
    assert lines[place + 2] == "shape comment: false. k is [b, <i>s</i>], not [s, b]."
    assert lines[place + 4] == "shape comment: cannot tell. n is not known."
    assert "<i>s</i>" not in source  # what a student wrote is text


def test_without_notes_a_program_is_shown_as_it_was_written():
    text = "def f(x):\n    return '<b>' \n\n\ny = 1"
    shown = unescape(re.sub(r"<[^>]*>", "", code(text)))
    assert shown == text + "\n"


def violations(html: str, folder, dark: bool, width: int = 1200) -> list:
    """What axe finds in a page that it may look at: the policy that forbids scripts is left out."""
    script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    text = re.sub(r"<meta http-equiv[^>]*>", "", html)
    text = text.replace("</body>", f"<script>{script}</script><script>{AXE}</script></body>")
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    flags += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom"]
    flags += ["--blink-settings=preferredColorScheme=0"] * dark
    command = [BROWSER, *flags, path.as_uri()]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    title = re.search(r"<title>(.*?)</title>", said, re.DOTALL)[1]
    return json.loads(unescape(title))


@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
@pytest.mark.parametrize(
    ("dark", "width"), [(True, 1200), (False, 1200), (True, 390), (False, 390)]
)
@pytest.mark.slow
def test_axe_finds_nothing(html, tmp_path, dark, width):
    assert violations(html, tmp_path, dark, width) == []


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
def test_axe_would_find_something(html, tmp_path):
    worse = html.replace("--quiet: #59636e", "--quiet: #d0d0d0").replace(' lang="en"', "")
    assert {"color-contrast", "html-has-lang"} <= {v[1] for v in violations(worse, tmp_path, False)}


def test_a_lessons_folded_answer_is_folded_on_the_page_with_its_formulas():
    text = "**1.** Why?\n<details><summary>Answer</summary><code>nan</code>: $-\\infty$</details>"
    html = markdown(text, PROSE, tags=True)
    assert "<details><summary>Answer</summary><code>nan</code>: <math" in html
    assert "&lt;details&gt;" in markdown(text)  # of a student's text every sign is shown


def test_tags_that_are_kept_hold_no_script_and_hide_no_text():
    html = markdown(
        "<details><script>alert(1)</script><b onclick='x()'>y</b>\n\nList<int>", tags=True
    )
    assert "<script" not in html and "onclick" not in html and "alert" not in html
    assert "List&lt;int&gt;" in html


def test_each_line_of_an_answer_has_its_number():
    answer = 'def f(x):\n    """One,\n    two."""\n\n    return x'
    assert str(code(answer)).count('<span class="line"') == 5
