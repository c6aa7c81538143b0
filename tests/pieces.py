"""A piece of work for a pool's processes, which import nothing else for it."""

import os


def work(piece):
    """Ends its process, fails, or doubles."""
    if isinstance(piece, str) and os.path.exists(piece):
        os.unlink(piece)  # the second time it goes well
        os._exit(9)
    if piece == "always":
        os._exit(9)
    if piece == "fails":
        raise ValueError("no")
    return piece * 2
