"""Importing this loads the grader and the course, once for all processes that are copied of it.

Nothing fails here: what is wrong with the course is said where it is used.
"""

import contextlib
import gc

from autograder.one_thread import one_thread


def _load() -> tuple:
    """Everything that grading needs, the slowest first."""
    one_thread()
    # Torch first: by then the process that asked for this one has imported what it needs itself,
    # and two cores are not asked for three things at once.
    from autograder.course import handout
    from autograder.sandbox import prepare, probe

    prepare()  # what children need is imported beside what this process needs
    from IPython.core import inputtransformer2  # which is imported where a notebook is read

    from autograder.course import build
    from autograder.course.course import Course
    from autograder.grading import marking, work
    from autograder.grading.grade import hidden

    found: tuple = (build, handout, inputtransformer2, marking, work)
    with contextlib.suppress(Exception):
        course = Course.find()
        found += (course.lessons, hidden(course), probe())
    return found


loaded = _load()
gc.collect()
gc.freeze()  # what is here stays: it is neither looked through nor copied in the processes
