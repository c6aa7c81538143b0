"""Marks elsewhere: each file is read back by the rules that its platform publishes."""

import csv
import io
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import datetime

import pytest

from autograder.course.asking import Finding, Verdict
from autograder.course.settings import CourseError, Late
from autograder.exports import formats, late
from autograder.exports.gradescope import results
from autograder.exports.marked import Class, Marked, TaskMark
from autograder.exports.roster import joined, read_roster
from autograder.exports.tables import as_csv, harmless
from autograder.reports.report import Report, Result
from tests.exports.conftest import autograder
from tests.journeys.classroom import HOMEWORK, NAME, filled, right


def export(room, *args: str) -> tuple[list[list[str]], str]:
    """The rows of the CSV that a command writes, and all that it said."""
    said = autograder(room, "export", *args)
    name = next(line for line in said.splitlines() if line.startswith("reports/"))
    text = (room.folder / name).read_bytes().decode("utf-8")
    return list(csv.reader(io.StringIO(text, newline=""))), said


# --- late ----------------------------------------------------------------------------------------
DAY, HOUR = 86_400, 3600


@pytest.mark.parametrize(
    "policy, earned, seconds, off",
    [
        (Late(points_a_day=1), 10, 0, 0),
        (Late(points_a_day=1), 10, 1, 1),  # a day that has begun
        (Late(points_a_day=1), 10, DAY, 1),
        (Late(points_a_day=1), 10, DAY + 1, 2),
        (Late(points_a_day=1), 1.5, 5 * DAY, 1.5),  # never more than was earned
        (Late(points_a_day=1, grace_hours=2), 10, 2 * HOUR, 0),
        (Late(points_a_day=1, grace_hours=2), 10, 2 * HOUR + 1, 1),
        (Late(percent_a_day=10), 8, 3 * DAY, 2.4),
        (Late(percent_a_day=10, most_percent=25), 8, 9 * DAY, 2),
        (Late(points_a_day=1, percent_a_day=10), 10, DAY, 2),
        (Late(points_a_day=1), 0, DAY, 0),
    ],
)
def test_a_late_day_costs_what_the_policy_says(policy, earned, seconds, off):
    assert late.penalty(policy, earned, seconds) == pytest.approx(off)


def test_a_due_date_that_is_none_is_named():
    with pytest.raises(CourseError, match="05_homework = 'soon'"):
        late.with_due(of(), Late(due={"05_homework": "soon"}))


# --- tables --------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd", "@x", "  =1", "\t=1", "\r=1", "\ufeff=1"])
def test_a_text_that_a_spreadsheet_would_run_gets_a_quote(text):
    assert harmless(text) == f"'{text}"


def test_numbers_and_usual_texts_stay_as_they_are():
    assert [harmless(x) for x in (-1.5, 3, None, "Ada = x", "", "a-b")] == [
        *("-1.5", "3", "", "Ada = x", "", "a-b")
    ]


def test_every_cell_is_quoted_and_comes_back():
    rows = [['say "hi"', "a,b", "two\nlines", "Zoë"]]
    text = as_csv(rows)
    assert text.startswith('"say ""hi"""')
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


# --- the platforms -------------------------------------------------------------------------------
def test_the_plain_table_has_every_mark_and_the_gradebooks_totals(room):
    (head, *rows), said = export(room)
    table = {row[head.index("id")]: dict(zip(head, row, strict=True)) for row in rows}
    earned = {who: float(row["earned"]) for who, row in table.items()}
    assert earned == room.scores()
    assert table["ben"]["self_attention.forward"] == "2"  # a point off for the scale
    assert table["ada"]["late_penalty"] == "2"  # a day and a half
    assert table["cy"]["late_penalty"] == "0"  # within the hour of grace
    assert float(table["ada"]["total"]) == room.scores()["ada"] - 2
    assert table["ada"]["not_marked_yet"] == "5" and "nobody has marked yet" in said


