"""What is asked: a course's folder, its lessons and exercises, what is built and handed out of it.

May touch the course's folder, and nothing of what students hand in. Starts no process, but for
the notebooks that `build` runs, which are the course's own. Of the other rooms it knows what runs
beside a student's code (`sandbox.inside`), to make calls.
"""

from autograder.one_thread import light

light()  # before any of the modules here imports nbformat
