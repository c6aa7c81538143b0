"""What a class got wrong: the commonest mistakes, who is stuck where, shape comments, repairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.course.asking import Finding, Verdict
from autograder.exports.marked import BLANK, WRONG, Class, Marked, questions
from autograder.reports.findings import SHAPES, UNANSWERED

FALSE = (Verdict.FALSE, Verdict.MISSING)


@dataclass(frozen=True)
class Slip:
    """One mistake of one exercise, with all who made it.

    name: the mistake's, such as 'scale.missing'; '' where no known mistake explains what came.
    tasks: those that it costs. message: what one of them is told. lines: by student, the first
    wrong line. answer: the course's own answer to the exercise.
    """

    name: str
    tasks: tuple[str, ...]
    message: str
    students: tuple[str, ...]
    lines: tuple[str, ...]
    answer: str


def slips(marked: Class, answers: Mapping[str, str]) -> list[Slip]:
    """The mistakes of a class, the commonest first. answers: the course's, by cell.

    A student who meets one mistake in several tasks of a cell counts once.
    """
    found: dict[tuple[str, str], list[tuple[Marked, str, Finding]]] = {}
    for student in marked.handed_in:
        for task in student.marks:
            made = student.made(task)
            for finding in made.result.findings if made else ():
                if finding.check in (UNANSWERED, SHAPES) or not _is_slip(finding):
                    continue
                if finding.message.startswith("The same as for "):
                    continue  # told with the first task of its cell
                key = marked.answers(task), _name(finding)
                found.setdefault(key, []).append((student, task, finding))
    out = []
    for (cell, name), each in found.items():
        who = {student.id: (student, finding) for student, _, finding in each}
        tasks = tuple(dict.fromkeys(task for _, task, _ in each))
        lines = Counter(f.statement.strip() for _, f in who.values() if f.statement)
        told = Counter(_without_places(f.message) for _, f in who.values())
        out.append(
            Slip(
                name,
                tasks,
                told.most_common(1)[0][0],
                tuple(student.name for student, _ in who.values()),
                tuple(line for line, _ in lines.most_common(3)),
                answers.get(cell, ""),
            )
        )
    return sorted(out, key=lambda s: (-len(s.students), s.tasks, s.name))


def _is_slip(finding: Finding) -> bool:
    return finding.fails or (finding.verdict == Verdict.DEDUCTION and finding.points < 0)


def _name(finding: Finding) -> str:
    return finding.mistake or finding.check


def _without_places(message: str) -> str:
    """A message that many share: without the numbers that are one student's own."""
    return re.sub(r"^Line \d+: ", "", message)


def stuck(marked: Class) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """For each task: who has it wrong or blank as the first of theirs; and all who have it so.

    What comes behind the first wrong task may only follow from it.
    """
    first: dict[str, list[str]] = {}
    any_: dict[str, list[str]] = {}
    machine = [c.task for c in marked.tasks if c not in questions(marked.lesson)]
    for student in marked.handed_in:
        open_ = [task for task in machine if student.state(task) in (WRONG, BLANK)]
        for task in open_:
            any_.setdefault(task, []).append(student.name)
        if open_:
            first.setdefault(open_[0], []).append(student.name)
    return [(t, tuple(first.get(t, ())), tuple(any_[t])) for t in machine if t in any_]


def shape_errors(marked: Class) -> list[tuple[str, str, int | None, str]]:
    """The shape comments that are false or plainly missing: student, task, line, what is said."""
    out = []
    for student in marked.handed_in:
        for task in student.marks:
            made = student.made(task)
            for finding in made.result.findings if made else ():
                if finding.check == SHAPES and finding.verdict in FALSE:
                    said = _without_places(finding.message)
                    out.append((student.name, task, finding.line, said))
    return out


def repairs(marked: Class) -> list[tuple[str, str]]:
    """What was put right before grading, or why nothing could be read: student, sentence."""
    out = []
    for student in marked.handed_in:
        report = student.record.report if student.record else None
        if report is not None:
            out += [(student.name, said) for said in (*report.repairs, report.error) if said]
    return out


def how_made(marked: Class) -> list[tuple[str, str, str, str, str]]:
    """How the marks were made: student, tasks, isolation, seed, version; one row for all alike."""
    out = []
    for student in marked.handed_in:
        groups: dict[tuple, list[str]] = {}
        for task, mark in student.marks.items():
            made = student.made(task)
            if mark.by_hand:
                key = ("", "", "a person")
            elif made is None:
                key = ("unknown", "", "")
            elif made.result.needs_person:
                continue
            else:
                seed = "drawn for each question" if made.seed is None else str(made.seed)
                key = (made.isolation, seed, made.version)
            groups.setdefault(key, []).append(task)
        every = len(groups) == 1
        for key, tasks in groups.items():
            out.append((student.name, "all" if every else ", ".join(tasks), *key))
    return out
