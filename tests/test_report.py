"""What is said of a notebook and of a class: totals, deductions, causes told once."""

import io
import json

import pytest
from rich.console import Console

from autograder.course.asking import Finding
from autograder.grading.notebooks import cause
from autograder.intake.who import Student
from autograder.reports.cards import Card
from autograder.reports.class_table import Row, first_sentence, happened, print_class
from autograder.reports.findings import rows, told_once
from autograder.reports.report import Report, Result, print_report

TRIED = "13 sequences of 7 tokens"
WRONG = Finding(
    "scale.missing",
    "wrong",
    "The scores are not scaled. The result has the right shape, but 273 of 273 values differ.",
    tried=TRIED,
    expected="shape [13, 7, 3]",
    got="largest difference 1.2",
)
BROKEN = Finding("does not parse", "error", "Line 9: SyntaxError: '('. Look.", 9, "x = (")
UNSEEN = Finding("shape_comments", "cannot tell", "The shapes could not be seen: '('")
BLANK = Finding("unanswered", "error", "This exercise is not filled in.")
PEP8 = Finding(
    "pep8",
    "deduction",
    "1 point off for PEP 8: Line 3: missing whitespace (E225).",
    3,
    "a=b",
    points=-1.0,
)
BONUS = Finding("three lines", "bonus", "1 point more: forward in three lines.", points=1.0)
QUESTION = Result("q1", 0.0, 1.0, False, needs_person=True)


def report(*results, **more) -> Report:
    most = sum(r.max_points for r in results if not r.task.startswith("q"))
    return Report("x.ipynb", "05_homework", "namespaces", results, max_score=most, **more)


def printed(*lines, width=100) -> str:
    console = Console(file=io.StringIO(), width=width)
    for show, what in lines:
        show(what, console)
    return console.file.getvalue()


# --- one notebook --------------------------------------------------------------------------------
def test_a_question_for_a_person_is_not_marked_yet_and_not_nought():
    one = report(Result("a.b", 3, 3, True), QUESTION, Result("q2", 0, 1, False, True))
    assert one.total == "3 of 3, 2 questions not marked yet"
    assert one.not_marked == json.loads(one.to_json())["not_marked"] == 2
    assert [r["status"] for r in one.data()["results"]] == ["right", *["not marked yet"] * 2]
    text = printed((print_report, one))
    assert "3 of 3, 2 questions not marked yet" in text
    assert "-/1" in text and "0/1" not in text
    assert report(QUESTION).total.endswith("1 question not marked yet")


def test_a_question_without_an_answer_is_not_filled_in():
    one = report(Result("q1", 0.0, 1.0, False, False, (BLANK,)))
    assert one.data()["results"][0]["status"] == "not filled in" and one.not_marked == 0
    assert "0/1" in printed((print_report, one))


def test_deductions_are_lines_of_their_own_below_a_task_with_its_full_points():
    results = [
        Result("f", 2.0, 3.0, True, findings=(PEP8,)),
        Result("g", 2.0, 1.0, True, findings=(BONUS,)),
    ]
    one = report(*results)
    lines = [line.split("│")[1:-1] for line in printed((print_report, one)).splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == 3]
    assert cells == [
        ["f", "3/3", "right"],
        ["deduction", "-1", PEP8.message],
        ["g", "1/1", "right"],
        ["bonus", "+1", BONUS.message],
    ]
    data = one.data()
    assert [(d["task"], d["check"], d["points"], d["line"]) for d in data["deductions"]] == [
        ("f", "pep8", -1.0, 3),
        ("g", "three lines", 1.0, None),
    ]
    earned = sum(r["earned"] for r in data["results"])
    assert earned + sum(d["points"] for d in data["deductions"]) == data["score"] == 4
    assert [r["points"] for r in data["results"]] == [2.0, 2.0]


