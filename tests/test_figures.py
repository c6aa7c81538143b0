"""What a notebook prints and draws is shown, and nothing but text and clean pictures of it."""

import io

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from autograder.grading import figures
from tests.attacks.entries import HOMEWORK


@pytest.fixture
def show(grader):
    box = grader.box(grader.lessons[HOMEWORK])

    def run(*sources: str) -> list[figures.Shown]:
        return list(figures.show(box, [(f"c{i}", s) for i, s in enumerate(sources)]).values())

    return run


def png(width: int = 4, height: int = 3, note: str = "") -> bytes:
    info = PngImagePlugin.PngInfo()
    info.add_text("note", note)
    file = io.BytesIO()
    Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(file, "PNG", pnginfo=info)
    return file.getvalue()


def test_printed_text_and_the_last_value_are_shown(show):
    shown = show(
        "x = 3\nprint('hello')\nx + 1", "x;", "None", "import sys\nprint(x, file=sys.stderr)"
    )
    assert [s.text for s in shown] == ["hello\n4\n", "", "", "3\n"]


def test_each_cell_shows_its_own_figures(show):
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show();"
    first, second, third = show(draw, "y = 1", draw + "\nplt.figure();")
    assert [len(s.pictures) for s in (first, second, third)] == [1, 0, 2]
    assert Image.open(io.BytesIO(first.pictures[0])).format == "PNG"


def test_an_error_is_told_and_the_next_cells_run(show):
    first, second = show("\n1 / 0", "print('after')")
    assert first.text == "line 2: ZeroDivisionError: division by zero\n"
    assert second.text == "after\n"


@pytest.mark.parametrize("end", ["import os\nos._exit(0)", "import os\nos.kill(os.getpid(), 9)"])
def test_what_was_shown_before_an_end_stays(show, end):
    first, second = show("print('before')", end, "print('after')")
    assert first.text == "before\n"
    assert second.text.startswith("The notebook ends here.")


def test_a_flood_is_cut(show):
    (one,) = show("for i in range(100_000):\n    print('x' * 99)")
    assert 0 < len(one.text) <= 20_000


def test_a_forged_answer_is_no_picture(show):
    forge = (
        "import sys, torch\nR = sys.modules['course_runner'].Runner\n"
        "R.show = lambda self, cell: ({'text': 3, 'error': [1]}, "
        "{'a': torch.ones(9), 'b': torch.ones(9, dtype=torch.uint8)})"
    )
    _, second = show(forge, "1")
    assert second == figures.Shown("")


def test_pictures_are_written_anew():
    marked = png(note="<script>alert(1)</script>" * 9)
    assert b"script" in marked and b"script" not in figures.picture(marked + b"<script>")
    assert Image.open(io.BytesIO(figures.picture(marked))).size == (4, 3)


@pytest.mark.parametrize(
    "data", [b"", b"x" * 99, b"<svg onload=x>", png()[:40], b"GIF89a" + b"\0" * 99]
)
def test_what_is_no_picture_is_left_out(data):
    assert figures.picture(data) is None


def test_a_picture_of_too_many_pixels_is_left_out():
    assert figures.picture(png(2000, figures.MOST_PIXELS // 2000)) is not None
    assert figures.picture(png(2000, figures.MOST_PIXELS // 2000 + 1)) is None


def test_outputs_are_text_and_png_only():
    made = figures.outputs(figures.Shown("<b>x</b>", (png(),)))
    assert [o.output_type for o in made] == ["stream", "display_data"]
    assert list(made[1].data) == ["image/png"]


def test_each_picture_has_the_lessons_own_words_where_formgrader_looks_for_them():
    shown = figures.Shown("", (b"one", b"two", b"three"))
    found = figures.outputs(shown, ["a map", "", "a curve", "a text without a picture"])
    words = [o.metadata.get("image/png", {}).get("alt") for o in found]
    assert words == ["a map", None, "a curve"]
    assert [o.metadata for o in figures.outputs(shown)] == [{}, {}, {}]


def test_figures_of_the_lessons_are_shown_too(show):
    draw = (
        "import matplotlib.pyplot as plt\nfrom transformer_lm.figures import show\n"
        "fig, ax = plt.subplots()\nax.plot([1, 2])\nshow(fig, 'a rising line')"
    )
    first, second = show(draw, "x = 1")
    assert len(first.pictures) == 1
    assert second.pictures == ()