def read_as_canvas(rows) -> tuple[str, float, dict[str, str]]:
    """The assignment, its points, and the scores by student, as Canvas's importer reads a file.

    lib/gradebook_importer.rb: the first cell holds 'Student', the second 'ID'; 'SIS User ID' and
    'SIS Login ID' follow; the last of them is 'Section'; a row with 'Points Possible' is no
    student; a student is found by number, SIS number, login, name, in this order.
    """
    head, *rest = rows
    assert len(head) > 3 and "Student" in head[0] and "ID" in head[1]
    assert re.search(r"SIS\s+User\s+ID", head[2]) and re.search(r"SIS\s+Login\s+ID", head[3])
    assert "Section" in head[4]
    (column,) = head[5:]
    points, scores = None, {}
    for row in rest:
        if "Points Possible" in row[0]:
            points = float(row[5])
        elif any(cell.strip() for cell in row):
            scores[row[1] or row[2] or row[3] or row[0]] = row[5]
    return column, points, scores


def test_canvas_reads_its_file(room):
    rows, _ = export(room, "--format", "canvas", "--column", "Homework (1234)")
    column, points, scores = read_as_canvas(rows)
    assert (column, points) == ("Homework (1234)", 15.0)
    assert {who: float(score) for who, score in scores.items()} == {
        **room.scores(),
        "ada": room.scores()["ada"] - 2,
    }


def test_a_gradebook_from_canvas_is_a_roster(room, tmp_path):
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (7)\n"
        "    Points Possible,,,,,10\n"
        '"Lovelace, Ada",4711,m1,ada,Monday,3\n'
        '"Nobody, Nora",4712,m2,nora,Monday,\n',
        encoding="utf-8-sig",
    )
    rows, said = export(room, "--format", "canvas", "--roster", str(roster))
    _, _, scores = read_as_canvas(rows)
    assert float(scores["4711"]) == room.scores()["ada"] - 2
    assert "4712" not in scores  # a blank cell would take away the mark that Canvas has
    assert "ben is not in the roster" in said and "--zeros" in said
    rows, _ = export(room, "--format", "canvas", "--roster", str(roster), "--zeros")
    assert read_as_canvas(rows)[2]["4712"] == "0"


def test_moodle_reads_its_file(room, tmp_path):
    """docs.moodle.org, 'Grade import': a header, users by number or address, grade and feedback.

    grade/import/csv/classes/load_data.php: a row whose user cell is blank is written for the user
    of the row before; one user that is not there stops the whole import; a blank grade is none.
    """
    roster = tmp_path / "moodle.csv"
    roster.write_text(
        "First name;Last name;ID number;Email address;Groups\n"
        "Ada;Lovelace;ada;ada@example.org;A\nBen;Bitdiddle;ben;ben@example.org;A\n"
    )
    (head, *rows), said = export(room, "--format", "moodle", "--roster", str(roster))
    columns = ["First name", "Last name", "ID number", "Email address"]
    assert head == [*columns, HOMEWORK, f"{HOMEWORK} (feedback)"]
    assert [row[2] for row in rows] == ["ada", "ben"]
    assert "Not in the file, because Moodle would not know them: cy, dev, zoe." in said
    ada = rows[0]
    assert ada[:4] == ["Ada", "Lovelace", "ada", "ada@example.org"]
    assert float(ada[4]) == room.scores()["ada"] - 2
    assert "self_attention.init: 1 of 1" in ada[5] and "late: -2" in ada[5]
    assert all(all(row) for row in rows)


NOBODY = Marked("nora", "Nora", sis="m9", email="nora@x.org", listed=True)


def moodle_rows(*students: Marked, zeros: bool = False) -> tuple[list[str], list[list[str]]]:
    head, *rows = csv.reader(io.StringIO(formats.moodle(of(*students), zeros), newline=""))
    return head, rows


