"""`autograder doctor` says what holds on this machine, and what is to be done where it does not."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from autograder import doctor
from autograder.cli import main
from autograder.course import course
from autograder.sandbox import probe, strongest

NAMESPACES, LANDLOCK, LIMITS = (replace(tier, available=True) for tier in probe())


def test_a_healthy_machine_passes_its_self_test(capsys, monkeypatch, course_root):
    monkeypatch.chdir(course_root)
    status = main(["doctor"])
    said = capsys.readouterr().out
    assert status == (1 if strongest() == "limits" else 0)
    assert "FAILED" not in said and said.count("  ok  ") >= 3
    assert "the course attention holds together" in said


@pytest.fixture
def wall_taken_for_granted(monkeypatch):
    """For tests of what is said of the course."""
    monkeypatch.setattr(doctor, "self_test", lambda tier: [])


@pytest.mark.usefixtures("wall_taken_for_granted")
def test_without_a_course_it_looks_at_the_engine_alone(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    monkeypatch.setattr(course, "has_settings", lambda folder: False)
    main(["doctor"])
    assert "no course in this folder" in capsys.readouterr().out


@pytest.mark.usefixtures("wall_taken_for_granted")
def test_a_broken_course_is_said_and_is_no_success(capsys, monkeypatch, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.autograder]\nlesons = 'x'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    assert main(["doctor"]) == 1
    assert "FAILED the course holds together" in capsys.readouterr().out


@pytest.fixture
def quickly(monkeypatch):
    """In the limits tier each program is run by a process that imports all anew."""
    monkeypatch.setattr("autograder.sandbox.box.TORCH", ("torch",))


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
@pytest.mark.skipif(strongest() == "limits", reason="nothing is hidden here")
def test_a_wall_with_a_hole_fails_the_self_test(monkeypatch):
    """The limits tier hides nothing: taken for a stronger one, it must not pass."""
    real = doctor.Sandbox
    monkeypatch.setattr(
        doctor, "Sandbox", lambda *args, **kw: real(*args, **{**kw, "tier": "limits"})
    )
    failed = {test.name for test in doctor.self_test("namespaces") if not test.passed}
    assert failed == {"a file outside cannot be read", "the network cannot be reached"}


def test_a_machine_that_holds_nothing_is_told_what_to_do():
    gone = replace(NAMESPACES, available=False, reason="EPERM")
    weaker = replace(LANDLOCK, available=False, reason="not in the kernel")
    assert doctor.advice((NAMESPACES, LANDLOCK, LIMITS), "linux") == []
    (namespaces,) = doctor.advice((gone, LANDLOCK, LIMITS), "linux")
    assert "EPERM" in namespaces and "apparmor_restrict_unprivileged_userns" in namespaces
    assert "pip install landlock" in doctor.advice((gone, weaker, LIMITS), "linux")[1]
    assert "Docker" in doctor.advice((gone, weaker, LIMITS), "darwin")[0]
    assert "WSL2" in doctor.advice((gone, weaker, LIMITS), "win32")[0]


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_without_a_wall_it_is_no_success(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    gone = tuple(replace(t, available=t.name == "limits") for t in (NAMESPACES, LANDLOCK, LIMITS))
    monkeypatch.setattr(doctor, "probe", lambda: gone)
    screen = io.StringIO()
    assert doctor.doctor(Console(file=screen, width=100)) == 1
    assert "self-test, isolation: limits" in screen.getvalue()


def test_the_version_is_that_of_the_installed_package(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.strip() == f"autograder {doctor.version()}"
