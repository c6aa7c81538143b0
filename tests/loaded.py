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
from collections.abc import Callable
from importlib import import_module

from autograder.one_thread import light, one_thread

NEEDED = (  # by commands, and imported once for all of them
    "IPython.core.inputtransformer2",
    "autograder.classroom.again",
    "autograder.classroom.marks",
    "autograder.classroom.run",
    "autograder.exports.report",
    "autograder.grading.marking",
    "autograder.grading.nbgrader_plugin",
)


def load() -> dict[str, Callable[[], int]]:
    """Imports what commands need; the commands by their names."""
    one_thread()
    light()  # before anything large is imported
    from autograder.sandbox import prepare, probe

    prepare()  # what children need is imported beside what commands need
    import nbgrader.api
    from alembic.script import ScriptDirectory
    from nbgrader.apps import nbgraderapp
    from nbgrader.dbutil import ALEMBIC_DIR

    from autograder import cli

    for name in NEEDED:
        import_module(name)
    # For each new gradebook nbgrader starts a process of alembic's that says this.
    head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
    nbgrader.api.get_alembic_version = lambda: head
    probe()
    return {"nbgrader": nbgraderapp.main, "autograder": cli.main}


def copies_for_pools() -> None:
    """Makes the processes of a pool copies of their command, not of a server that imports anew.

    Such a copy has the command's ends of all pipes open too. It closes them, or it would never
    learn that nobody asks for more.
    """
    from autograder.many import pool

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


def run(job: dict, mains: dict[str, Callable[[], int]]) -> int:
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
    return mains[sys.argv[0]]()


def main() -> None:
    mains = load()
    copies_for_pools()
    gc.collect()
    gc.freeze()  # what is here is neither looked through nor copied in the commands
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.exit(run(json.loads(line), mains))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
