"""One class through nbgrader: no hostile homework stops the run or changes another's row."""

from tests.attacks import hostile
from tests.attacks.entries import HOMEWORK, entries

ENTRIES = {e.name: e for e in entries()}


def test_every_step_of_nbgrader_ends_well(classroom):
    assert [(status, said[-2000:]) for status, said in classroom.ran if status] == []


def test_honest_students_get_every_point_wherever_they_stand(classroom):
    scores = classroom.scores()
    assert {s: scores.get(s) for s in classroom.honest} == dict.fromkeys(classroom.honest, 10)


def test_no_hostile_student_gains_a_point_and_no_unlucky_one_loses_one(classroom):
    scores = classroom.scores()
    for student, name in classroom.hostile.items():
        entry, points = ENTRIES[name], scores.get(student, 0)
        if entry.answers == "wrong" or entry.expect == ("refused",):
            assert points == 0, student
        elif "same" in entry.expect:
            assert points == 10, student
        else:
            assert points < 10, student


def test_every_student_has_a_row(classroom):
    students = [*classroom.honest, *classroom.hostile, hostile.STUDENT]
    assert set(classroom.scores()) == set(students)


def test_nothing_outside_is_touched_or_copied(classroom):
    assert classroom.field.harm() == []
    for folder in ("autograded", "feedback"):
        for path in (classroom.folder / folder).rglob("*"):
            assert not path.is_symlink()
            if path.is_file():
                assert classroom.field.secret not in path.read_text(errors="replace")
                assert path.suffix in (".ipynb", ".html") or path.name == "timestamp.txt"


def test_each_mark_says_which_isolation_held(classroom):
    path = classroom.folder / "autograded" / "zz_honest" / HOMEWORK / f"{HOMEWORK}.ipynb"
    assert path.read_text().count("isolation: ") >= 5
