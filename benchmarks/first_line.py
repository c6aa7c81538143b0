"""What the first wrong line costs: a wrong answer judged with its steps and without, in one run.

Both run in this process and are counted in processor time, so that the ratio says how it weighs on
any machine; the child's own part (the call once more under the recorder) is given as well. The work
is bound by the number of times that steps are made again (`MOST_TRIES`): the most of it is given.
"""

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
TIMES = 2


def median(function, times: int = TIMES) -> float:
    """The median of several runs, in milliseconds of processor time."""
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(1e3 * (time.process_time() - start))
    return statistics.median(found)


def main() -> None:
    from autograder.one_thread import one_thread

    one_thread()
    from autograder.course.calls import Draw, run_here
    from autograder.course.course import Course
    from autograder.course.steps.traces import trace_here
    from autograder.judging.verdict import findings
    from autograder.sandbox.inside.runner import Runner
    from autograder.tracing.findings import Steps, with_where, wrong_call
    from autograder.tracing.first_wrong import Work
    from autograder.tracing.proof.replay import MOST_TRIES
    from tests.tracing import fresh
    from tests.tracing.helper import SETUP
    from tests.tracing.programs import PROGRAMS

    rows, works = [], []
    begin = Work.__init__

    def counted(self, *args):
        begin(self, *args)
        works.append(self)

    Work.__init__ = counted
    for program in [*PROGRAMS[::5], *fresh.PROGRAMS[::12], *fresh.AGAIN[::6]]:
        exercise, namespace = Course.at(ROOT).exercises[program.task], {}
        runner = Runner(namespace)
        runner.run_cell({"id": "setup", "source": SETUP})
        runner.run_cell({"id": "answer", "source": program.text})
        calls = exercise.cases(Draw(0))

        def judged(exercise=exercise, namespace=namespace, calls=calls, text=program.text):
            known = Course.at(ROOT).answers(exercise, calls)
            outcomes = run_here(namespace, calls)
            return findings(exercise, calls, outcomes, known, text), known, outcomes

        found, known, outcomes = judged()
        place = wrong_call(exercise, calls, outcomes, known)
        if place is None:
            continue

        def recorded(namespace=namespace, call=calls[place]):
            return trace_here(namespace, [call])

        steps = Steps(place, recorded(), outcomes[place])

        def looked(found=found, steps=steps, known=known, exercise=exercise, text=program.text):
            return with_where(found, steps, known, exercise, text)

        works.clear()
        looked()
        tries = max((work.tries for work in works), default=0)
        what = program.what
        rows.append((median(judged, 1), median(recorded), median(looked), what, tries))
    rest, child, here = (statistics.median(row[i] for row in rows) for i in range(3))
    worst = max(rows, key=lambda row: row[1] + row[2])
    print(f"{len(rows)} wrong answers, medians: judged without steps {rest:.0f} ms,")
    print(f"  the steps recorded {child:.1f} ms, looked at {here:.0f} ms:")
    print(f"  {(child + here) / rest:.2f} times the rest")
    print(f"the most: {worst[1] + worst[2]:.0f} ms ({worst[3]}; the rest {worst[0]:.0f} ms)")
    tries = statistics.median(row[4] for row in rows)
    most = max(row[4] for row in rows)
    print(f"steps made again: {tries:.0f} times at the median, at most {most} of {MOST_TRIES}")


if __name__ == "__main__":
    main()
