"""What `import autograder` gives where answers are graded: checks and hints do nothing."""


def check(task):
    """Does nothing here."""


def hint(task, step=1):
    """Does nothing here."""


def passes(task):
    """None: nothing is checked here."""


def keep(*names, force=False):
    """Does nothing here."""
