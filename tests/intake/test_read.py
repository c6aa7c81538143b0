"""Files that are no notebook, the wrong one, or meant to do harm: one clear sentence each."""

import json
import os
import socket
import tracemalloc

import nbformat
import pytest

from autograder.intake import magics
from autograder.intake import matching as answered
from autograder.intake import read as intake
from autograder.intake.read import read
from tests.intake.lesson_files import ADD, BOX, at, code, save, strip, words


def refused(path, lessons, expected=None):
    submission = read(path, lessons, expected)
    assert submission.cells == () and submission.repairs == ()
    assert submission.error and submission.error.endswith(".")
    assert "Traceback" not in submission.error and str(path.parent) not in submission.error
    return submission.error


def test_there_is_no_file(lessons, tmp_path):
    assert "no such file" in refused(tmp_path / "05_homework.ipynb", lessons)


def test_the_lesson_of_an_unreadable_file_is_known_by_its_name(lessons, tmp_path):
    path = tmp_path / "05-Homework (1).ipynb"
    path.write_text("{")
    assert read(path, lessons).lesson == "05_homework"
    assert read(path, lessons, "04_before").lesson == "04_before"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xff\xfe\xff", "not UTF-8"),
        (b"caf\xe9", "not UTF-8"),
        (b"print('hello')", "JSON"),
        (b'{"cells": [', "JSON"),
        (b"[1, 2]", "no cells"),
        (b"{}", "no cells"),
        (b'"text"', "no cells"),
        (b"null", "no cells"),
        (b"NaN", "no cells"),
        (b'{"cells": 5}', "no cells"),
        (b'{"cells": []}', "no cells"),
        (b'{"cells": [1, null, []]}', "no cells"),
        (b'{"worksheets": [{"cells": {}}]}', "no cells"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"cells": ' + b'[{"a":' * 5_000 + b"1" + b"}]" * 5_000 + b"}", "nested too deeply"),
        (b"[" * 2_000_000, "too many parts"),
        (b'{"cells": [' + b'{"cell_type": "code"},' * 100_000 + b"{}]}", "at most"),
        (b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', "lesson fits"),
        (b"<html><body>Please log in</body></html>", "JSON"),
    ],
)
def test_what_is_no_notebook_is_refused_in_a_sentence(lessons, tmp_path, content, why):
    path = tmp_path / "mine.ipynb"
    path.write_bytes(content)
    assert why in refused(path, lessons)


def test_a_file_larger_than_the_cap_is_not_read(lessons, tmp_path):
    path = tmp_path / "05_homework.ipynb"
    with open(path, "wb") as file:
        file.truncate(intake.LARGEST_FILE + 1)
    tracemalloc.start()
    assert "20 MB" in refused(path, lessons)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_links_are_refused(lessons, notebook, tmp_path):
    target = save(notebook, tmp_path, "target.ipynb")
    for make in (os.symlink, os.link):
        path = tmp_path / f"{make.__name__}.ipynb"
        make(target, path)
        assert "link" in refused(path, lessons)


def test_linked_folders_below_the_given_one_are_refused(lessons, notebook, tmp_path):
    save(notebook, tmp_path / "elsewhere")
    (tmp_path / "submitted/jo").mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere", tmp_path / "submitted/jo/05_homework")
    path = tmp_path / "submitted/jo/05_homework/05_homework.ipynb"
    assert "linked folder" in read(path, lessons, below=tmp_path / "submitted").error
    path = save(notebook, tmp_path / "submitted/ada/05_homework")
    assert read(path, lessons, below=tmp_path / "submitted").error is None


def test_devices_fifos_sockets_and_folders_are_refused_without_waiting(lessons, tmp_path):
    os.mkfifo(tmp_path / "fifo.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.ipynb"))
        for name in ("fifo.ipynb", "folder.ipynb", "socket.ipynb"):
            refused(tmp_path / name, lessons)
    refused(tmp_path.__class__("/dev/zero"), lessons)


@pytest.mark.parametrize("name", ["a\nb", "\udcff", "<script>", "é" * 100, "x" * 300, "a\0b"])
def test_odd_file_names_are_harmless(lessons, tmp_path, name):
    submission = read(tmp_path / f"{name}.ipynb", lessons)
    assert submission.error
    submission.notebook.encode("utf-8")


def test_a_byte_order_mark_and_crlf_change_nothing(lessons, notebook, reread, tmp_path):
    cells = reread(notebook).cells
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    text = json.dumps(notebook, indent=1).replace("\n", "\r\n")
    for encoding in ("utf-8-sig", "utf-16"):
        path = tmp_path / "05_homework.ipynb"
        path.write_bytes(text.encode(encoding))
        assert read(path, lessons).cells == cells


def test_nan_and_endless_numbers_in_the_json_are_harmless(lessons, notebook, tmp_path):
    text = json.dumps(notebook)
    odd = text.replace('"nbformat": 4', '"nbformat": NaN, "a": [-Infinity, ' + "9" * 10_000 + "]")
    assert odd != text
    path = tmp_path / "05_homework.ipynb"
    path.write_text(odd)
    assert read(path, lessons).error is None


def test_half_characters_and_nuls_can_be_stored_and_compiled(notebook, reread):
    at(notebook, "add").source = ADD + "  # \ud800 \0 \u202e שלום 🎉"
    cell = next(c for c in reread(notebook).cells if c.id == "add")
    cell.source.encode("utf-8")
    compile(cell.source, "cell", "exec")
    assert "שלום 🎉" in cell.source


@pytest.mark.parametrize("minor", range(6))
def test_every_minor_version_of_format_4_is_read(notebook, reread, minor):
    notebook.nbformat_minor = minor
    if minor < 5:
        for cell in notebook.cells:
            del cell["id"]
    submission = reread(notebook)
    assert {c.id: c.source for c in submission.cells if c.role == "exercise"} == {
        "add": ADD,
        "Box": BOX,
    }
    assert submission.repairs == ()


def test_format_3_is_read(notebook, lessons, tmp_path):
    old = nbformat.convert(notebook, 3)
    path = tmp_path / "05_homework.ipynb"
    path.write_text(nbformat.writes(old, version=3))
    assert "worksheets" in json.loads(path.read_text())
    cells = read(path, lessons).cells
    assert {c.id: c.source for c in cells if c.role == "exercise"} == {"add": ADD, "Box": BOX}


def test_a_renamed_notebook_is_recognised(notebook, reread):
    for name in ("Untitled.ipynb", "submission (3).ipynb", "jo.IPYNB"):
        submission = reread(notebook, name)
        assert submission.lesson == "05_homework" and submission.error is None
        assert "file's name" in submission.repairs[0]


def test_a_renamed_and_stripped_notebook_is_recognised(notebook, reread):
    assert reread(strip(notebook), "Untitled.ipynb").lesson == "05_homework"


def test_the_wrong_notebook_is_named_beside_the_one_asked_for(lessons, reread):
    error = reread(lessons["04_before"].notebook, expected="05_homework").error
    assert "04_before" in error and "05_homework" in error


def test_the_wrong_notebook_under_the_right_name_is_noticed(lessons, reread):
    notebook = lessons["04_before"].notebook
    assert reread(notebook, "05_homework.ipynb", expected="05_homework").error
    assert reread(notebook, "05_homework.ipynb").lesson == "04_before"


def test_a_notebook_of_something_else_is_refused_even_under_the_right_name(reread):
    notebook = nbformat.v4.new_notebook(cells=[code("print('my diary')")])
    assert "None of the cells of 05_homework" in reread(notebook, expected="05_homework").error


def test_a_cell_too_long_to_read_costs_only_itself(notebook, reread):
    at(notebook, "add").source = "#" * (intake.LARGEST_CELL + 1)
    submission = reread(notebook)
    cells = {c.id: c for c in submission.cells}
    assert not cells["add"].answered and cells["Box"].source == BOX
    assert any("counts as empty" in text for text in submission.repairs)


def test_too_much_text_in_all_is_refused(notebook, reread):
    notebook.cells += [code("#" * 190_000) for _ in range(6)]
    assert "at most 1000000" in reread(notebook).error


def test_a_long_list_of_repairs_is_cut(lessons, reread):
    notebook = lessons["05_homework"].notebook
    copies = [dict(notebook.cells[1], source=f"import os  # {i}") for i in range(200)]
    submission = reread({"cells": [*notebook.cells, *copies]})
    assert len(submission.repairs) <= intake.MOST_REPAIRS + 1
    assert "more repairs" in submission.repairs[-1]


@pytest.mark.parametrize("kind", ["copies", "grade ids", "own cells", "texts"])
def test_a_heap_of_large_cells_is_read_in_moments(lesson, reread, kind):
    def make(i):
        text = f"x = {i}\n" + "y = (1, 2)\n" * 30
        if kind == "texts":
            return words(text)
        cell = code(text + "class Box: pass")
        if kind == "copies":
            cell.id = "Box"
        elif kind == "grade ids":
            cell.metadata = {"nbgrader": {"grade_id": "Box"}}
        return cell

    cells = [*lesson.notebook.cells, *map(make, range(400))]
    assert reread({"cells": cells}).lesson == "05_homework"


def test_a_hundred_thousand_worksheets_are_read_in_moments(lesson, reread):
    sheets = [{"cells": [{}]} for _ in range(100_000)]
    notebook = {"cells": lesson.notebook.cells[:10], "worksheets": sheets}
    assert "100010 cells" in reread(notebook).error


def test_nothing_of_a_notebook_is_kept_in_memory(notebook, reread):
    reread(notebook)
    for remembered in (answered.defined, magics.parses, magics.plain_python):
        assert remembered.cache_info().currsize == 0
