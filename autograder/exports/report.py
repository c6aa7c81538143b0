"""`autograder report`: what became of a class, as one page that needs no network, or as CSV."""

from __future__ import annotations

import statistics
from datetime import datetime

from autograder.course.course import Course
from autograder.exports import mistakes, plots
from autograder.exports.alike import alike
from autograder.exports.marked import BLANK, PARTLY, RIGHT, STATES, UNREAD, WAITING, WRONG, Class
from autograder.exports.tables import as_csv
from autograder.grading.grade import model_answers
from autograder.reports.feedback import render
from autograder.reports.report import number

MOST_SLIPS = 12  # shown in full
KINDS = {
    **{RIGHT: "right", PARTLY: "partly", WRONG: "wrong"},
    **{BLANK: "blank", WAITING: "waiting", UNREAD: "blank"},
}
COLUMNS = ("what", "student", "task", "line", "name", "value", "said")


def page(marked: Class, course: Course, made: datetime | None = None) -> str:
    """The class report as HTML: inert, in one file."""
    marked = marked.told_apart()
    answers = model_answers(course, marked.lesson.name)
    there, tasks = marked.handed_in, [c.task for c in marked.tasks]
    counts = {state: [sum(s.state(t) == state for s in there) for t in tasks] for state in STATES}
    found = mistakes.slips(marked, answers)
    totals = [s.total for s in there]
    return render(
        "class.html",
        title=marked.lesson.name,
        made=(made or datetime.now()).strftime("%Y-%m-%d %H:%M"),
        marked=marked,
        kinds={**KINDS, "": ""},
        states=STATES,
        average=_average(totals, marked.most),
        waiting=_waiting(marked),
        bars=plots.bars(tasks, STATES, counts) if there else "",
        totals=plots.totals(totals, marked.most) if there else "",
        totals_said=_spread(totals, marked.most),
        sections=_sections(marked),
        by_task=[_task_row(marked, place, counts) for place in range(len(tasks))],
        slips=found[:MOST_SLIPS],
        more_slips=len(found[MOST_SLIPS:]),
        stuck=mistakes.stuck(marked),
        shapes=mistakes.shape_errors(marked),
        repairs=mistakes.repairs(marked),
        alike=alike(marked, answers),
        how_made=mistakes.how_made(marked),
    )


def _average(totals: list[float], most: float) -> str:
    if not totals:
        return ""
    return (
        f"Mean {number(round(statistics.fmean(totals), 2))}, "
        f"median {number(round(statistics.median(totals), 2))} of {number(most)} points."
    )


def _sections(marked: Class) -> list[tuple[str, int, int, str]]:
    """Each section with how many are in it, how many handed in, and their mean; none, if one."""
    names = dict.fromkeys(sorted(s.section for s in marked.students))
    found = []
    for name in names if len(names) > 1 else ():
        own = [s for s in marked.students if s.section == name]
        totals = [s.total for s in own if s.marks]
        mean = number(round(statistics.fmean(totals), 2)) if totals else ""
        found.append((name or "none", len(own), len(totals), mean))
    return found


def _spread(totals: list[float], most: float) -> str:
    """The histogram in words."""
    if not totals or not most:
        return ""
    steps = sorted((low, sum(low <= 4 * t / most < low + 1 for t in totals)) for low in range(4))
    full = sum(t >= most for t in totals)
    said = [f"{count} from {number(most * low / 4)} points" for low, count in steps]
    return f"How many have how many points: {', '.join(said)}, {full} with all {number(most)}."


def _waiting(marked: Class) -> str:
    who = sum(bool(s.waiting) for s in marked.handed_in)
    have = "has" if who == 1 else "have"
    return f"{who} {have} answers that nobody has marked yet." if who else ""


def _task_row(marked: Class, place: int, counts) -> dict:
    cell = marked.tasks[place]
    given = [s.marks[cell.task].points for s in marked.handed_in if cell.task in s.marks]
    known = [] if None in given else given
    return {
        "task": cell.task,
        "most": cell.points,
        "mean": number(round(statistics.fmean(known), 2)) if known else "",
        "counts": [counts[state][place] for state in STATES],
    }


def table(marked: Class, course: Course) -> str:
    """The same as CSV, one fact a row: 'what' says what kind of fact it is."""
    marked = marked.told_apart()
    answers = model_answers(course, marked.lesson.name)
    rows: list[tuple] = [COLUMNS]
    for s in marked.students:
        for task, mark in s.marks.items():
            rows.append(("mark", s.id, task, "", s.name, mark.points, s.state(task)))
        if s.penalty:
            rows.append(("late penalty", s.id, "", "", s.name, -s.penalty, ""))
        total = s.total if s.marks else None
        rows.append(("total", s.id, "", "", s.name, total, "" if s.marks else "nothing handed in"))
    for slip in mistakes.slips(marked, answers):
        tasks = ", ".join(slip.tasks)
        rows.append(("mistake", "", tasks, "", slip.name, len(slip.students), slip.message))
        rows += [("mistake by", who, tasks, "", slip.name, None, "") for who in slip.students]
    for task, first, every in mistakes.stuck(marked):
        rows += [("stuck first", who, task, "", "", None, "") for who in first]
        rows.append(("stuck", "", task, "", "", len(every), ", ".join(every)))
    for who, task, line, said in mistakes.shape_errors(marked):
        rows.append(("shape comment", who, task, line, "", None, said))
    rows += [("repaired", who, "", "", "", None, said) for who, said in mistakes.repairs(marked)]
    for pair in alike(marked, answers):
        said = f"a hint, no verdict: {', '.join(pair.tasks)}"
        rows.append(("alike", pair.one, "", "", pair.other, pair.share, said))
    for who, tasks, isolation, seed, version in mistakes.how_made(marked):
        rows.append(("made", who, tasks, "", isolation, f"seed {seed}" if seed else "", version))
    return as_csv(rows)
