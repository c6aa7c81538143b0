"""Two small lessons, and notebooks of students made from them."""

import copy
import json
from pathlib import Path

import nbformat

from autograder.course.build import as_text, read_source, release
from autograder.course.lesson import Lesson, read_lesson

HOMEWORK = '''# %% [markdown]
# # Homework
# Add, then hold.

# %% role="setup"
import math

# %%
x = 3
print("play with", x)

# %% [markdown]
# ## Adding

# %% exercise="add"
def add(a, b):
    """Adds two numbers."""
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION

# %% check="add" points=2
check("add")

# %% [markdown]
# ### Q1
# Why does the order not matter?

# %% [markdown] question="q1" points=1
# ### BEGIN MARK SCHEME
# because
# ### END MARK SCHEME

# %% [markdown]
# ### Q2
# What is zero good for?

# %% [markdown] question="q2" points=1
# ### BEGIN MARK SCHEME
# nothing
# ### END MARK SCHEME

# %% exercise="Box"
class Box:
    """Holds a number."""

    def __init__(self, number):
        ### BEGIN SOLUTION
        self.number = number
        ### END SOLUTION

    def get(self):
        """Gives it back."""
        ### BEGIN SOLUTION
        return self.number
        ### END SOLUTION

# %% check="Box" points=2
check("Box")
'''
OTHER = '''# %% [markdown]
# # Before
# A box that adds.

# %% role="setup"
import math

# %% exercise="AddingBox"
class AddingBox:
    """Adds up."""

    ### BEGIN SOLUTION
    total = 0
    ### END SOLUTION

# %% check="AddingBox" points=1
check("AddingBox")
'''
ADD = "def add(a, b):\n    return a + b"
BOX_TOP = "class Box:\n    def __init__(self, number):\n        self.number = number"
BOX_REST = "\n    def get(self):\n        return self.number"
BOX = BOX_TOP + "\n" + BOX_REST


def make_lessons(folder: Path) -> dict[str, Lesson]:
    """The two lessons, built as the course builds its own."""
    lessons = {}
    for name, text in (("05_homework", HOMEWORK), ("04_before", OTHER)):
        source = folder / f"{name}.py"
        source.write_text(text, encoding="utf-8")
        lessons[name] = read_lesson(name, as_text(release(read_source(source))))
    return lessons


def solved(lesson: Lesson) -> nbformat.NotebookNode:
    """A student's notebook of 05_homework with every answer filled in."""
    notebook = copy.deepcopy(lesson.notebook)
    at(notebook, "add").source = ADD
    at(notebook, "Box").source = BOX
    at(notebook, "q1").source = "Addition commutes."
    at(notebook, "q2").source = "To leave things as they are."
    return notebook


def at(notebook: nbformat.NotebookNode, cell_id: str) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def place(notebook: nbformat.NotebookNode, cell_id: str) -> int:
    return next(i for i, cell in enumerate(notebook.cells) if cell.id == cell_id)


def strip(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """What Colab and others do: new ids, no metadata."""
    for i, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = nbformat.NotebookNode(), f"x{i}"
    notebook.metadata = nbformat.NotebookNode()
    return notebook


def save(notebook, folder: Path, name: str = "05_homework.ipynb") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def code(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source)


def words(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(source)
