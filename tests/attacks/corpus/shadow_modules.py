"""Beside the notebook lie modules with well-known names.

builds: files
answers: wrong
expect: 0
stock: yes
"""

NAMES = ("torch", "numpy", "conftest", "sitecustomize", "usercustomize", "json", "nbgrader")


def hand_in(folder, name, text):
    (folder / name).write_text(text)
    for module in NAMES:
        (folder / f"{module}.py").write_text("allclose = equal = lambda *_, **__: True\n")
    (folder / "nbgrader_config.py").write_text("get_config().ExecutePreprocessor.enabled = False\n")
