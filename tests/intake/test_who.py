"""Who handed in what: the names that Canvas, Moodle, Blackboard, Gradescope and nbgrader give."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.intake import gradescope, who
from autograder.intake.collect import opened
from tests.forms import examples
from tests.intake.test_collect import NOTEBOOK, pack, put

ATTEMPT = "Homework 5_{}_attempt_{}-12-00-00"


def sorted_out(source):
    with opened(source) as (entries, refused):
        found, said = who.sort_out(entries, Path(source).stem)
    assert all(text.endswith(".") for text in [*refused, *said])
    labels = [one.student.label.casefold() for one in found]
    students = {one.student for one in found}
    assert len({s.label.casefold() for s in students}) == len(students), labels
    return found, [*refused, *said]


def zipped(tmp_path, *names, **files):
    members = {name: NOTEBOOK if ".ipynb" in name else b"x" for name in names}
    return sorted_out(pack(tmp_path / "in.zip", members | files))


def facts(found):
    """(id, name, late, the file that counts or None) of each."""
    return [
        (
            one.student.id,
            one.student.name,
            one.late,
            one.notebooks[0].entry.name if one.notebooks else None,
        )
        for one in found
    ]


# --- Canvas --------------------------------------------------------------------------------------
def test_two_students_of_one_name_stay_two_by_canvas_ids(tmp_path):
    found, said = zipped(
        tmp_path,
        "doejane_LATE_1234_56789_05_homework-1.ipynb",
        "doejane_777_56790_05_homework.ipynb",
    )
    assert facts(found) == [
        ("1234", "doejane", True, "doejane_LATE_1234_56789_05_homework-1.ipynb"),
        ("777", "doejane", False, "doejane_777_56790_05_homework.ipynb"),
    ]
    assert [one.student.label for one in found] == ["doejane (1234)", "doejane (777)"]
    assert said == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("doejane_1234_56789_05_homework.ipynb", ("1234", "doejane", False)),
        ("doejane_LATE_1234_56789_x.ipynb", ("1234", "doejane", True)),
        ("doejane_late_1234_56789_x.ipynb", ("1234", "doejane", True)),
        ("late_doejane_1234_56789_x.ipynb", ("1234", "doejane", True)),
        ("LATE_doejane_1234_56789_x.ipynb", ("1234", "doejane", True)),
        ("doejane_1234_56789_late_1_2_x.ipynb", ("1234", "doejane", False)),
        ("slatery_1234_56789_x.ipynb", ("1234", "slatery", False)),
        ("late_1234_56789_x.ipynb", ("1234", "late", False)),
        ("van_dyke_LATE_1234_56789_x.ipynb", ("1234", "van_dyke", True)),
        ("LATE_anon_x7Kd2_56789_x.ipynb", ("anon_x7Kd2", "anon_x7Kd2", True)),
        ("anon_x7Kd2_56789_x.ipynb", ("anon_x7Kd2", "anon_x7Kd2", False)),
        ("山田太郎_1234_56789_x.ipynb", ("1234", "山田太郎", False)),
        ("a\nb_1234_56789_x\n.ipynb", ("1234", "a?b", False)),
    ],
)
def test_a_canvas_name_says_id_name_and_late(tmp_path, name, expected):
    found, _ = zipped(tmp_path, name)
    assert facts(found) == [(*expected, name)]


def test_who_typed_words_or_gave_a_pdf_to_canvas_is_there_without_a_notebook(tmp_path):
    found, _ = zipped(
        tmp_path, "a_1_11_x.ipynb", "b_2_12_report.pdf", "c_3_text.html", "d_LATE_4_link.html"
    )
    assert [(one.student.id, one.late, one.without) for one in found] == [
        ("1", False, ""),
        ("2", False, "No notebook was handed in, only report.pdf."),
        ("3", False, "No notebook was handed in, only text.html."),
        ("4", True, "No notebook was handed in, only link.html."),
    ]


def test_of_several_files_in_canvas_the_newest_comes_first(tmp_path):
    names = ["a_1_9_05_homework.ipynb", "a_1_10_05_homework-1.ipynb", "a_1_8_old.ipynb"]
    found, _ = zipped(tmp_path, *names)
    assert [n.entry.name for n in found[0].notebooks] == [names[1], names[0], names[2]]


def test_numbers_in_the_names_of_ones_own_files_are_not_canvas(tmp_path):
    found, _ = zipped(tmp_path, "ada_1_2_tries.ipynb", "bo.ipynb", "cy.ipynb")
    assert [one.student.id for one in found] == ["ada_1_2_tries", "bo", "cy"]


# --- Moodle --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Jane Doe_1234567_assignsubmission_file_/05_homework.ipynb", ("1234567", "Jane Doe")),
        ("Jane Doe_1234567_assignsubmission_file/05_homework.ipynb", ("1234567", "Jane Doe")),
        ("Jane Doe_1234567_assignsubmission_file_/mine/a/x.ipynb", ("1234567", "Jane Doe")),
        ("Jane Doe_1234567_assignsubmission_file_05_homework.ipynb", ("1234567", "Jane Doe")),
        ("Participant_42_assignsubmission_file_x.ipynb", ("42", "Participant")),
        ("Default group_assignsubmission_file/x.ipynb", ("Default group", "Default group")),
        ("Jo_1_assignsubmission_file_Bo_2_assignsubmission_file_x.ipynb", ("1", "Jo")),
        ("Late Eve_3_assignsubmission_file_x.ipynb", ("3", "Late Eve")),
    ],
)
def test_a_moodle_name_says_id_and_name(tmp_path, name, expected):
    found, said = zipped(tmp_path, name)
    assert [(one.student.id, one.student.name, one.late) for one in found] == [(*expected, None)]
    assert len(found[0].notebooks) == 1 and said == []


@pytest.mark.parametrize("end", ["", "_"])
def test_words_typed_into_moodle_are_the_same_students(tmp_path, end):
    found, _ = zipped(
        tmp_path,
        f"Jane Doe_1_assignsubmission_file{end}/x.ipynb",
        f"Jane Doe_1_assignsubmission_onlinetext{end}/onlinetext.html",
        f"Jane Doe_2_assignsubmission_onlinetext{end}/onlinetext.html",
    )
    assert [(one.student.label, bool(one.notebooks)) for one in found] == [
        ("Jane Doe (1)", True),
        ("Jane Doe (2)", False),
    ]
    assert found[1].without == "No notebook was handed in, only onlinetext.html."


def test_moodle_without_folders_keeps_words_and_files_together(tmp_path):
    found, _ = zipped(
        tmp_path,
        "Jo_1_assignsubmission_onlinetext_onlinetext.html",
        "Jo_1_assignsubmission_file_05_homework.ipynb",
        "Bo_2_assignsubmission_onlinetext_onlinetext.html",
    )
    assert [(one.student.id, bool(one.notebooks)) for one in found] == [("2", False), ("1", True)]


# --- Blackboard ----------------------------------------------------------------------------------
def info(login: str, name: str) -> bytes:
    return f"Name: {name} ({login})\nAssignment: Homework 5\nDate Submitted: Monday\n".encode()


def test_of_several_attempts_in_blackboard_the_newest_comes_first(tmp_path):
    old, new = ATTEMPT.format("jdoe", "2024-01-31"), ATTEMPT.format("jdoe", "2024-02-01")
    files = {
        f"{old}_05_homework.ipynb": NOTEBOOK,
        f"{new}_05_homework (2).ipynb": NOTEBOOK,
        f"{new}.txt": info("jdoe", "Jane Doe"),
        f"{old}.txt": info("jdoe", "Jane Doe"),
    }
    found, said = zipped(tmp_path, **files)
    assert facts(found) == [("jdoe", "Jane Doe", None, f"{new}_05_homework (2).ipynb")]
    assert len(found[0].notebooks) == 2
    assert found[0].notebooks[0].handed_in == "2024-02-01 12:00:00"
    assert said == []


def test_a_blackboard_login_with_an_underscore_is_read_from_its_text(tmp_path):
    start = ATTEMPT.format("jane_doe", "2024-01-31")
    files = {f"{start}_x.ipynb": NOTEBOOK, f"{start}.txt": info("jane_doe", "Jane (Ann) Doe")}
    found, _ = zipped(tmp_path, **files)
    assert facts(found)[0][:2] == ("jane_doe", "Jane (Ann) Doe")


def test_a_blackboard_text_that_names_somebody_else_is_not_believed(tmp_path):
    start = ATTEMPT.format("jdoe", "2024-01-31")
    files = {f"{start}_x.ipynb": NOTEBOOK, f"{start}.txt": info("ada", "Ada")}
    found, _ = zipped(tmp_path, **files)
    assert facts(found)[0][:2] == ("jdoe", "jdoe")
    own = f"{start}_{ATTEMPT.format('ada', '2025-01-01')}_x.ipynb"  # the student's own file name
    found, _ = zipped(tmp_path, own)
    assert facts(found)[0][0] == "jdoe"


def test_a_blackboard_attempt_without_a_notebook_is_there(tmp_path):
    first, second = (ATTEMPT.format(name, "2024-01-31") for name in ("ada", "bo"))
    files = {f"{first}.txt": info("ada", "Ada"), f"{second}_x.pdf": b"x"}
    found, _ = zipped(tmp_path, **files)
    assert [(one.student.id, one.without) for one in found] == [
        ("ada", "No notebook was handed in."),
        ("bo", "No notebook was handed in, only x.pdf."),
    ]


# --- Gradescope ----------------------------------------------------------------------------------
METADATA = """---
submission_1:
  :submitters:
  - :name: Jane Doe
    :sid: '0675'
    :email: jd@example.edu
    :section: A
  - :name: Jane Doe
    :sid: '0676'
    :email: jane@example.edu
  :created_at: 2023-12-02 02:52:07.938335000 Z
  :lateness: '01:02:03'
  :results:
    tests:
    - name: Correct Assignment Check
      output: 'Don''t worry, it just checks that you submitted the

        right file.

