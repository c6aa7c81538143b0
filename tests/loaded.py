"""A process that has imported what commands need, and runs each in a copy of itself.

    python -m tests.loaded

Reads one JSON object a line: the command, where and as whom it runs, and the files that it prints
to; answers each with its exit status. See `tests/typed.py`.
"""

import gc
import json
import multiprocessing
import os
import pwd
import sys

from autograder.one_thread import light, one_thread

one_thread()
light()

from autograder.sandbox import prepare, probe  # noqa: E402

prepare()  # what children need is imported beside what commands need

import nbgrader.api  # noqa: E402
import nbgrader.apps.nbgraderapp  # noqa: E402
from alembic.script import ScriptDirectory  # noqa: E402
from nbgrader.dbutil import ALEMBIC_DIR  # noqa: E402

import autograder.classroom.again  # noqa: E402
import autograder.classroom.marks  # noqa: E402
import autograder.classroom.run  # noqa: E402
import autograder.cli  # noqa: E402
import autograder.exports.report  # noqa: E402
import autograder.grading.nbgrader_plugin  # noqa: E402
from autograder.many import pool  # noqa: E402

MAINS = {"nbgrader": nbgrader.apps.nbgraderapp.main, "autograder": autograder.cli.main}


def copies_for_pools() -> None:
    """Makes the processes of a pool copies of their command, not of a server that imports anew.

    Such a copy has the command's ends of all pipes open too. It closes them, or it would never
    learn that nobody asks for more.
    """
    fork, serve, ours = multiprocessing.get_context("fork"), pool._serve, []
    pipe = fork.Pipe

    def noted():
        ends = pipe()
        ours.append(ends[0])
        return ends

    def serve_alone(connection, work) -> None:
        for end in ours:
            end.close()
        serve(connection, work)

    fork.Pipe, pool._serve, pool._kind = noted, serve_alone, lambda: "fork"


def run(job: dict) -> int:
    """Runs a command in this process, which is the job's own; its exit status."""
    for number, path in enumerate((os.devnull, job["out"], job["err"])):
        os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
    # Nothing that was read ahead of the parent's own orders is this command's.
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["place"])
    if job["user"]:
        facts = pwd.getpwnam(job["user"])
        os.setgroups([])
        os.setgid(facts.pw_gid)
        os.setuid(facts.pw_uid)
    sys.argv = job["command"]
    return MAINS[sys.argv[0]]()


def main() -> None:
    # For each new gradebook nbgrader starts a process of alembic's that says this.
    head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    nbgrader.api.get_alembic_version = lambda: head
    copies_for_pools()
    probe()
    gc.collect()
    gc.freeze()  # what is here is neither looked through nor copied in the commands
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.exit(run(json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
