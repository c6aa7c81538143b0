"""nbgrader from the course's folder, with no flags: `nbgrader autograde 05_homework`."""

from autograder.one_thread import one_thread

one_thread()  # before torch is imported

from autograder.grading.nbgrader_plugin import configure  # noqa: E402

configure(get_config())