'
  :history:
  - :submitters: []
    :created_at: 2022-01-01 00:00:00.0 Z
submission_2:
  :submitters:
  - :name: No
    :email: bo@example.edu
  :lateness: 00:00:00
...
submission_3:
  :submitters: []
submission_4:
  :submitters:
  - :name: Only Name
9.pdf:
  :submitters:
  - :name: Paula Df
    :sid: 12
"""


def export(tmp_path, metadata: str | bytes = METADATA, *names):
    files = {f"assignment_7_export/{gradescope.METADATA}": metadata}
    files |= {f"assignment_7_export/{name}": NOTEBOOK for name in names}
    return sorted_out(pack(tmp_path / "in.zip", files))


def test_gradescopes_metadata_say_who(tmp_path):
    names = ["submission_1/05_homework.ipynb", "submission_2/r.pdf", "submission_3/a/x.ipynb"]
    found, said = export(tmp_path, METADATA, *names, "9.pdf", "submission_77/x.ipynb")
    assert [
        (one.student.label, one.student.id, one.student.section, one.late, bool(one.notebooks))
        for one in found
    ] == [
        ("Jane Doe (0675)", "0675", "A", True, True),
        ("Jane Doe (0676)", "0676", "", True, True),
        ("No", "bo@example.edu", "", False, False),
        ("Only Name", "submission_4", "", None, False),
        ("Paula Df", "12", "", None, False),
        ("submission_3", "submission_3", "", None, True),
        ("submission_77", "submission_77", "", None, True),
    ]
    assert found[0].notebooks[0].entry is found[1].notebooks[0].entry  # one group, one notebook
    assert found[0].handed_in == "2023-12-02 02:52:07.938335000 Z"
    assert found[2].without == "No notebook was handed in, only r.pdf."
    assert found[3].without == "No notebook was handed in."
    assert said == []


def test_a_file_called_like_the_metadata_in_a_students_folder_says_nothing(tmp_path):
    files = {
        f"assignment_7_export/{gradescope.METADATA}": METADATA,
        f"assignment_7_export/submission_2/{gradescope.METADATA}": b"x: {':submitters': []}",
        "assignment_7_export/submission_1/x.ipynb": NOTEBOOK,
    }
    found, _ = sorted_out(pack(tmp_path / "in.zip", files))
    assert [one.student.id for one in found][:2] == ["0675", "0676"]
    moodle = {
        f"Jo_1_assignsubmission_file_/{gradescope.METADATA}": METADATA,
        "Bo_2_assignsubmission_file_/x.ipynb": NOTEBOOK,
    }
    found, _ = sorted_out(pack(tmp_path / "in.zip", moodle))
    assert [one.student.name for one in found] == ["Bo", "Jo"]


def test_two_exports_beside_each_other_are_both_read(tmp_path):
    files = {}
    for number in (7, 8):
        files[f"assignment_{number}_export/{gradescope.METADATA}"] = METADATA
        files[f"assignment_{number}_export/submission_1/x{number}.ipynb"] = NOTEBOOK
    found, _ = sorted_out(pack(tmp_path / "in.zip", files))
    assert len([one for one in found if one.student.id == "0675"]) == 1
    assert len(found[0].notebooks) == 2


LAUGHS = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [*a%d,*a%d,*a%d]\n" % (i, i, i - 1, i - 1, i - 1) for i in range(1, 60)
)
HOSTILE = {
    "billion laughs": (LAUGHS, ""),
    "brackets": (b"[" * 100_000, "nested too deeply"),
    "braces": (b"{a: " * 100_000, "nested too deeply"),
    "dashes": (b"- " * 100_000, "nested too deeply"),
    "an object": (b"!!python/object/apply:os.system ['touch /tmp/x']", ""),
    "not text": (b"\xff\xfe\x00\xd8" * 50, "not"),
    "a list": (b"- a\n- b\n", ""),
    "broken": (METADATA.encode() + b"\n'", "not the YAML"),
    "long values": (b"submission_9:\n  :submitters:\n  - :name: '" + b"x" * 3_000_000 + b"'\n", ""),
    "many people": (
        b"submission_9:\n  :submitters:\n" + b"  - :name: x\n" * 200_000,
        "",
    ),
    "many documents": (b"--- a\n" * 50_000, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_metadata_lose_nobody_and_take_no_time(tmp_path, name):
    data, message = HOSTILE[name]
    found, said = export(tmp_path, data, "submission_1/x.ipynb", "submission_2/x.ipynb")
    assert len([one for one in found if one.notebooks]) >= 2
    assert message in " ".join(said)
    assert all(len(one.student.label) < 250 for one in found)


def test_metadata_that_are_too_large_lose_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(gradescope, "LARGEST", 100)
    found, said = export(tmp_path, METADATA, "submission_1/x.ipynb")
    assert [one.student.id for one in found] == ["submission_1"]
    assert "cannot be read" in said[0]


def test_a_name_alone_may_be_two_students(tmp_path):
    text = "".join(f"submission_{i}:\n  :submitters:\n  - :name: Jo\n" for i in (1, 2))
    found, _ = export(tmp_path, text, "submission_1/x.ipynb", "submission_2/x.ipynb")
    assert [one.student.label for one in found] == ["Jo (submission_1)", "Jo (submission_2)"]


# --- nbgrader and plain folders ------------------------------------------------------------------
def test_nbgraders_tree_gives_student_lesson_and_time(tmp_path):
    tree = put(
        tmp_path / "submitted",
        "ada/05_homework/05_homework.ipynb",
        "jo/05_homework/Untitled.ipynb",
        "jo/03_masks/03_masks.ipynb",
        "cy/05_homework/report.pdf",
    )
    (tree / "bo/05_homework").mkdir(parents=True)
    for student in ("ada", "bo"):
        (tree / student / "05_homework/timestamp.txt").write_text("2015-02-02 15:58:23 UTC\n")
    expected = [
        ("ada", "05_homework", "05_homework.ipynb", "", "2015-02-02 15:58:23 UTC"),
        ("bo", "05_homework", None, "No notebook was handed in.", "2015-02-02 15:58:23 UTC"),
        ("cy", "05_homework", None, "No notebook was handed in, only report.pdf.", ""),
        ("jo", "03_masks", "03_masks.ipynb", "", ""),
        ("jo", "05_homework", "Untitled.ipynb", "", ""),
    ]
    put(tmp_path, "nbgrader_config.py", "source/05_homework/05_homework.ipynb", "notes.txt")
    for source in (tree, tmp_path):
        found, said = sorted_out(source)
        assert said == []
        assert [
            (
                one.student.id,
                one.lesson,
                one.notebooks[0].entry.name if one.notebooks else None,
                one.without,
                one.handed_in,
            )
            for one in found
        ] == expected


@pytest.mark.parametrize("folder", ["{}_{}_assignsubmission_file_", "{}"])
def test_folders_called_submitted_in_students_folders_hide_no_other(tmp_path, folder):
    ada, bo, cy = (folder.format(name, i) for i, name in enumerate(("Ada", "Bo", "Cy")))
    found, _ = zipped(
        tmp_path, f"{ada}/submitted/x.ipynb", f"{bo}/submitted/y/x.ipynb", f"{cy}/x.ipynb"
    )
    assert [one.student.name for one in found] == ["Ada", "Bo", "Cy"]


def test_of_several_notebooks_for_a_lesson_the_one_with_its_name_comes_first(tmp_path):
    tree = put(
        tmp_path / "submitted",
        "jo/05_homework/05_homework-Copy1.ipynb",
        "jo/05_homework/05_homework.ipynb",
        "jo/05_homework/backup/05_homework.ipynb",
    )
    (one,), _ = sorted_out(tree)
    assert one.notebooks[0].entry.shown == str(tree / "jo/05_homework/05_homework.ipynb")
    assert len(one.notebooks) == 3


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["jo.ipynb", "ada.ipynb", "notes.txt", "grades.csv"], ["ada", "jo"]),
        (["jo.ipynb", "ada.pdf", "notes.txt"], ["ada", "jo"]),
        (["class/jo.ipynb", "class/ada.ipynb"], ["ada", "jo"]),
        (["class/jo/x.ipynb", "class/ada/report.pdf"], ["ada", "jo"]),
        (["jdoe/05_homework.ipynb"], ["jdoe"]),
        (["jdoe/05_homework.ipynb", "jdoe/04_many_heads.ipynb"], ["jdoe"]),
        (["jdoe/05_homework/05_homework.ipynb"], ["jdoe"]),
        (["export/submitted/jdoe/05_homework/05_homework.ipynb"], ["jdoe"]),
        (["submissions/doejane_LATE_1234_56789_x.ipynb"], ["doejane"]),
        (["all/Jane Doe_1_assignsubmission_file_/x.ipynb"], ["Jane Doe"]),
        (["all/" + ATTEMPT.format("jdoe", "2024-01-31") + "_x.ipynb"], ["jdoe"]),
        (["05_homework/x.ipynb", "03_masks/x.ipynb"], ["in"]),
        (["LATE_jo.ipynb", "ada.ipynb"], ["ada", "jo"]),
    ],
)
def test_the_folder_that_only_holds_the_others_is_nobody(tmp_path, names, students):
    found, said = zipped(tmp_path, *names)
    assert list(dict.fromkeys(one.student.name for one in found)) == students
    assert said == []
    put(tmp_path / "in", *names)
    found, said = sorted_out(tmp_path / "in")
    assert list(dict.fromkeys(one.student.name for one in found)) == students


def test_a_notebook_that_cannot_be_taken_leaves_its_student_in_the_list(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("ada_1_11_x.ipynb", NOTEBOOK)
        member = zipfile.ZipInfo("bo_2_12_x.ipynb")
        member.external_attr = 0o120777 << 16
        archive.writestr(member, "/etc/passwd")
    found, _ = sorted_out(tmp_path / "in.zip")
    assert [(one.student.id, one.without) for one in found] == [
        ("1", ""),
        ("2", "bo_2_12_x.ipynb: It is not a regular file."),
    ]


def test_a_zip_that_was_handed_in_is_told_to_be_unpacked(tmp_path):
    found, _ = zipped(tmp_path, "ada_1_11_work.zip", "bo_2_12_x.ipynb")
    assert found[0].without == (
        "No notebook was handed in, only work.zip. If it holds the notebook, unpack it first."
    )


def test_a_zip_of_zips_says_what_to_do_for_each(tmp_path):
    found, _ = zipped(tmp_path, "ada.zip", "bo.zip", "notes.txt")
    assert [one.student.id for one in found] == ["ada", "bo"]
    assert all("unpack it first" in one.without for one in found)


def test_one_student_with_a_thousand_notebooks_is_looked_at_in_part(tmp_path):
    found, said = zipped(tmp_path, *(f"ada_1_{i}_x.ipynb" for i in range(1_000)))
    assert len(found) == 1 and len(found[0].notebooks) == who.MOST_NOTEBOOKS
    assert found[0].notebooks[0].entry.name == "ada_1_999_x.ipynb"
    assert "1000 notebooks" in said[0]


def test_odd_names_are_cleaned_and_never_shared_by_two_students(tmp_path):
    odd = ["a\nb", "a\tb", "A?b-2", "<script>", "x" * 300, "x" * 301, "日本", " "]
    odd.append("a" + "\u0301" * 500)
    found, _ = zipped(tmp_path, *(f"{name}.ipynb" for name in odd))
    assert len(found) == 9
    assert len({one.student.id for one in found}) == 9
    for one in found:
        assert one.student.label.isprintable() and len(one.student.label) < 120
        assert "/" not in one.student.label


def test_two_thousand_names_that_look_alike_stay_apart(tmp_path):
    names = {f"a{chr(1 + i % 8) * (1 + i // 8)}.ipynb": b"" for i in range(2_000)}
    found, _ = sorted_out(pack(tmp_path / "in.zip", names, zipfile.ZIP_STORED))
    assert len({one.student.label for one in found}) == 2_000


def test_ten_thousand_students_are_sorted_out(tmp_path):
    names = [f"name{i % 500}_{i % 10_000}_{i}_x.ipynb" for i in range(20_000)]
    archive = pack(tmp_path / "in.zip", dict.fromkeys(names, b""), zipfile.ZIP_STORED)
    found, _ = sorted_out(archive)
    assert [len(one.notebooks) for one in found] == [2] * 10_000


PART = st.text(max_size=20) | st.sampled_from(
    ["_LATE_", "late", "_12_34_", "_assignsubmission_file_", "_attempt_2024-01-31-12-00-00", "..",
     "submitted", "05_homework", ".ipynb", "\x00", "\u202e", "anon_abcde", "C:", "\\", "__MACOSX"]
)  # fmt: skip
NAME = st.lists(PART, min_size=1, max_size=5).map("".join)


@settings(max_examples=examples(40, 100), deadline=None, derandomize=True)
@given(
    names=st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), max_size=8),
    metadata=st.none() | st.text(max_size=200) | st.binary(max_size=200),
)
def test_any_names_and_metadata_give_students_never_an_error(tmp_path_factory, names, metadata):
    path = tmp_path_factory.mktemp("any") / "in.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in {name.partition("\0")[0] or "x" for name in names}:
            archive.writestr(zipfile.ZipInfo(name), NOTEBOOK)
        if metadata is not None:
            archive.writestr(gradescope.METADATA, metadata)
    found, _ = sorted_out(path)
    for one in found:
        assert one.notebooks or one.without.endswith(".")
        assert all(text.isprintable() for text in (one.student.label, one.without, one.handed_in))
