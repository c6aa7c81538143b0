"""A zip that holds a link to the solution.

builds: files
answers: right
expect: refused
"""

import stat
import zipfile


def hand_in(folder, name, text):
    link = zipfile.ZipInfo(f"ada/{name}")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr(link, f"@REPOSITORY@/solutions/{name}")
