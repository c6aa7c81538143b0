"""From the sources to the notebooks."""

import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from autograder.course.build import (
    build,
    parse_source,
    read_source,
    readable,
    release,
    sources,
    write,
)
from autograder.course.course import Course
from autograder.course.settings import CourseError
from tests.conftest import ROOT

SOURCES = sources(ROOT, "solutions")
ids = [p.stem for p in SOURCES]


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_the_released_notebook_is_what_its_source_builds(path, tmp_path):
    write(release(read_source(path)), tmp_path / "built.ipynb")
    name = f"notebooks/{path.stem}/{path.stem}.ipynb"
    # In the folder, or in the repository: whoever has solved it in place may run the tests too.
    staged = subprocess.run(["git", "show", f":{name}"], cwd=ROOT, capture_output=True).stdout
    assert (tmp_path / "built.ipynb").read_bytes() in ((ROOT / name).read_bytes(), staged)


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_the_executed_notebook_has_the_cells_of_its_source(path):
    expected = readable(read_source(path))
    executed = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert [c.source for c in executed.cells] == [c.source for c in expected.cells]
    outputs = [o for c in executed.cells if c.cell_type == "code" for o in c.outputs]
    assert not any(o.output_type == "error" for o in outputs)
    assert any(o.output_type == "display_data" for o in outputs)


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_every_figure_has_alt_text(path):
    executed = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    outputs = [o for c in executed.cells if c.cell_type == "code" for o in c.outputs]
    assert not any("image/png" in o.get("data", {}) for o in outputs)  # stored a second time
    pages = ["".join(o.data["text/html"]) for o in outputs if "text/html" in o.get("data", {})]
    pictures = [page for page in pages if "<img" in page]
    assert pictures
    for picture in pictures:
        assert re.match(r'<img alt="[^"]{21,}" [^>]*src="data:image/png;base64,[^"]+">$', picture)


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_links_to_other_files_lead_somewhere(path):
    for folder, notebook in (
        (ROOT / "notebooks" / path.stem, release(read_source(path))),
        (ROOT / "solutions", readable(read_source(path))),
    ):
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        links = re.findall(r"\]\(((?!https?:|#)[^)#\s]+)", text)
        links = [link for link in links if "." in link]  # not f[i](x) in a formula
        assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_students_see_no_solution_and_no_marking_scheme(path):
    released = release(read_source(path))
    text = "\n".join(c.source for c in released.cells)
    assert "SOLUTION" not in text and "MARK SCHEME" not in text
    for cell in released.cells:
        if cell.metadata.get("course", {}).get("role") == "exercise":
            assert "raise NotImplementedError()" in cell.source


@pytest.mark.slow
def test_two_builds_are_byte_identical(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two.ipynb"
    for part in ("solutions", "transformer_lm"):
        own = shutil.ignore_patterns("*.ipynb", "__pycache__")
        shutil.copytree(ROOT / part, one / part, ignore=own)
    shutil.copy(ROOT / "pyproject.toml", one)
    files = build(Course.at(one), run=False)
    assert len(files) == len(SOURCES)
    for source, file in zip(SOURCES, files, strict=True):
        write(release(read_source(source)), two)
        assert file.read_bytes() == two.read_bytes()


def test_a_header_that_is_misspelled_is_refused(tmp_path):
    path = tmp_path / "00_x.py"
    path.write_text('# %% excercise="a.b"\nx = 1\n')
    with pytest.raises(CourseError, match="excercise"):
        read_source(path)


NEEDS = [("a", ""), ("b", ""), ("c", ' needs="a b"'), ("d", ' needs="a; b"')]


def test_one_call_in_a_header_may_hold_blanks():
    calls = ("f(x[n, m])", "f(x[n]); g(y[n, 2])")
    text = "".join(f'# %% exercise="e{i}" calls="{c}"\npass\n' for i, c in enumerate(calls))
    cells = parse_source(text, Path("01_a.py")).cells
    assert [c.metadata.course.calls for c in cells] == [["f(x[n, m])"], ["f(x[n])", "g(y[n, 2])"]]


def test_exercises_that_are_needed_stand_behind_blanks_or_semicolons():
    text = "".join(f'# %% exercise="{n}"{more}\n' for n, more in NEEDS)
    cells = parse_source(text, Path("01_a.py")).cells
    assert [c.metadata.course.get("needs") for c in cells] == [None, None, ["a", "b"], ["a", "b"]]


def test_a_check_without_an_exercise_is_refused(tmp_path):
    path = tmp_path / "00_x.py"
    path.write_text('# %% check="a.b" points=1\ncheck("a.b")\n')
    with pytest.raises(CourseError, match="no exercise"):
        read_source(path)


def test_every_check_with_points_has_an_exercise_that_a_machine_marks():
    for lesson in Course.at(ROOT).lessons.values():
        for cell in lesson.with_role("check"):
            assert cell.task in Course.at(ROOT).exercises


def test_every_exercise_is_asked_somewhere():
    asked = {c.task for ls in Course.at(ROOT).lessons.values() for c in ls.with_role("check")}
    assert asked == set(Course.at(ROOT).exercises)


# Decimals in the prose that come from elsewhere, or from a formula in the same sentence.
SAID_OF_OTHERS = {
    "07_make_it_fast": "3.35",  # a data sheet
    "08_variants": "0.05",  # 2.450 less 2.400
    "09_inside_gpt2": "1.56 80.65 81.82 82.50 82.71 1.17",  # GPT-2's own figures
    "10_reading_the_weights": ".96 2502.10927 0.02 0.01 .05 .10 0.07",
}


def decimals(text: str) -> set[str]:
    """Numbers with two decimals or more, without their signs and leading zeros."""
    return {n.lstrip("0") for n in re.findall(r"(?<![\w.])\d*\.\d\d+", text)}


@pytest.mark.parametrize("path", [p for p in SOURCES if p.stem >= "06"], ids=lambda p: p.stem)
def test_decimals_in_the_prose_are_printed_by_a_cell(path):
    cells = nbformat.read(path.with_suffix(".ipynb"), as_version=4).cells
    outputs = [o for c in cells if c.cell_type == "code" for o in c.outputs]
    printed = decimals("\n".join(o.text for o in outputs if o.output_type == "stream"))
    prose = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    prose = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\]\([^)]*\)", "", prose, flags=re.DOTALL)
    others = decimals(SAID_OF_OTHERS.get(path.stem, ""))
    assert sorted(decimals(prose) - printed - others) == []
