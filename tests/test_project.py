"""The project's own files agree with each other."""

import re
import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}


def split(requirement: str) -> tuple[str, str]:
    """A requirement as (name, range), without markers."""
    name, bounds = re.match(
        r"([A-Za-z0-9_.-]+?)\s*([<>=!].*)?$", requirement.split(";")[0].strip()
    ).groups()
    return name.lower(), bounds or ""


def wanted() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + project["optional-dependencies"]["test"]
    names = {CONDA_NAMES.get(n, n): bounds for n, bounds in map(split, listed)}
    return {"python": project["requires-python"], **names}


def test_the_conda_environment_has_the_packages_and_ranges_of_the_project():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    flat = [e for e in entries if isinstance(e, str) and e != "pip"]
    flat += next(e["pip"] for e in entries if isinstance(e, dict))
    assert dict(map(split, flat)) == wanted()


def test_every_dependency_is_pinned_inside_its_range():
    from packaging.specifiers import SpecifierSet

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))
    names = {v: k for k, v in CONDA_NAMES.items()}
    for name, bounds in wanted().items():
        if name != "python":
            assert SpecifierSet(bounds).contains(pins[names.get(name, name)], prereleases=True), (
                name
            )


def test_the_attention_that_is_taught_is_causal():
    found = subprocess.run(
        [
            "git",
            "grep",
            "-nIiE",
            r"\bcasual",
            "--",
            ".",
            ":!tests/test_project.py",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stdout) == (1, ""), found.stderr  # 1: nothing was found
