"""Line ends of Windows, a byte order mark, tabs and form feeds.

builds: files
answers: right
expect: same
"""


def hand_in(folder, name, text):
    (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\\n", "\\r\\n").encode())
