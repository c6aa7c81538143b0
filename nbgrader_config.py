"""nbgrader from the course's folder, with no flags: `nbgrader autograde 05_homework`."""

from autograder.nbgrader_plugin import configure

configure(get_config())
