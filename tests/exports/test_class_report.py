"""The class report says what became of a class, in one file that does nothing but be read."""

import csv
import io
import re
import shutil

import pytest

from autograder.course.course import Course
from autograder.course.lesson import Role
from autograder.exports import report
from autograder.exports.alike import alike, syntax
from autograder.exports.marked import Class, Marked, TaskMark
from autograder.grading.grade import model_answers
from autograder.grading.records import Record
from autograder.intake.submission import StudentCell, Submission
from autograder.reports.report import Report
from tests.conftest import ROOT
from tests.exports.conftest import NASTY, autograder
from tests.journeys.classroom import HOMEWORK
from tests.test_feedback import BROWSER, violations
from tests.test_homework_styles import SINGLE_STYLES


@pytest.fixture(scope="module")
def html(room) -> str:
    said = autograder(room, "report")
    return (room.folder / said.strip()).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows(room) -> list[dict]:
    said = autograder(room, "report", "--csv")
    text = (room.folder / said.strip()).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def of(rows, what: str) -> list[dict]:
    return [row for row in rows if row["what"] == what]


def test_the_commonest_mistake_stands_first_by_name_with_those_who_made_it(html, rows):
    first = of(rows, "mistake")[0]
    assert (first["name"], first["value"]) == ("scale.missing", "2")
    assert {r["student"] for r in of(rows, "mistake by") if r["name"] == "scale.missing"} == {
        "ben",
        "cy",
    }
    section = html.partition('id="mistakes"')[2].partition("</section>")[0]
    assert "scale.missing" in section and "2 of 5" in section
    assert "A worked answer" in section and "self.scale" in re.sub(r"<.*?>", "", section)


def test_the_points_are_those_of_the_gradebook(room, rows):
    told = {r["student"]: float(r["value"] or 0) for r in of(rows, "mark") if r["task"] == "q1"}
    assert told == dict.fromkeys(("ada", "ben", "cy", "dev", "zoe"), 0.0)
    sums = {}
    for row in of(rows, "mark"):
        sums[row["student"]] = sums.get(row["student"], 0.0) + float(row["value"] or 0)
    assert sums == room.scores()


def test_the_courses_late_policy_counts_in_the_report_as_in_the_export(room, rows):
    (late,) = of(rows, "late penalty")
    assert (late["student"], late["value"]) == ("ada", "-2")
    totals = {row["student"]: float(row["value"]) for row in of(rows, "total")}
    assert totals["ada"] == room.scores()["ada"] - 2 and totals["ben"] == room.scores()["ben"]


def named(*students: tuple[str, str, str, float]) -> Class:
    """A class of (id, name, section, points)."""
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    task = lesson.tasks[0].task
    marks = [{task: TaskMark(task, points, 10.0)} for *_, points in students]
    some = [
        Marked(who, name, section=section, marks=own)
        for (who, name, section, _), own in zip(students, marks, strict=True)
    ]
    return Class(lesson, tuple(some))


def test_two_of_one_name_are_told_apart_and_each_section_has_its_mean():
    some = named(("1", "Kim Lee", "Mo", 4.0), ("2", "Kim Lee", "Tu", 6.0), ("3", "Ada", "Tu", 8.0))
    html = report.page(some, Course.at(ROOT))
    text = " ".join(re.sub(r"<[^>]*>", " ", html).split())
    assert "Kim Lee (1)" in text and "Kim Lee (2)" in text and "Kim Lee (1) (1)" not in text
    assert "section students handed in mean Mo 1 1 4 Tu 2 2 7" in text
    one = report.page(named(("1", "Ada", "Mo", 4.0)), Course.at(ROOT))
    assert ">section<" not in one


def test_a_total_stands_beside_its_name_and_what_nobody_owes_has_no_column(html):
    table = html.partition('id="students"')[2]
    heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", table.partition("</thead>")[0])
    assert heads[:3] == ["student", "total", "late penalty"]  # Ada of this class is late
    assert "late penalty" not in report.page(named(("1", "Ada", "", 4.0)), Course.at(ROOT))


def test_a_question_that_waits_for_a_person_has_no_mean_of_those_who_left_it_blank():
    waiting, blank = (
        Marked(who, who, marks={"q1": TaskMark("q1", points, 1.0)})
        for who, points in (("ada", None), ("ben", 0.0))
    )
    lesson = Course.at(ROOT).lessons[HOMEWORK]

    def mean(*students) -> str:
        html = report.page(Class(lesson, students), Course.at(ROOT))
        (row,) = re.findall(r"<tr><th scope=\"row\">q1</th>(.*?)</tr>", html)
        return re.findall(r"<td[^>]*>(.*?)</td>", row)[1]

    assert mean(blank) == "0" and mean(waiting, blank) == ""


