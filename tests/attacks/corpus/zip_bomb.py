"""A zip of half a megabyte that holds 500.

builds: files
answers: right
expect: refused
"""

import zipfile


def hand_in(folder, name, text):
    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for student in range(25):
            archive.writestr(f"{student}/{name}", b" " * 20_000_000)
