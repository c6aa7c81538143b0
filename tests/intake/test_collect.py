"""Folders, zips and notebooks are opened without believing them: links, bombs, paths, damage."""

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from autograder import collect as module
from autograder.collect import opened, shown
from autograder.intake import Unreadable

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


def read(source) -> tuple[dict[str, bytes | str], list[str]]:
    """What every file of a source holds, or why it is not read; and what is refused at once."""
    found: dict[str, bytes | str] = {}
    with opened(source) as (entries, refused):
        for entry in entries:
            if not entry.folder or entry.problem:
                try:
                    found["/".join(entry.parts)] = entry.read()
                except Unreadable as error:
                    found["/".join(entry.parts)] = str(error)
    said = [text for text in found.values() if isinstance(text, str)]
    assert all(text.endswith(".") for text in [*refused, *said])
    return found, refused


def test_a_folder_gives_its_files_and_folders_but_nothing_hidden(tmp_path):
    put(tmp_path, "jo.ipynb", "a/b/ada.ipynb", ".hidden.ipynb", ".ipynb_checkpoints/jo.ipynb")
    (tmp_path / "empty").mkdir()
    with opened(tmp_path) as (entries, refused):
        found = [(e.parts, e.folder, e.notebook) for e in entries]
    assert refused == []
    assert found == [
        (("a",), True, False),
        (("a", "b"), True, False),
        (("a", "b", "ada.ipynb"), False, True),
        (("empty",), True, False),
        (("jo.ipynb",), False, True),
    ]


def test_a_path_is_told_as_it_lies_there_or_in_the_zip(tmp_path):
    put(tmp_path / "in", "jo/x.ipynb")
    with opened(tmp_path / "in") as (entries, _):
        assert entries[-1].shown == str(tmp_path / "in/jo/x.ipynb")
    with opened(pack(tmp_path / "in.zip", {"jo/x.ipynb": NOTEBOOK})) as (entries, _):
        assert entries[-1].shown == "jo/x.ipynb"


def test_nothing_is_written_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(module.zipfile.ZipFile, "extract", None)
    monkeypatch.setattr(module.zipfile.ZipFile, "extractall", None)
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": NOTEBOOK})
    assert read(archive)[0] == {"jo.ipynb": NOTEBOOK}
    assert [path.name for path in tmp_path.iterdir()] == ["in.zip"]


def test_nothing_there_is_said(tmp_path):
    assert "There is no" in read(tmp_path / "nowhere")[1][0]
    put(tmp_path, "notes.txt")
    assert "neither" in read(tmp_path / "notes.txt")[1][0]


def test_links_in_a_folder_are_refused_and_not_followed(tmp_path):
    secret = put(tmp_path / "secret", "key.ipynb")
    tree = put(tmp_path / "in", "jo.ipynb")
    os.symlink(secret / "key.ipynb", tree / "soft.ipynb")
    os.symlink(secret, tree / "folder")
    os.link(secret / "key.ipynb", tree / "hard.ipynb")
    os.mkfifo(tree / "fifo.ipynb")
    found, _ = read(tree)
    assert found.pop("jo.ipynb") == NOTEBOOK
    assert {name: text.split(" ")[-1] for name, text in found.items()} == {
        "soft.ipynb": "followed.",
        "folder": "followed.",
        "hard.ipynb": "it.",
        "fifo.ipynb": "file.",
    }
    assert "hard link" in found["hard.ipynb"]


def test_a_folder_that_became_a_link_is_not_read(tmp_path):
    secret = put(tmp_path / "secret", "key.ipynb")
    tree = put(tmp_path / "in", "jo/key.ipynb")
    with opened(tree) as (entries, _):
        (tree / "jo/key.ipynb").unlink()
        (tree / "jo").rmdir()
        os.symlink(secret, tree / "jo")
        with pytest.raises(Unreadable, match="linked folder"):
            entries[-1].read()