def test_who_is_stuck_is_named_at_the_first_task_that_is_not_right(rows):
    first = {row["student"]: row["task"] for row in of(rows, "stuck first")}
    assert first == {"cy": "multi_head.scores", "dev": "self_attention.init"}


def test_a_file_that_cannot_be_read_is_told_and_is_not_called_wrong(html, rows):
    assert [r["student"] for r in of(rows, "repaired") if "not a notebook" in r["said"]] == ["zoe"]
    assert {r["said"] for r in of(rows, "mark") if r["student"] == "zoe"} == {"could not be read"}


def test_every_mark_of_the_machine_has_its_isolation_and_seed(rows):
    made = {row["student"]: row for row in of(rows, "made")}
    assert set(made) == {"ada", "ben", "cy", "dev", "zoe"}
    assert all(re.fullmatch(r"seed \d+", row["value"]) for row in made.values())
    assert made["ada"]["name"] in ("namespaces", "landlock", "limits")


def test_the_page_is_inert_and_needs_no_network(html):
    assert "default-src 'none'" in html
    for tag in ("<script", "<link", "<iframe", "onerror=", "javascript:"):
        assert tag not in html
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    assert NASTY.partition("<")[2] not in html  # it is there as text only


def test_every_picture_has_a_text_and_every_link_its_place(html):
    assert all(len(alt) > 20 for alt in re.findall(r'<img [^>]*alt="([^"]*)"', html))
    assert html.count("<img") == 2
    for target in re.findall(r'href="#([^"]+)"', html):
        assert f'id="{target}"' in html


def test_a_cell_of_the_table_is_no_formula(rows):
    assert not [v for row in rows for v in row.values() if v.startswith(("=", "+", "@"))]


def test_a_lesson_without_marks_is_said_with_those_that_have_some(room):
    said = autograder(room, "report", "--lesson", "05_homwork", status=2)
    assert "no marks of 05_homwork. It has 05_homework. Did you mean '05_homework'?" in said


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_on_a_phone(html, tmp_path, dark):
    assert violations(html, tmp_path, dark, 390) == []
    shutil.rmtree(tmp_path / "profile", ignore_errors=True)


# --- answers that are alike ----------------------------------------------------------------------
ODD = """
class SelfAttention(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(a, b) for _ in range(3))
        self.odd = [b, b * 2, b * 3]

    def forward(self, x):
        table = {}
        for place, layer in enumerate((self.q, self.k, self.v)):
            table[place] = layer(x)
        rows = []
        for one in range(x.shape[0]):
            if one > 100 and self.odd[0] < 7:
                rows.append(table[0][one] @ table[1][one].T * 0.25)
            else:
                rows.append(table[0][one] @ table[1][one].T / self.odd[0] ** 0.5)
        together = torch.stack(rows).softmax(-1)
        return torch.einsum("bij,bjk->bik", together, table[2])
"""


def of_class(**sources: str) -> Class:
    """A class in which each student has written this answer to the first exercise."""
    lesson = Course.at(ROOT).lessons[HOMEWORK]
    cell = lesson.with_role(Role.EXERCISE)[0]
    students = []
    for name, source in sources.items():
        own = StudentCell(cell.id, Role.EXERCISE, "code", source, True)
        submission = Submission(name, HOMEWORK, (own,), (), None)
        record = Record("", "", submission, Report(name, HOMEWORK, "none"), {})
        marks = {"self_attention.init": TaskMark("self_attention.init", 1.0, 1.0)}
        students.append(Marked(name, name, marks=marks, record=record))
    return Class(lesson, tuple(students))


def pairs(**sources: str) -> list[tuple[str, str]]:
    found = alike(of_class(**sources), model_answers(Course.at(ROOT), HOMEWORK))
    return [(pair.one, pair.other) for pair in found]


RIGHT = model_answers(Course.at(ROOT), HOMEWORK)["self_attention"]


def test_a_copy_with_other_names_comments_and_layout_is_a_hint():
    copy = ODD.replace("table", "d").replace("rows", "out").replace("one", "i")
    copy = copy.replace("        d = {}", "        # my own idea\n        d: dict = {}")
    assert pairs(ada=ODD, ben=copy, cy=RIGHT) == [("ada", "ben")]


def test_usual_right_answers_are_none():
    other = RIGHT.replace("scores", "s").replace("probs", "weights")
    assert pairs(ada=RIGHT, ben=other, cy=RIGHT) == []


def test_right_answers_in_seven_styles_are_none():
    assert pairs(**{name.replace(" ", "_"): text for name, text in SINGLE_STYLES.items()}) == []


def test_what_many_wrote_is_no_hint():
    assert pairs(**{f"s{n}": ODD for n in range(12)}, ada=RIGHT) == []


def test_an_answer_that_cannot_be_read_is_like_no_other():
    assert pairs(ada="def f(:", ben="def f(:") == []
    assert syntax("(" * 10_000) == () and syntax("x = " + "-" * 20_000 + "1") == ()
