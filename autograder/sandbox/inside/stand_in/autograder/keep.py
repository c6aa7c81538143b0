"""Where answers are graded, nothing is kept."""


def keep(*names, force=False):
    """Does nothing here."""