def test_a_task_whose_one_slip_was_charged_is_not_called_wrong():
    one = report(Result("f", 2.0, 3.0, False, findings=(PEP8,)))
    assert one.data()["results"][0]["status"] == "right, with a deduction"
    assert "not" not in happened(one).lower()


def test_table_card_and_json_say_the_same_of_a_finding():
    one = report(Result("f", 0.0, 3.0, False, findings=(WRONG,)))
    table, card = printed((print_report, one)), repr(Card("f", False, (WRONG,)))
    for label, text in (("tried", TRIED), ("expected", WRONG.expected), ("got", WRONG.got)):
        assert (label, text) in rows(WRONG)
        assert f"{label}  {text}" in card
        assert f"{label}  {text}" in table
        assert one.data()["results"][0]["findings"][0][label] == text
    assert "likely  The scores are not scaled." in card
    assert "likely  The scores are not scaled." in table


def test_nothing_of_a_student_is_markup_or_a_code_in_the_table():
    evil = Finding("x", "error", "[red]\x1b[31m[/red]", 1, "[bold]a[/bold]", tried="[/]")
    text = printed((print_report, report(Result("[b]", 0, 1, False, findings=(evil,)))))
    assert "[red]?[31m[/red]" in text and "[bold]a[/bold]" in text and "[b]" in text


# --- one cause, once -----------------------------------------------------------------------------
def test_a_cell_that_cannot_be_read_is_told_once():
    told = told_once({"a.init": (BROKEN, UNSEEN), "a.forward": (BROKEN,), "a.mask": (BROKEN,)})
    assert told["a.init"] == (BROKEN,)
    for task in ("a.forward", "a.mask"):
        (finding,) = told[task]
        assert finding.message == "The same as for a.init (line 9)."
        assert (finding.check, finding.verdict, finding.line) == ("does not parse", "error", 9)


def test_what_is_different_or_blank_is_told_each_time():
    other = Finding("raised", "error", "Line 9: ValueError: no.", 9, "x = f()")
    assert told_once({"a": (BROKEN,), "b": (other,)}) == {"a": (BROKEN,), "b": (other,)}
    assert told_once({"a": (BLANK,), "b": (BLANK,)}) == {"a": (BLANK,), "b": (BLANK,)}
    comments = Finding("shape_comments", "cannot tell", "Line 4: perhaps.", 4, "y = x")
    assert told_once({"a": (UNSEEN, comments)})["a"] == (UNSEEN, comments)
    assert told_once({"a": (BROKEN, comments)})["a"] == (BROKEN, comments)


# --- a class -------------------------------------------------------------------------------------
def test_the_class_is_told_sentences_not_names_of_checks():
    again = Finding("does not parse", "error", "The same as for a.init (line 9).", 9)
    one = report(
        Result("a.init", 0, 1, False, findings=(BROKEN,)),
        Result("a.forward", 0, 1, False, findings=(again,)),
        Result("b", 0, 1, False, findings=(WRONG,)),
        Result("c", 0, 1, False, findings=(BLANK,)),
        Result("d", 0, 1, True, findings=(PEP8,)),
    )
    assert happened(one).splitlines() == [
        "Line 9: SyntaxError: '('. (a.init, a.forward)",
        "The scores are not scaled. (b)",
        "Not filled in: c.",
        "1 point off for PEP 8: Line 3: missing whitespace (E225).",
    ]
    blank = report(*(Result(t, 0, 1, False, findings=(BLANK,)) for t in "abc"))
    assert happened(blank) == "Nothing is filled in."
    assert happened(report(Result("a", 1, 1, True), QUESTION)) == "All right."


def test_a_hundred_mistakes_are_a_few_short_lines():
    many = [
        Result(f"t{i}", 0, 1, False, findings=(Finding(f"c{i}", "wrong", "x" * 5_000),))
        for i in range(100)
    ]
    said = happened(report(*many)).splitlines()
    assert len(said) == 4 and said[-1] == "And 97 more."
    assert max(map(len, said)) < 250


