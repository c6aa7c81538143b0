"""The reference of the site: written from the exercises, the notations and the commands."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import torch

from autograder import cli, notation
from autograder.course.course import Course
from autograder.course.exercises import Written
from autograder.course.lesson import Role
from autograder.shapes.text import dims, lexer, reader, shapes_in_text


def pages(course: Course, lessons: Sequence[str], programs: bool = True) -> dict[str, str]:
    """The pages by name: one for each lesson with checks, the notations, the commands.

    programs: whether the wrong programs are shown, which differ in little from the answers.
    """
    found = {name: text for name in lessons if (text := _checks(course, name, programs))}
    return {**found, "notations": _notations(), "commands": _commands()}


# --- checks and mistakes -------------------------------------------------------------------------
def _checks(course: Course, name: str, programs: bool) -> str:
    """The checks of a lesson, each with its mistakes; '' where a machine marks nothing in it."""
    cells = {c.task: c for c in course.lessons[name].with_role(Role.CHECK)}
    if not cells:
        return ""
    out = [f"# Checks of {_title(course, name)}", ""]
    out.append(
        f"{len(cells)} checks. A mistake is a wrong program: an answer with the same values is "
        "told what stands with it."
    )
    out[-1] += (
        " Each is shown as the exercise's file has it: a program of its own, or what it changes in "
        "the course's answer."
        if programs
        else " The programs are left out here, for they differ in little from the answers."
    )
    told: dict[tuple[str, str], str] = {}
    for task, cell in cells.items():
        written = course.written[task]
        out += ["", f"## {task}", "", *_about(written, cell.points)]
        for check, message, program in _mistakes(written):
            earlier = told.setdefault((check, message), task)
            out += ["", f"### `{check}`", "", f"> {_text(message)}", ""]
            if not programs:
                continue
            if earlier == task:
                out += _program(program)
            else:
                out.append(f"The same program as of `{earlier}`.")
    return "\n".join(out) + "\n"


def _title(course: Course, name: str) -> str:
    """The lesson's own first heading; its file's name where it has none."""
    for cell in course.lessons[name].with_role(Role.TEXT):
        if found := re.search(r"^# (.+)$", cell.source, re.MULTILINE):
            return found[1]
    return name


def _about(written: Written, points: float) -> Iterator[str]:
    exercise = written.exercise
    kind = "class" if inspect.isclass(written.answer) else "function"
    yield f"The {kind} `{exercise.name}`, {points:g} point{'s' if points != 1 else ''}."
    if about := inspect.getdoc(written.answer):
        yield ""
        yield f"> {_text(about.partition(chr(10) * 2)[0])}"
    if count := len(written.mistakes) + len(written.fitted):
        yield ""
        yield f"{count} wrong programs with names, and pairs of those that are switches."


def _mistakes(written: Written) -> Iterator[tuple[str, str, str]]:
    """Name, what is said, and the program, of each mistake."""
    together: dict[tuple[str, str], list[str]] = {}
    for mistake, switches in zip(written.mistakes, written.switches, strict=True):
        (value,) = mistake.namespace.values()
        program = _switched(written, switches) if switches else _source(value)
        together.setdefault((mistake.check, mistake.message), []).append(program)
    for fitted in written.fitted:
        together.setdefault((fitted.check, fitted.message), []).append(_source(fitted.fit))
    for (check, message), programs in together.items():
        yield check, message, "\n\n".join(dict.fromkeys(filter(None, programs)))


def _switched(written: Written, switches: Mapping) -> str:
    """What the switches change in the course's answer."""
    name = written.exercise.name
    out = []
    for key, value in switches.items():
        if inspect.isfunction(value) and value.__name__ == "<lambda>":
            out.append(f"# in {name}, `{key}` is this:\n{_lambda(value)}")
        elif inspect.isfunction(value):
            out.append(f"# in {name}, `{key}` is this:\n{_source(value)}")
        else:
            out.append(f"# {name} with {key} = {_value(value)}")
    return "\n".join(out)


def _value(value) -> str:
    """A value as it is written: `torch.sigmoid`, and no address of this machine's memory."""
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        if getattr(torch, name, None) is value:
            return f"torch.{name}"
        return getattr(value, "__qualname__", name).replace("<locals>.", "")
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _source(value: Callable) -> str:
    value = getattr(value, "func", value)
    if getattr(value, "__name__", "") == "<lambda>":
        return _lambda(value)
    with suppress(OSError, TypeError):
        return textwrap.dedent(inspect.getsource(value)).rstrip()
    return ""


def _lambda(value: Callable) -> str:
    """The text of one lambda, out of the statement that it stands in."""
    with suppress(OSError, TypeError, SyntaxError):
        lines, start = inspect.getsourcelines(inspect.getmodule(value))
        tree = ast.parse("".join(lines))
        mine = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Lambda)
            and node.lineno == value.__code__.co_firstlineno - max(start - 1, 0)
            and len(node.args.args) == value.__code__.co_argcount
        ]
        if mine:
            return "\n".join(dict.fromkeys(ast.unparse(node) for node in mine))
    return ""


def _program(text: str) -> list[str]:
    if not text:
        return ["A program that is made where the exercise is; its file has it."]
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall(r"`+", text)), default=0))
    return [f"{fence}python", text, fence]


def _text(message: str) -> str:
    """A sentence as Markdown shows it: no markup of its own but `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(message.split()))
    return "".join(
        p if p.startswith("`") else re.sub(r"([\\*_<>\[\]$#{}])", r"\\\1", p) for p in parts
    )


# --- notations and commands ----------------------------------------------------------------------
def _notations() -> str:
    out = ["# Notations", "", "## Shapes in comments", "", lexer.table(), ""]
    for title, module in (
        ("How a comment is read", reader),
        ("What is a shape and what is none", shapes_in_text),
        ("Dimensions", dims),
        ("Calls with the shape of every tensor", notation),
    ):
        out += [f"## {title}", "", *_docstring(module), ""]
    return "\n".join(out)


def _docstring(module) -> list[str]:
    """A module's text; what is indented in it is shown as it is."""
    return [inspect.cleandoc(module.__doc__ or "")]


def _commands() -> str:
    """What each command says of itself."""
    out = ["# Commands", ""]
    parser = cli._parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, each in commands.choices.items():
        out += [f"## autograder {name}", ""]
        if name == "shapes":
            out += ["Checks the shape comments of any PyTorch file: see [shape comments]"]
            out[-1] += "(../docs/shape_comments.md)."
        else:
            each.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=88)
            out += ["```text", each.format_help().rstrip(), "```"]
        out.append("")
    return "\n".join(out)
