"""Asks for another kernel, by a path and with arguments.

builds: the notebook
answers: right
expect: same
stock: yes
"""


def change(notebook):
    notebook["metadata"]["kernelspec"] = {
        "name": "../../../x",
        "display_name": "x",
        "language": "bash",
        "argv": ["/bin/sh", "-c", "echo harm > '@CANARY@'"],
    }
    notebook["metadata"]["widgets"] = {"application/x": {"state": {"a": [1] * 1000}}}
