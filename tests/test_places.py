"""The Dockerfile, Binder's folder and the page about places name what is there."""

import json
import re
import shlex
import subprocess
import tomllib

import pytest

from autograder import cli
from tests.conftest import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "where_people_work.md").read_text(encoding="utf-8")
KNOWN = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions; lines that go on are joined, comments left out."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


def commands() -> set[str]:
    parser = cli._parser()
    return set(next(a for a in parser._actions if a.dest == "command" or a.choices).choices)


def test_the_dockerfile_has_known_instructions_and_begins_with_an_image():
    found = instructions()
    assert found[0][0] == "FROM" and {name for name, _ in found} <= KNOWN


def test_what_is_copied_is_there():
    for name, rest in instructions():
        if name == "COPY":
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources), rest


def test_the_image_is_started_as_an_ordinary_user_and_tells_its_isolation():
    found = dict(instructions())
    assert found["USER"] not in ("root", "0")
    (entry,) = json.loads(found["ENTRYPOINT"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert entry in scripts
    assert json.loads(found["CMD"]) == ["doctor"] and "doctor" in commands()


def test_the_images_python_is_new_enough():
    version = re.search(r"FROM python:(\d+)\.(\d+)", DOCKERFILE)
    assert tuple(map(int, version.groups())) >= (3, 11)
    runtime = (ROOT / ".binder" / "runtime.txt").read_text()
    assert re.fullmatch(r"python-3\.1[1-9]\n", runtime)


def test_no_marks_and_no_submissions_get_into_an_image():
    left_out = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"submitted", "autograded", "feedback", "reports", "**/*.db"} <= set(left_out)


@pytest.mark.parametrize("script", [".binder/postBuild"])
def test_a_script_of_the_shell_can_be_read(script):
    assert (ROOT / script).stat().st_mode & 0o100
    done = subprocess.run(["bash", "-n", str(ROOT / script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"[\w.]+\.(?:txt|toml|py)\b", (ROOT / script).read_text()):
        assert (ROOT / name).exists(), name


def test_the_commands_that_the_page_gives_to_the_image_are_there():
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    given = []
    for line in blocks.splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["docker", "run"] and "--entrypoint" not in words:
            given += words[words.index("attention") + 1 :][:1]
    assert given and set(given) <= commands()