def student(name: str, who: str = "", section: str = "") -> Student:
    return Student(who or name, name, f"{name} ({who})" if who else name, section)


def test_a_class_shows_who_late_section_total_and_isolation():
    done = report(Result("a", 1, 1, True), QUESTION)
    missing = Report(None, "05_homework", "none", (Result("a", 0, 1, False),), (), "None.", 1.0)
    class_rows = [
        Row(student("Jane", "7", "A"), done, True, "now"),
        Row(student("Jane", "8"), done, False),
        Row(student("Bo", "9"), missing),
    ]
    text = printed((print_class, class_rows))
    lines = [[c.strip() for c in line.split("│")[1:-1]] for line in text.splitlines()]
    assert [line for line in lines if len(line) == 7 and line[0]] == [
        ["Jane", "7", "late", "A", "1/1", "1", "All right."],
        ["Jane", "8", "", "", "1/1", "1", "All right."],
        ["Bo", "9", "", "", "0/1", "", "None."],
    ]
    assert (
        "3 students, 1 late, 1 without a notebook that could be graded, 2 questions not marked "
        "yet; isolation: namespaces" in text
    )
    data = [json.loads(row.to_json()) for row in class_rows]
    assert [[d[k] for k in ("student", "id", "name", "late", "section")] for d in data] == [
        ["Jane (7)", "7", "Jane", True, "A"],
        ["Jane (8)", "8", "Jane", False, None],
        ["Bo (9)", "9", "Bo", None, None],
    ]
    assert data[0]["handed_in"] == "now" and data[2]["notebook"] is None
    assert data[2]["results"][0]["status"] == "not graded"


def test_columns_that_say_nothing_are_left_out():
    one = [Row(student("ada"), report(Result("a", 1, 1, True)))]
    text = printed((print_class, one))
    for word in ("id", "late", "section", "lesson", "not marked yet"):
        assert word not in text.split("isolation")[0].split()


def test_a_sentence_that_only_counts_is_followed_by_what_it_counts():
    text = "Two things at once. There is no relu. And: It is not scaled. The result has NaN."
    one = report(Result("a", 0, 1, False, findings=(Finding("x + y", "wrong", text),)))
    assert happened(one) == "Two things at once. There is no relu. And: It is not scaled. (a)"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Two things are wrong. Line 4: There is no relu. It follows the sum. Line 7: It is not "
            "scaled. Its root is. Mend line 4 first. The result has NaN.",
            "Two things are wrong. Line 4: There is no relu. Line 7: It is not scaled.",
        ),
        (
            "Line 4: TypeError: no. One side is None. Line 7 is wrong, too: it is not scaled.",
            "Line 4: TypeError: no. Line 7 is wrong, too: it is not scaled.",
        ),
        (
            "Line 4: TypeError: no. One side is None. And where it does not stop: No relu. See it.",
            "Line 4: TypeError: no. And where it does not stop: No relu.",
        ),
        (
            "1 point off for the scale: Two things are wrong. Line 4: No relu. Line 7: No scale.",
            "1 point off for the scale: Two things are wrong. Line 4: No relu. Line 7: No scale.",
        ),
        ("Part 1 of the result is 0. Part 2 of the result: no.", None),
        ("There is no relu. It follows the sum.", "There is no relu."),
    ],
)
def test_each_mistake_of_a_finding_is_told_where_it_is_shortened(text, kept):
    assert first_sentence(text) == (kept or text)
    assert cause([Finding("x", "wrong", text)]) == (kept or text)


def test_layers_of_two_classes_are_told_apart():
    names = {"gru": "Your layer is called `W`.", "run": "Your layer is called `lin`."}
    wrong = [
        Result(task, 0, 1, False, findings=(Finding("layer.name", "wrong", text),))
        for task, text in names.items()
    ]
    said = happened(report(*wrong)).splitlines()
    assert said == [f"{text} ({task})" for task, text in names.items()]
