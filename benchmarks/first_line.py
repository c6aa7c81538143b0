"""What the first wrong line costs: a wrong answer judged with its steps and without, in one run.

Both run in this process and are counted in processor time, so that the ratio says how it weighs on
any machine; the child's own part (the call once more under the recorder) is given as well. The
first wrong answer to a task is told apart from those after it: what is the same for a whole class
is then worked out already. The work is bound by the number of ways to mend (`MOST_TRIES`) and of
steps that are made again (`MOST_STEPS`): the most of both is given. Of right answers nothing is
recorded: they are judged by turns as they are and with the look switched off.
"""

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
TIMES = 3
ALLOWED = 150  # milliseconds more for a wrong answer


def spent(function) -> float:
    """Milliseconds of processor time of one run."""
    start = time.process_time()
    function()
    return 1e3 * (time.process_time() - start)


def median(function) -> float:
    """The median of several runs."""
    return statistics.median(spent(function) for _ in range(TIMES))


def spread(what: str, more: list[float], rest: list[float], names: list[str]) -> None:
    """Prints how a cost is spread, and its ratio to the rest of the judging."""
    ordered = sorted(more)
    ratio = statistics.median(more) / statistics.median(rest)
    above = [name for name, cost in zip(names, more, strict=True) if cost > ALLOWED]
    print(f"{what}: median {statistics.median(more):.0f} ms,")
    print(f"  {ratio:.1f} times the rest of it ({statistics.median(rest):.0f} ms);")
    print(f"  90 % below {ordered[len(ordered) * 9 // 10]:.0f} ms, the most {ordered[-1]:.0f} ms;")
    print(f"  above {ALLOWED} ms: {len(above)} of {len(more)}")
    print("".join(f"    {name}\n" for name in above), end="")


def main() -> None:
    from autograder.one_thread import one_thread

    one_thread()
    from autograder import notebook
    from autograder.course.calls import Draw, run_here
    from autograder.course.course import Course
    from autograder.course.steps.traces import trace_here
    from autograder.judging.verdict import findings
    from autograder.sandbox.inside.runner import Runner
    from autograder.tracing.edits.ask import here
    from autograder.tracing.edits.versions import WrongAnswer
    from autograder.tracing.findings import Steps, with_where, wrong_call
    from autograder.tracing.first_wrong import Work
    from autograder.tracing.proof.replay import MOST_STEPS, MOST_TRIES
    from tests.tracing import fresh
    from tests.tracing.helper import SETUP
    from tests.tracing.programs import PROGRAMS

    course = Course.at(ROOT)

    def namespace_of(program) -> dict:
        namespace: dict = {}
        runner = Runner(namespace)
        runner.run_cell({"id": "setup", "source": SETUP})
        runner.run_cell({"id": f"answer {program.what}", "source": program.text})
        return namespace

    def wrong_answer(program) -> dict | None:
        """What judging it costs, by parts; None where no step tells anything."""
        exercise, namespace = course.exercises[program.task], namespace_of(program)
        calls = exercise.cases(Draw(0))
        known, outcomes = course.answers(exercise, calls), run_here(namespace, calls)
        found: list = []

        def judged():
            run_here(namespace, calls)
            found[:] = findings(exercise, calls, outcomes, known, program.text)

        def looked():
            steps = Steps(place, trace_here(namespace, [calls[place]]), outcomes[place])
            given = exercise, calls, outcomes, known, program.text
            versions = WrongAnswer(*given, here(namespace), place)
            with_where(found, steps, known, exercise, program.text, versions)

        first, rest = spent(judged), median(judged)
        place = wrong_call(exercise, calls, outcomes, known)
        if place is None:
            return None
        works.clear()
        more = spent(looked)
        tries = max((work.tries for work in works), default=0)
        steps = max((work.steps for work in works), default=0)
        child = median(lambda: trace_here(namespace, [calls[place]]))
        own = {"first": first, "rest": rest, "more": more, "again": median(looked)}
        return {**own, "child": child, "tries": tries, "steps": steps, "what": program.what}

    works = []
    begin = Work.__init__

    def counted(self, *args):
        begin(self, *args)
        works.append(self)

    Work.__init__ = counted
    chosen = [*PROGRAMS[::5], *fresh.PROGRAMS[::12], *fresh.AGAIN[::6], *fresh.FIFTH[::5]]
    rows = [row for row in map(wrong_answer, chosen) if row is not None]

    def column(name: str) -> list:
        return [row[name] for row in rows]

    names = column("what")
    print(f"{len(rows)} wrong answers; what their steps cost more:")
    spread("the first to a task", column("more"), column("first"), names)
    spread("each after it", column("again"), column("rest"), names)
    print(f"  of it the steps recorded {statistics.median(column('child')):.1f} ms")
    for what, name, bound in (
        ("ways to mend", "tries", MOST_TRIES),
        ("steps made again or compared", "steps", MOST_STEPS),
    ):
        usual, most = statistics.median(column(name)), max(column(name))
        print(f"{what}: {usual:.0f} at the median, at most {most} of {bound}")

    sums = {True: 0.0, False: 0.0}
    with_the_look = notebook._with_where
    right = fresh.RIGHT[::3]
    for program in right:
        exercise, namespace = course.exercises[program.task], namespace_of(program)
        times: dict[bool, list[float]] = {True: [], False: []}
        for on in [True, False] * (TIMES + 1):
            notebook._with_where = with_the_look if on else lambda found, *_: found
            times[on].append(spent(lambda e=exercise, n=namespace: notebook.look(e, n)))
        for on, own in times.items():
            sums[on] += min(own)
    notebook._with_where = with_the_look
    ratio = sums[True] / sums[False]
    print(f"{len(right)} right answers, with the look and without it: {ratio:.2f} times the time")


if __name__ == "__main__":
    main()