def test_no_row_for_moodle_has_a_blank_where_others_say_who_it_is():
    both = one("a", sis="m1", email="a@x.org", listed=True)
    address, number = one("b", email="b@x.org", listed=True), one("c", sis="m3", listed=True)
    head, rows = moodle_rows(both, address)
    assert head[2:3] == ["Email address"] and [row[2] for row in rows] == ["a@x.org", "b@x.org"]
    head, rows = moodle_rows(both, number)
    assert head[2:3] == ["ID number"] and [row[2] for row in rows] == ["m1", "m3"]
    for some in ((both, address, number), (address, number), (number, both, address)):
        head, rows = moodle_rows(*some)
        assert len(head) == 5 and all(row[2] for row in rows)
        (left,) = [s for s in formats.remarks(of(*some), "moodle", False) if "Not in the" in s]
        assert len(rows) + left.count(",") == len(some)  # one comma in the sentence itself


def test_a_number_of_moodles_zip_is_no_id_number_where_the_roster_knows_better():
    ada = replace(one("7001", email="a@x.org", listed=True), name="Ada Lovelace")
    head, rows = moodle_rows(ada)
    assert head[2] == "Email address" and rows[0][2] == "a@x.org" and "7001" not in rows[0]


@pytest.mark.parametrize("format", ["canvas", "moodle"])
def test_who_has_no_mark_has_no_row_but_by_zeros(format):
    make, some = formats.FORMATS[format], of(one("ada", sis="m1", email="e", listed=True), NOBODY)
    assert "m9" not in make(some) and "--zeros" in " ".join(formats.remarks(some, format, False))
    assert "m9" in make(some, zeros=True)
    assert "--zeros" not in " ".join(formats.remarks(some, format, True))


def test_canvas_asks_whose_a_mark_is_rather_than_take_the_first_of_that_name():
    known = Marked("103", "Kim Lee", marks={"t": TaskMark("t", 1.0, 1.0)}, platform="103")
    known = replace(known, listed=True)
    other = Marked("kim9", "Kim Lee", marks={"t": TaskMark("t", 0.0, 1.0)})
    rows = list(csv.reader(io.StringIO(formats.canvas(of(known, other)))))[2:]
    assert [row[:4] for row in rows] == [
        ["Kim Lee", "103", "", ""],
        ["Kim Lee (kim9)", "", "", "kim9"],
    ]


NAMES = ['O"Brien, Jr.', "two\nlines", "María José", "עדה כהן", "=1+1", "Zoë; Ann", "李 雷"]


@pytest.mark.parametrize("format", ["csv", "canvas", "moodle"])
def test_no_name_breaks_a_row(format):
    some = of(*(one(name, sis=f"m{i}", listed=True) for i, name in enumerate(NAMES)))
    text = formats.FORMATS[format](some)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == len(NAMES) + (2 if format == "canvas" else 1)
    if format == "canvas":
        written = [row[0] for row in rows[2:]]
        assert written == ["'=1+1" if n == "=1+1" else " ".join(n.split()) for n in NAMES]


@pytest.mark.parametrize(
    "name, two",
    [
        ("Ada Lovelace", ("Ada", "Lovelace")),
        ("Lovelace, Ada", ("Ada", "Lovelace")),
        ("Ana María de la Cruz", ("Ana María de la", "Cruz")),
        ("ada", ("ada", "")),
    ],
)
def test_a_name_has_two_parts_for_moodle(name, two):
    (_, row) = csv.reader(io.StringIO(formats.moodle(of(one(name)))))
    assert tuple(row[:2]) == two


# --- the roster ----------------------------------------------------------------------------------
def of(*students: Marked) -> Class:
    from autograder.course.lesson import Lesson

    return Class(Lesson("05_homework", (), None), students)


def one(name: str, **more) -> Marked:
    return Marked(name, name, marks={"t": TaskMark("t", 1.0, 1.0)}, **more)