@pytest.mark.parametrize(
    "name", ["../out.ipynb", "a/../../out.ipynb", "/out.ipynb", "a\\..\\out.ipynb", "C:out.ipynb"]
)
def test_paths_that_lead_out_of_an_archive_are_refused(tmp_path, name):
    found, _ = read(pack(tmp_path / "in.zip", {name: NOTEBOOK, "jo.ipynb": NOTEBOOK}))
    assert found.pop("jo.ipynb") == NOTEBOOK
    assert len(found) == 1 and "leads out" in next(iter(found.values()))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_members_that_are_no_files_are_refused(tmp_path, kind):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        member = zipfile.ZipInfo("jo.ipynb")
        member.external_attr = (kind | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    assert "not a regular file" in read(tmp_path / "in.zip")[0]["jo.ipynb"]


def test_a_bomb_is_refused_and_the_others_are_taken(tmp_path):
    bombs = {"bomb.ipynb": b"0" * 15_000_000, "large.ipynb": b"0" * 21_000_000}
    found, _ = read(pack(tmp_path / "in.zip", {**bombs, "jo.ipynb": NOTEBOOK}))
    assert found["jo.ipynb"] == NOTEBOOK
    assert "so much smaller" in found["bomb.ipynb"] and "21 MB" in found["large.ipynb"]


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": b"0" * 3_000_000})
    data = archive.read_bytes()
    size = (3_000_000).to_bytes(4, "little")
    archive.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    assert "damaged" in read(archive)[0]["jo.ipynb"]


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_only_what_platforms_pack_is_unpacked(tmp_path, method):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": NOTEBOOK}, method)
    assert "packed" in read(archive)[0]["jo.ipynb"]


def test_too_many_members_are_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 3)
    found, refused = read(pack(tmp_path / "in.zip", {f"{i}.ipynb": NOTEBOOK for i in range(5)}))
    assert found == {} and "5 files" in refused[0] and "Unpack it" in refused[0]


def test_a_heap_of_files_deep_in_one_folder_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 10)
    put(tmp_path, *(f"ada/deep/{i}.txt" for i in range(30)), "jo/x.ipynb", "zoe/x.ipynb")
    found, refused = read(tmp_path)
    assert {"jo/x.ipynb", "zoe/x.ipynb"} <= set(found)
    assert len(refused) == 1 and "more than 10 files" in refused[0]


def test_folders_in_folders_end_somewhere(tmp_path):
    deep = "a/" * 200 + "x.ipynb"
    found, _ = read(pack(tmp_path / "in.zip", {deep: NOTEBOOK, "jo.ipynb": NOTEBOOK}))
    assert found["jo.ipynb"] == NOTEBOOK
    assert [text for name, text in found.items() if name != "jo.ipynb"] == [
        "It lies too many folders deep."
    ]
    put(tmp_path / "in", "b/" * 20 + "x.ipynb")
    found, _ = read(tmp_path / "in")
    assert list(found.values()) == ["It lies too many folders deep."]


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
    found, refused = read(archive)
    assert refused or all(isinstance(text, str) for text in found.values())


def test_bytes_that_are_changed_anywhere_never_raise(tmp_path):
    archive = pack(tmp_path / "in.zip", {"a.ipynb": NOTEBOOK, "b/c.ipynb": b"x" * 300})
    data = archive.read_bytes()
    for place in range(len(data)):
        for value in (0, 255, data[place] ^ 1):
            archive.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
            read(archive)


def test_a_locked_archive_is_said_not_raised(tmp_path):
    archive = pack(tmp_path / "in.zip", {"jo.ipynb": NOTEBOOK})
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    archive.write_bytes(data)
    assert "password" in read(archive)[0]["jo.ipynb"]


def test_names_in_utf8_that_do_not_say_so_are_read_as_utf8(tmp_path):
    archive = pack(tmp_path / "in.zip", {"Jos\u00e9.ipynb": NOTEBOOK})
    data = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.index(mark) + offset
        flags = int.from_bytes(data[start : start + 2], "little") & ~0x800
        data[start : start + 2] = flags.to_bytes(2, "little")
    archive.write_bytes(data)
    assert list(read(archive)[0]) == ["Jos\u00e9.ipynb"]


@pytest.mark.parametrize("name", ["jo.ipynb.txt", "jo.ipynb.json", "jo.IPYNB"])
def test_a_notebook_that_a_browser_renamed_is_one(tmp_path, name):
    put(tmp_path / "in", name)
    with opened(tmp_path / "in") as (entries, _):
        assert [(e.notebook, e.stem) for e in entries] == [(True, "jo")]


def test_an_archive_in_an_archive_is_a_file_like_others(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("jo.ipynb", NOTEBOOK)
    with opened(pack(tmp_path / "in.zip", {"jo.zip": inner.getvalue()})) as (entries, _):
        assert [(e.name, e.notebook) for e in entries] == [("jo.zip", False)]


def test_names_are_shown_on_one_line_without_what_cannot_be_seen():
    assert shown("a\nb\x1b[31m\u202ec") == "a?b?[31m?c"
    assert len(shown("x" * 70_000)) == 100
    assert shown("\udcff.ipynb").isprintable()
