"""Submissions are found in folders, nbgrader's tree and archives; what is dangerous is refused."""

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from autograder.intake import collect as module
from autograder.intake.collect import collect

NOTEBOOK = b'{"cells": []}'


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(NOTEBOOK)
    return folder


def pack(path: Path, members: dict, compression=zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def who(source, work):
    found, refused = collect(source, work)
    for one in found:
        assert one.path.is_file() and not one.path.is_symlink()
    assert all(text.endswith(".") for text in refused)
    return [(f.student, f.lesson, f.path.name) for f in found], refused


def test_a_folder_of_notebooks_is_one_student_a_file(tmp_path):
    put(tmp_path / "in", "jo.ipynb", "ada.ipynb", "notes.txt", ".hidden.ipynb")
    put(tmp_path / "in", ".ipynb_checkpoints/jo-checkpoint.ipynb")
    found, refused = who(tmp_path / "in", tmp_path / "work")
    assert found == [("ada", None, "ada.ipynb"), ("jo", None, "jo.ipynb")]
    assert refused == []


def test_nbgraders_tree_gives_student_and_lesson(tmp_path):
    tree = put(
        tmp_path / "submitted",
        "ada/05_homework/05_homework.ipynb",
        "jo/05_homework/Untitled.ipynb",
        "jo/03_masks/03_masks.ipynb",
    )
    expected = [
        ("ada", "05_homework", "05_homework.ipynb"),
        ("jo", "03_masks", "03_masks.ipynb"),
        ("jo", "05_homework", "Untitled.ipynb"),
    ]
    assert who(tree, tmp_path / "work") == (expected, [])
    assert who(tmp_path, tmp_path / "work") == (expected, [])


def test_of_several_notebooks_for_a_lesson_the_one_with_its_name_counts(tmp_path):
    tree = put(
        tmp_path / "submitted",
        "jo/05_homework/05_homework.ipynb",
        "jo/05_homework/05_homework-Copy1.ipynb",
        "jo/05_homework/backup/05_homework.ipynb",
    )
    found, refused = collect(tree, tmp_path / "work")
    assert [f.path for f in found] == [tree / "jo/05_homework/05_homework.ipynb"]
    assert len(refused) == 2 and all("counts instead" in text for text in refused)


def test_one_notebook_is_a_submission(tmp_path):
    put(tmp_path, "jo.ipynb")
    assert who(tmp_path / "jo.ipynb", tmp_path / "work")[0] == [("jo", None, "jo.ipynb")]


def test_nothing_there_is_said(tmp_path):
    assert "There is no" in who(tmp_path / "nowhere", tmp_path / "work")[1][0]
    put(tmp_path, "notes.txt")
    assert "neither" in who(tmp_path / "notes.txt", tmp_path / "work")[1][0]


@pytest.mark.parametrize(
    ("name", "student", "note"),
    [
        ("Jane Doe_1234567_assignsubmission_file_/05_homework.ipynb", "Jane Doe", ""),
        ("Jane Doe_1234567_assignsubmission_file_05_homework.ipynb", "Jane Doe", ""),
        ("doejane_LATE_12345_678_05_homework-1.ipynb", "doejane", "late"),
        ("doejane_12345_678_05_homework.ipynb", "doejane", ""),
        ("Hw_jdoe_attempt_2024-01-31-12-00-00_05_homework.ipynb", "jdoe", ""),
        ("jdoe/05_homework.ipynb", "jdoe", ""),
        ("submissions/jdoe.ipynb", "jdoe", ""),
        ("export/submitted/jdoe/05_homework/05_homework.ipynb", "jdoe", ""),
    ],
)
def test_students_are_known_in_the_archives_of_learning_platforms(tmp_path, name, student, note):
    members = {name: NOTEBOOK}
    if name.startswith("submissions/"):
        members["submissions/zed.ipynb"] = NOTEBOOK
    found, refused = collect(pack(tmp_path / "in.zip", members), tmp_path / "work")
    assert (found[0].student, found[0].note) == (student, note)
    assert found[0].path.is_relative_to(tmp_path / "work")
    assert found[0].path.read_bytes() == NOTEBOOK
    assert refused == []


def test_links_in_a_folder_are_refused_and_not_followed(tmp_path):
    secret = put(tmp_path / "secret", "key.ipynb")
    tree = put(tmp_path / "in", "jo.ipynb")
    os.symlink(secret / "key.ipynb", tree / "soft.ipynb")
    os.symlink(secret, tree / "folder")
    os.link(secret / "key.ipynb", tree / "hard.ipynb")
    os.mkfifo(tree / "fifo.ipynb")
    found, refused = who(tree, tmp_path / "work")
    assert found == [("jo", None, "jo.ipynb")]
    assert [text.split(":")[0] for text in refused] == [
        "fifo.ipynb", "folder", "soft.ipynb", "hard.ipynb"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["../out.ipynb", "a/../../out.ipynb", "/out.ipynb", "a\\..\\out.ipynb", "C:out.ipynb"]
)
def test_paths_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    archive = pack(tmp_path / "in.zip", {name: NOTEBOOK, "jo.ipynb": NOTEBOOK})
    found, refused = who(archive, tmp_path / "a/work")
    assert found == [("jo", None, "jo.ipynb")]
    assert len(refused) == 1 and "leads out" in refused[0]
    assert not list(tmp_path.glob("**/out.ipynb"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_members_that_are_no_files_are_refused(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        member = zipfile.ZipInfo("jo.ipynb")
        member.external_attr = (kind | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    found, refused = who(tmp_path / "in.zip", tmp_path / "work")
    assert found == [] and "not a regular file" in refused[0]


def test_archives_in_archives_are_refused(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("jo.ipynb", NOTEBOOK)
    found, refused = who(pack(tmp_path / "in.zip", {"jo.zip": inner.getvalue()}), tmp_path / "work")
    assert found == [] and "archive in an archive" in refused[0]


def test_a_bomb_is_refused_and_the_others_are_taken(tmp_path):
    bombs = {"bomb.ipynb": b"0" * 15_000_000, "large.ipynb": b"0" * 21_000_000}
    found, refused = who(
        pack(tmp_path / "in.zip", {**bombs, "jo.ipynb": NOTEBOOK}), tmp_path / "work"
    )
    assert found == [("jo", None, "jo.ipynb")]
    assert "so much smaller" in refused[0] and "21 MB" in refused[1]
    assert sum(p.stat().st_size for p in tmp_path.glob("work/**/*.ipynb")) == len(NOTEBOOK)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": b"0" * 3_000_000})
    data = archive.read_bytes()
    size = (3_000_000).to_bytes(4, "little")
    archive.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    found, refused = who(archive, tmp_path / "work")
    assert found == [] and "damaged" in refused[0]


def test_all_members_together_are_capped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 2 * len(NOTEBOOK))
    members = {f"{i}.ipynb": NOTEBOOK for i in range(5)}
    found, refused = who(pack(tmp_path / "in.zip", members), tmp_path / "work")
    assert (len(found), len(refused)) == (2, 3)


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 3)
    members = {f"{i}.ipynb": NOTEBOOK for i in range(5)}
    found, refused = who(pack(tmp_path / "in.zip", members), tmp_path / "work")
    assert found == [] and "5 files" in refused[0]


@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_a_damaged_archive_is_said_not_raised(tmp_path, damage):
    archive = pack(tmp_path / "in.zip", {f"{i}.ipynb": os.urandom(5_000) for i in range(5)})
    data = bytearray(archive.read_bytes())
    if damage == "cut":
        data = data[:9_000]
    elif damage == "noise":
        data[100:24_000] = b"\x55" * 23_900
    else:
        data = b""
    archive.write_bytes(data)
    found, refused = who(archive, tmp_path / "work")
    assert found == [] and refused


def test_a_locked_archive_is_said_not_raised(tmp_path):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": NOTEBOOK})
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    archive.write_bytes(data)
    assert "password" in who(archive, tmp_path / "work")[1][0]


def test_odd_names_are_cleaned_and_never_shared_by_two_students(tmp_path):
    members = {
        "a\nb.ipynb": NOTEBOOK,
        "a\tb.ipynb": NOTEBOOK,
        "<script>alert(1)</script>.ipynb": NOTEBOOK,
        "x" * 300 + ".ipynb": NOTEBOOK,
        "日本.ipynb": NOTEBOOK,
        " .ipynb": NOTEBOOK,
    }
    found, refused = collect(pack(tmp_path / "in.zip", members), tmp_path / "work")
    students = [f.student for f in found]
    assert refused == [] and len(set(students)) == len(students) == 6
    for one in found:
        assert one.student.isprintable() and "/" not in one.student and len(one.student) <= 100
        assert one.path.name.isascii()
    assert {"a?b", "a?b-2", "日本", "nobody"} <= set(students)


def test_a_second_run_into_the_same_folder_finds_the_same(tmp_path):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": NOTEBOOK})
    first, second = who(archive, tmp_path / "work"), who(archive, tmp_path / "work")
    assert first == second == ([("jo", None, "jo.ipynb")], [])


@pytest.mark.parametrize("name", ["jo.ipynb.txt", "jo.ipynb.json", "jo.IPYNB"])
def test_a_notebook_that_a_browser_renamed_is_taken(tmp_path, name):
    put(tmp_path / "in", name)
    assert who(tmp_path / "in", tmp_path / "work") == ([("jo", None, name)], [])
    archive = pack(tmp_path / "in.zip", {name: NOTEBOOK})
    assert who(archive, tmp_path / "work") == ([("jo", None, "jo.ipynb")], [])


def test_a_student_who_handed_in_no_notebook_is_named(tmp_path):
    put(tmp_path / "in", "jo/05_homework/report.pdf", "ada/05_homework/05_homework.ipynb")
    (tmp_path / "in/bo/05_homework").mkdir(parents=True)
    _, refused = who(tmp_path / "in", tmp_path / "work")
    assert refused == [
        "bo/05_homework: holds no notebook.", "jo/05_homework: holds no notebook."
    ]  # fmt: skip
    archive = pack(tmp_path / "in.zip", {"jo/report.pdf": b"x", "ada/x.ipynb": NOTEBOOK})
    assert who(archive, tmp_path / "work")[1] == ["jo/report.pdf: not a notebook."]