def test_an_extension_is_a_date_or_days_more(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("id,name,extension\nada,Ada,2\nben,Ben,2026-03-09 12:00 UTC\ncy,Cy,\n")
    due = datetime(2026, 3, 1, 12)
    marked, told = joined(of(*(one(n, due=due) for n in ("ada", "ben", "cy"))), read_roster(path))
    assert [s.due.day for s in marked.students] == [3, 9, 1] and told == []


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "is empty"),
        ("colour,size\nred,3\n", "tell students apart"),
        ("id\nada\nADA\n", "line 3: 'ada' stands in line 2 too"),
        ("id,extension\nada,soon\n", "line 2: the extension 'soon'"),
    ],
)
def test_a_roster_that_cannot_be_used_is_told_with_its_line(tmp_path, text, said):
    path = tmp_path / "roster.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=re.escape(said)):
        read_roster(path)


def listed(tmp_path, text: str, *students: Marked) -> tuple[dict[str, Marked], list[str]]:
    """The students by id after the roster has spoken, and what was told."""
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding="utf-8")
    marked, told = joined(of(*students), read_roster(path))
    return {s.id: s for s in marked.students}, told


def test_the_schools_number_of_one_may_be_canvas_number_of_another(tmp_path):
    text = "Student,ID,SIS User ID,SIS Login ID,Section\nAda,12,34,ada,A\nBen,34,56,ben,B\n"
    students, told = listed(tmp_path, text, one("ada"), one("56"))
    assert (students["ada"].platform, students["56"].name, told) == ("12", "Ben", [])
    students, told = listed(tmp_path, text, one("34"))
    assert told == ["34 stands for several students of the roster."]
    assert not any(s.section for s in students.values() if s.marks)
    ben = Marked("34", "Ben", marks={"t": TaskMark("t", 1.0, 1.0)})
    assert listed(tmp_path, text, ben)[0]["34"].section == "B"  # the name says which


def test_a_name_finds_its_student_however_it_is_written(tmp_path):
    text = 'canvas_id,name\n1,"Lovelace, Ada"\n2,Jose\u0301 Marti\n'
    some = (Marked("x", "ada  LOVELACE"), Marked("y", "Jos\u00e9 Marti"))
    students, told = listed(tmp_path, text, *some)
    assert (students["x"].platform, students["y"].platform, told) == ("1", "2", [])


def test_a_name_that_two_have_is_nobodys_number(tmp_path):
    some = (Marked("old", "Kim Lee"), Marked("1", "Kim Lee"), Marked("z", "Kim Lee"))
    students, told = listed(tmp_path, "id,name\n1,Kim Lee\n", *some)
    assert [s.sis for s in (students["1"], students["old"], students["z"])] == ["1", "", ""]
    assert told == ["old is not in the roster.", "z is not in the roster."]
    students, told = listed(tmp_path, "id,name\n9,Kim Lee\n", Marked("a", "Kim Lee"), some[0])
    assert students["a"].sis == students["old"].sis == "" and len(told) == 2


@pytest.mark.parametrize("date", ["03/05/2026", "-1", "3 days", "12 o'clock"])
def test_a_date_that_may_be_read_two_ways_is_refused(tmp_path, date):
    with pytest.raises(CourseError, match="2026-03-05"):
        listed(tmp_path, f"id,extension\nada,{date}\n")


def test_days_more_than_no_date_are_told(tmp_path):
    students, told = listed(tmp_path, "id,extension\nada,2\nben,\n", one("ada"), one("ben"))
    assert "[tool.autograder.late]" in " ".join(told)


