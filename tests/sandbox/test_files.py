"""The wall hides our own package wherever it is installed, and shows what Python needs."""

import os
import sys
from pathlib import Path

import pytest

from autograder.sandbox import Sandbox, Tier, files
from autograder.sandbox.probe import for_course
from tests.forms import first_of
from tests.sandbox.conftest import RUNNER


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """A folder of installed packages in which ours stand beside others."""
    folder = tmp_path / "lib" / "site-packages"
    for name in ("autograder", "transformer_lm", "somebody_elses"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("VALUE = 'installed'\n")
        (folder / name / "secret.py").write_text("VALUE = 'installed'\n")
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize("tier", first_of("namespaces", "landlock"))
def test_our_installed_package_is_hidden_and_others_are_not(light, course, installed, tier):
    source = f"""
import autograder, somebody_elses.secret
from given import found
assert autograder.STUB
for name in ("autograder", "transformer_lm"):
    try:
        found.append(open("{installed}/" + name + "/secret.py").read())
    except OSError:
        pass
"""
    hide = [installed / "transformer_lm"]  # as a grader says it of its course's library
    with Sandbox(course, tier=tier, runner=RUNNER, hide=hide) as box, box.child() as child:
        header, _ = child.request({"op": "run", "source": source, "given": {}}, {})
    assert header["found"] == []


def test_what_the_caller_names_is_hidden_too(light, course, installed):
    hide = [installed / "somebody_elses" / "secret.py"]
    source = f"""
import somebody_elses
from given import found
try:
    found.append(open("{hide[0]}").read(1))
except OSError:
    pass
"""
    for tier in ("namespaces", "landlock"):
        with Sandbox(course, tier=tier, runner=RUNNER, hide=hide) as box, box.child() as child:
            header, _ = child.request({"op": "run", "source": source, "given": {}}, {})
        assert "".join(header["found"]) == "", tier


def test_the_package_in_use_is_hidden_from_a_view_that_holds_it():
    package = Path(files.__file__).resolve().parents[1]
    hidden = files.hidden([str(package.parents[1])], "/course", [])
    assert str(package) in hidden
    assert str(package.parent / "tests") in hidden


def test_a_view_that_does_not_hold_it_needs_no_cover():
    package = Path(files.__file__).resolve().parents[1]
    assert str(package) not in files.hidden(["/usr"], "/course", [])


def test_pythons_own_files_are_shown():
    shown, _ = files.visible("/home/me/course", "/course")
    targets = [inside for _, inside in shown]
    assert ["/home/me/course", "/course"] in shown
    for path in (os.__file__, os.path.realpath(sys.executable), *files.libraries()):
        assert any(path.startswith(t + "/") or path == t for t in targets), path


def test_landlock_grants_all_but_the_hidden(tmp_path, monkeypatch):
    for name in ("a/keep", "a/hide/inner", "b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "hide")
    monkeypatch.setattr(files, "FACTS", ())
    read, listed = files.grants([str(tmp_path)], [str(tmp_path / "a" / "hide")])
    assert sorted(read) == [str(tmp_path / name) for name in ("a/file", "a/keep", "b")]
    assert sorted(listed) == [str(tmp_path), str(tmp_path / "a")]


def test_a_private_course_is_not_asked_for_under_another_user_id(tmp_path):
    """Without a root of its own a child enters each folder above the course by its own rights."""
    for_all = tmp_path / "for all"
    private = tmp_path / "private" / "course"
    for folder in (for_all, private):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    own = Tier("landlock", True, "", own_uid=True)
    above = [p for p in tmp_path.parents if not p.stat().st_mode & 0o1] + [tmp_path]
    before = {folder: folder.stat().st_mode for folder in above}
    try:
        for folder in above:
            folder.chmod(0o711)
        assert for_course(own, str(for_all)) == own
        private.parent.chmod(0o700)
        changed = for_course(own, str(private))
        assert not changed.own_uid
        assert "private" in changed.reason
        by_namespaces = Tier("namespaces", True, "", own_uid=True)
        assert for_course(by_namespaces, str(private)) == by_namespaces
    finally:
        for folder, mode in before.items():
            folder.chmod(mode)
