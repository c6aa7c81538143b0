"""Sets the course up: `python3 install.py` makes the environment .venv and installs all it needs.

Needs Python 3.11 or newer and nothing else. Running it again mends and updates what is there.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST = (3, 11)
# PyTorch's own index has builds without CUDA, which are gigabytes smaller. Only Linux needs it.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = 5  # seconds, for the index to answer
LAST_LINES = 15


def main() -> int:
    """Installs; returns the exit status."""
    parser = argparse.ArgumentParser(description="Sets the course up in an environment of its own.")
    parser.add_argument("--folder", type=Path, default=HERE / ".venv", help="of the environment")
    parser.add_argument("--extra", default="", help="more packages, as pyproject.toml names them")
    parser.add_argument("--cpu-index", default=CPU_INDEX, metavar="URL", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if sys.version_info < OLDEST:
        return fail(
            f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed, and this is "
            f"{platform.python_version()}. Run it with a newer one, such as python3.12 install.py."
        )
    if not run([sys.executable, "-m", "venv", str(args.folder)]):
        return fail(
            "No environment could be made: see above. On Debian and Ubuntu the package "
            "python3-venv is often missing: sudo apt install python3-venv."
        )
    scripts = args.folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    pip += ["--quiet", "-c", str(HERE / "constraints.txt")]
    if platform.system() == "Linux":
        torch_for_cpu(pip, args.cpu_index)
    print("Installing the other packages; this takes some minutes the first time.", flush=True)
    course = f"{HERE}[{args.extra}]" if args.extra else str(HERE)
    if not run([*pip, "-e", course]):
        return fail(
            "The packages could not be installed: see above. Where no server was reached, look at "
            "the network and run this again: it goes on from where it was."
        )
    print(f"The course is set up. Start with: {shown(scripts / 'jupyter')} lab notebooks")
    return 0


def torch_for_cpu(pip: list[str], index: str) -> None:
    """Installs PyTorch from its index of builds without CUDA, if that index can be reached.

    From nowhere else: asked for every package, an index that does not answer costs minutes and a
    page of warnings.
    """
    if answers(index):
        print("Installing PyTorch without CUDA, about 200 MB.", flush=True)
        if run([*pip, "--no-deps", "--index-url", index, "torch"], aloud=False):
            return
    print(
        f"PyTorch's index of builds without CUDA ({index}) cannot be reached, so PyTorch comes "
        "from the usual index: on Linux that may be the build with CUDA, some gigabytes more.",
        flush=True,
    )


def answers(index: str) -> bool:
    """Whether the index can be reached from here, in good time."""
    try:
        with urllib.request.urlopen(f"{index}/torch/", timeout=PATIENCE) as page:
            return page.status == 200
    except (OSError, ValueError):
        return False


def run(command: list[str], aloud: bool = True) -> bool:
    """Runs a command in silence; where it fails, and `aloud`, shows the end of what it said."""
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode and aloud:
        print("\n".join(done.stdout.strip().splitlines()[-LAST_LINES:]), file=sys.stderr)
    return done.returncode == 0


def shown(path: Path) -> str:
    """A path as it is typed in the current folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def fail(sentence: str) -> int:
    """Says why it did not work; the exit status for it."""
    print(f"install.py: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(fail("stopped. Run it again: it goes on from where it was."))