def test_two_of_one_name_are_not_mixed_up(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("id,name\n1,Kim Lee\n2,Kim Lee\n")
    marked, told = joined(of(Marked("x", "Kim Lee", marks={}), one("2")), read_roster(path))
    assert told == ["x is not in the roster."]
    assert {s.id: s.name for s in marked.students} == {
        "x": "Kim Lee",
        "2": "Kim Lee",
        "1": "Kim Lee",
    }


# --- Gradescope ----------------------------------------------------------------------------------
KEYS = {  # gradescope-autograders.readthedocs.io, "Output format"
    *("score", "execution_time", "output", "output_format", "test_output_format"),
    *("test_name_format", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"),
}
OF_A_TEST = {
    *("score", "max_score", "status", "name", "name_format", "number", "output", "output_format"),
    *("tags", "visibility", "extra_data"),
}
SHOWN = {"hidden", "after_due_date", "after_published", "visible"}
WORDS = {"text", "html", "simple_format", "md", "ansi"}


def conforms(data: dict) -> None:
    """What Gradescope's page asks of results.json."""
    assert set(data) <= KEYS and isinstance(data["score"], (int, float))
    assert data["visibility"] in SHOWN and data["output_format"] in WORDS
    for test in data.get("tests", []):
        assert set(test) <= OF_A_TEST and isinstance(test["score"], (int, float))
        assert test["status"] in ("passed", "failed") and test["visibility"] in SHOWN
        assert isinstance(test["output"], str) and test["output_format"] in WORDS


def test_results_conform_whatever_became_of_a_notebook():
    right_one = Result("t.a", 2.0, 1.0, True)
    by_hand = Result("q1", 0.0, 1.0, False, needs_person=True)
    conforms(results(Report("n", "l", "namespaces", (right_one, by_hand), ("renamed",))))
    conforms(results(Report("n", "l", "none", (), (), "No notebook was handed in.")))


@pytest.fixture(scope="module")
def gradescope(room):
    said = autograder(room, "export", "--format", "gradescope")
    assert "give it to no student" in " ".join(said.split())
    return room.folder / "reports" / f"{HOMEWORK}-gradescope"


def test_each_student_has_a_results_json_with_the_marks_of_the_machine(room, gradescope):
    found = {p.parent.name: json.loads(p.read_text()) for p in gradescope.rglob("results.json")}
    for data in found.values():
        conforms(data)
    assert {who: data["score"] for who, data in found.items()} == room.scores()


def test_the_points_that_gradescope_can_give_are_told(room):
    said = autograder(room, "export", "--format", "gradescope", "--to", "reports/again")
    assert "autograder points there are 10." in said


def test_what_a_program_printed_is_plain_text_of_bounded_length():
    long = Finding("error", Verdict.ERROR, "\x1b[31mred\x1b[0m \u202e" + "x" * 100_000)
    data = results(Report("n", "l", "none", (Result("t", 0, 1, False, findings=(long,)),)))
    (test,) = data["tests"]
    assert "red" in test["output"] and not {"\x1b", "\u202e"} & set(test["output"])
    assert len(test["output"]) < 25_000


def test_no_seed_and_no_expected_value_is_in_them(gradescope):
    text = "".join(p.read_text() for p in gradescope.rglob("results.json"))
    assert "seed" not in text


def test_the_zip_has_both_scripts_at_its_root_and_what_they_name(gradescope):
    archive = zipfile.ZipFile(gradescope / "autograder.zip")
    for name in ("setup.sh", "run_autograder"):
        text = archive.read(name).decode()
        assert text.startswith("#!/usr/bin/env bash\n")
        assert archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert re.search(r"^torch==[\d.]+$", archive.read("requirements.txt").decode(), re.MULTILINE)
    names = archive.namelist()
    assert not [n for n in names if "__pycache__" in n or n.startswith("/") or ".." in n]
    assert "autograder/sandbox/inside/runner.py" in names


@pytest.mark.slow
def test_the_zips_own_script_grades_a_submission(gradescope, tmp_path):
    """As Gradescope does, but with this environment in the place of the one of setup.sh."""
    root = tmp_path / "autograder"
    zipfile.ZipFile(gradescope / "autograder.zip").extractall(root / "source")
    (root / "source" / "run_autograder").chmod(0o755)  # as `unzip` does
    (root / "submission").mkdir()
    (root / "submission" / NAME).write_text(filled(right()), encoding="utf-8")
    (root / "env").symlink_to(sys.prefix)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("AUTOGRADER", "PYTHON"))}
    done = subprocess.run(
        [root / "source" / "run_autograder"],
        env={**environ, "AUTOGRADER_ROOT": str(root)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads((root / "results" / "results.json").read_text())
    conforms(data)
    assert data["score"] == 10.0 and {t["status"] for t in data["tests"]} == {"passed"}
