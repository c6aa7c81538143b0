"""`autograder shapes PATH... --call '...'`: shape comments of anyone's PyTorch code.

Your own code is run in this process, as importing it would; grading runs it in the sandbox.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.shapes.judge import ACCUSES, Verdict, judge
from autograder.shapes.match import results
from autograder.shapes.missing import write_missing
from autograder.shapes.plan import Plan, PlanError, plan
from autograder.shapes.recording import Execution, prepare, read_recording
from autograder.shapes.tracer import Stmt, trace
from autograder.shapes.wording import UNKNOWN

CLEAN, FOUND, UNREADABLE = 0, 1, 2
NO_CALL = (
    "no call says how to build and run it. Give one: --call 'Model(hidden)(x[batch_size, seq_len, "
    "hidden])', or write it into the file's docstring behind `Shapes:`, or into pyproject.toml."
)
MEMORY = 2**32  # bytes that the code may take
SKIPPED = {"build", "dist", "node_modules", "__pycache__", "venv", "env", "site-packages"}
MARK = "Shapes:"
NEARBY = "a tensor near this line has that shape"  # a doubt
NAME = re.compile(r"[^\W\d]\w*")
LIST = re.compile(r"[\[(]\d+(, ?\d+)*,?[\])]")  # sizes alone


@dataclass(frozen=True)
class Settings:
    """How to call what a file holds."""

    calls: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    setup: str = ""
    missing: bool = False


@dataclass(frozen=True)
class Source:
    """The text of a file or of a notebook's code cells, with what to run before it.

    listed: it was found in a folder, and nobody named it. cells: for a notebook, the first line of
    each code cell.
    """

    path: Path
    text: str
    settings: Settings
    setup: str = ""
    listed: bool = False
    cells: tuple[int, ...] = ()
    problem: str = ""

    def place(self, line: int) -> str:
        """Where a line is, as an editor can follow it."""
        if not self.cells:
            return f"{self.path}:{line}"
        cell = sum(first <= line for first in self.cells)
        return f"{self.path}:cell {cell}:{line - self.cells[cell - 1] + 1}"


@dataclass
class Report:
    """What came of one source. written: the comments that it lacked and now has. asked and
    recording: how it was called, and what was seen then."""

    source: Source
    verdicts: list[Verdict] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)  # line and sentence
    written: list[Verdict] = field(default_factory=list)
    asked: Plan | None = None
    recording: dict = field(default_factory=dict)


def main(argv: list[str] | None = None) -> int:
    """Runs the command; 0 where nothing is false or missing, 1 where something is, 2 on errors."""
    args = _parser().parse_args(argv)
    form = "json" if args.json else args.format
    try:
        found = sources(args.paths, Settings(tuple(args.call), tuple(args.where), args.setup))
    except (OSError, ValueError) as error:
        print(f"autograder shapes: {error}", file=sys.stderr)
        return UNREADABLE
    reports, skipped = [], 0
    for source in found:
        if not source.settings.calls and (args.skip or source.listed):
            skipped += 1
            continue
        missing = args.missing or source.settings.missing or args.write
        reports.append(_check(source, args.strict, missing, args.write))
    _print(reports, form, args.explain, skipped)
    if any(r.errors for r in reports):
        return UNREADABLE
    return FOUND if any(v.verdict in ACCUSES for r in reports for v in r.verdicts) else CLEAN


def _check(source: Source, strict: bool, missing: bool, write: bool) -> Report:
    """Runs and judges one source; whatever is wrong with it becomes a sentence."""
    report = Report(source)
    if source.problem or not source.settings.calls:
        report.errors.append((0, source.problem or NO_CALL))
        return report
    try:
        compile(source.setup, "setup", "exec")
    except (SyntaxError, ValueError) as error:
        number = getattr(error, "lineno", None) or 1
        line = "".join(source.setup.splitlines()[number - 1 : number]).strip()
        report.errors.append((0, f"the setup cannot be read: {error.args[0]}, `{line}`"))
        return report
    try:
        rules = dict(map(_rule, source.settings.where))
        asked = plan("; ".join(source.settings.calls), where=rules)
        job = prepare(source.text, asked, setup=source.setup)
        from autograder.shapes import record

        with record.in_bounds(MEMORY):
            recording = record.run(job)
        verdicts = judge(source.text, asked, recording, strict=strict)
    except (PlanError, SyntaxError, ValueError, RecursionError) as error:
        report.errors.append((getattr(error, "lineno", None) or 0, f"{error}"))
        return report
    report.errors = _raised(source, asked, recording)
    report.asked, report.recording = asked, recording
    if not recording["problem"]:
        report.verdicts = [v for v in verdicts if v.verdict != "missing" or missing and not v.clear]
    if write and not report.errors and source.path.suffix == ".py":
        text = write_missing(source.text, verdicts)
        source.path.write_text(text, encoding="utf-8")
        known = [v for v in verdicts if v.verdict == "missing" and UNKNOWN not in v.proposal]
        report.written = known
        report.verdicts = [v for v in report.verdicts if v not in known]
    return report


def _raised(source: Source, asked: Plan, recording: dict) -> list[tuple[int, str]]:
    """The exceptions of setup and calls, each with the line where it came up, once."""
    failed = recording["failed"]
    broken = [_told(f) for f in failed if f["file"] == "<setup>"]
    if broken or recording["problem"]:
        problem = recording["problem"]
        loaded = f"the code could not be loaded: {_why(problem, failed)}" if problem else ""
        return [(0, text) for text in (*(f"in the setup {b}" for b in broken), loaded) if text]
    stmts = trace(source.text).stmts
    found: dict[int, tuple[int, str]] = {}
    for run in recording["runs"]:
        error = run["error"]
        if error and run["call"] not in found:
            sizes = asked.sizes[run["config"]] if run["config"] < len(asked.sizes) else {}
            line = stmts[error["stmt"]].line if 0 <= error["stmt"] < len(stmts) else 0
            call = source.settings.calls[0] if len(asked.calls) == 1 else f"call {run['call'] + 1}"
            given = ", ".join(f"{k}={v}" for k, v in sizes.items())
            text = f"`{call}` raised {_why(error, failed)} (with {given})"
            found[run["call"]] = (line, text)
    return list(found.values())


def _told(failed: dict) -> str:
    text = failed["text"].splitlines()[0]
    return f"`{text}` raised {failed['type']}: {failed['message']}"


def _why(error: dict, failed: list[dict]) -> str:
    """An exception; of a name that is not defined also the statement that should have made it."""
    text = f"{error['type']}: {error['message']}"
    name = error["message"].split("'")[1::2][:1] if error["type"] == "NameError" else []
    made = [f for f in failed if f["file"] == "<source>" and name and _makes(f["text"], name[0])]
    return f"{text}, since {_told(made[0])}" if made else text


def _makes(text: str, name: str) -> bool:
    """Whether a statement that begins with the text was to define a name."""
    try:
        parts = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # it is cut off
        return False
    bound = {(a.asname or a.name).split(".")[0] for a in parts if isinstance(a, ast.alias)}
    stored = {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    defined = {n.name for n in parts if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return name in bound | stored | defined or "*" in bound


# --- what is printed ------------------------------------------------------------------------------
def _print(reports: list[Report], form: str, explain: bool, skipped: int) -> None:
    if form == "json":
        print(json.dumps([_row(r, v) for r in reports for v in r.verdicts], ensure_ascii=False))
    for report in reports:
        for line, text in report.errors:
            place = report.source.place(line) if line else str(report.source.path)
            if form == "github":
                print(f"::error file={report.source.path},line={max(line, 1)}::{_escaped(text)}")
            print(f"autograder shapes: {place}: {text}", file=sys.stderr)
    if form == "json":
        return
    every = [v for r in reports for v in r.verdicts]
    for report in reports:
        for verdict in report.verdicts:
            shown = verdict.verdict in ACCUSES or (explain and verdict.verdict == "cannot tell")
            if form == "github" and verdict.verdict in ACCUSES:
                level = "error" if verdict.verdict == "false" else "warning"
                text = _escaped(_sentence(verdict))
                print(f"::{level} file={report.source.path},line={verdict.line}::{text}")
            elif shown:
                print(f"{report.source.place(verdict.line)}: {_sentence(verdict)}")
            if shown and explain and form == "text":
                _explain(verdict, report)
        for verdict in report.written if form == "text" else ():
            print(f"{report.source.place(verdict.line)}: written: {verdict.proposal}")
    true = sum(v.verdict == "true" for v in every)
    unsure = sum(v.verdict == "cannot tell" for v in every)
    if form == "text" and (reports or skipped):
        print(
            f"{true} of {len(every)} shape comments and statements are true; {unsure} cannot tell"
        )
        if written := sum(len(r.written) for r in reports):
            print(f"{written} comment{'s are' if written > 1 else ' is'} written")
        if skipped:
            print(f"{skipped} files have no call and were passed over", file=sys.stderr)


def _explain(verdict: Verdict, report: Report) -> None:
    """Each condition of an accusation with what it rests on, up to the first that is in doubt."""
    said, doubts = _facts(verdict, report), {c: doubt for c, _, doubt in verdict.evidence if doubt}
    for condition in dict.fromkeys(condition for condition, *_ in verdict.evidence):
        if condition not in doubts:
            print(f"    yes  {condition}: {said[condition]}")
    for condition, doubt in doubts.items():
        more = f" ({said[NEARBY]})" if doubt == NEARBY and NEARBY in said else ""
        print(f"    no   {condition}: {doubt}{more}")


def _facts(verdict: Verdict, report: Report) -> dict[str, str]:
    """By condition what was seen: the comment, a line and what it made, sizes of names."""
    seen = _seen(report)
    own = [(s, run) for s, run in seen if s.line <= verdict.line <= s.end_line]
    if not own:
        return dict.fromkeys((c for c, *_ in verdict.evidence), "nothing was seen that doubts it")
    (stmt, run), configs = max(own, key=lambda pair: pair[0].line), report.asked.sizes
    given = configs[run.config] if run.config < len(configs) else {}
    names = dict.fromkeys(NAME.findall(verdict.comment))
    code = {n: run.size(n) for n in names if n not in given and run.size(n) is not None}
    known = [
        f"{', '.join(f'{n} = {sizes[n]}' for n in names if n in sizes)} by the {by}"
        for by, sizes in (("call", given), ("code", code))
        if names.keys() & sizes.keys()
    ]
    shapes = list(dict.fromkeys(results(stmt, run)))
    made = " and ".join(str(list(shape)) for shape in shapes)
    sizes = {**given, **code}
    text = NAME.sub(lambda n: str(sizes.get(n[0], n[0])), verdict.comment)
    lists = [found[0] for found in LIST.finditer(text)]
    read = [int(n) for n in re.findall(r"\d+", lists[0])] if len(lists) == 1 else None
    near = [s.line for s, first in seen if read and tuple(read) in results(s, first)]
    near = min(near, key=lambda line: abs(line - stmt.line), default=None)
    where = ", ".join(f"{name} = {size}" for name, size in given.items())
    line = f"line {_line(report, stmt.line)} makes {made}"
    said = {
        "surely a shape": f"`{verdict.comment}`",
        "surely about this tensor": f"{line} where {where}" if where else line,
        "every name is proven": "; ".join(known) or "by the other comments",
        "every reading is false": f"{f'it says {read} there, and ' if read else ''}none is {made}",
        "a slip explains it": _slip(read, shapes),
    }
    return said | ({NEARBY: f"line {_line(report, near)} makes {read}"} if near else {})


def _slip(read: list[int] | None, shapes: list[tuple[int, ...]]) -> str:
    """How what a comment says differs from what was made."""
    if read is None or len(shapes) != 1:
        return "it is near to what is made"
    (made,) = shapes
    if sorted(read) == sorted(made):
        return "the same sizes in another order"
    if len(read) == len(made):
        others = [str(i + 1) for i, (a, b) in enumerate(zip(read, made, strict=True)) if a != b]
        return f"another size stands in place {' and '.join(others)}"
    more = len(read) - len(made)
    return f"{abs(more)} dimension{'s' * (abs(more) > 1)} too {'many' if more > 0 else 'few'}"


def _seen(report: Report) -> list[tuple[Stmt, Execution]]:
    """The statements that made a tensor, each in its first run."""
    if report.asked is None or not report.recording:
        return []
    traced, asked = trace(report.source.text), report.asked
    runs = read_recording(report.recording, traced, len(asked.sizes) + bool(asked.public))
    first = [(s, runs.executions[s.id][0]) for s in traced.stmts if runs.executions.get(s.id)]
    return [(s, run) for s, run in first if results(s, run)]


def _line(report: Report, line: int) -> str:
    return report.source.place(line).rpartition(":")[2]


def _sentence(verdict: Verdict) -> str:
    return verdict.message.removeprefix(f"Line {verdict.line}: ")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _row(report: Report, verdict: Verdict) -> dict:
    keys = ("line", "statement", "comment", "verdict", "confidence", "message")
    return {"file": str(report.source.path)} | {k: getattr(verdict, k) for k in keys}


def _rule(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise PlanError(f"`{text}`: expected NAME=EXPRESSION, such as hidden=num_heads*head_size.")
    return name.strip(), value.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder shapes",
        description="Compares shape comments with the shapes that the code makes.",
        epilog="How to build and call the code stands in --call, in a docstring line "
        "`Shapes: Model(hidden)(x[batch, seq, hidden])`, or in pyproject.toml under "
        "[tool.autograder.shapes]. A line with `# shapes: ignore` is passed over.",
    )
    parser.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="files, notebooks or folders"
    )
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        help="how to build and call it: 'Model(hidden)(x[batch_size, seq_len, hidden])'; may be "
        "given several times; instead of what the files say",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="NAME=EXPRESSION",
        help="a size that follows from others: hidden=num_heads*head_size",
    )
    parser.add_argument("--setup", default="", metavar="CODE", help="Python to run before the file")
    parser.add_argument("--missing", action="store_true", help="name lines without a comment too")
    parser.add_argument(
        "--format", choices=("text", "json", "github"), default="text", help="default: text"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--explain", action="store_true", help="what each verdict rests on")
    parser.add_argument("--skip", action="store_true", help="pass over files without a call")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the comments that are missing into .py files; those that cannot be written "
        "are named",
    )
    parser.add_argument("--strict", action="store_true", help="name skipped steps too")
    return parser


# --- what is looked at: files, notebooks and folders, and how each is to be called ---------------
def sources(paths: list[Path], given: Settings) -> list[Source]:
    """The sources under the paths. Raises OSError for a path that is not there."""
    found = []
    for path in paths:
        if path.is_dir():
            found += [_read(p, given, listed=True) for p in _inside(path)]
        elif path.exists():
            found.append(_read(path, given))
        else:
            raise FileNotFoundError(f"{path}: there is no such file or folder.")
    return found


def _inside(folder: Path) -> list[Path]:
    return [
        path
        for kind in ("*.py", "*.ipynb")
        for path in sorted(folder.rglob(kind))
        if not any(p in SKIPPED or p.startswith(".") for p in path.relative_to(folder).parts)
    ]


def _read(path: Path, given: Settings, listed: bool = False) -> Source:
    settings, cells, prose = _of_project(path), (), ""
    try:
        raw = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            raw, cells, prose = _notebook(raw)
        told = calls_in(raw) + _marked(prose)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, KeyError, TypeError) as error:
        return Source(path, "", given, listed=listed, problem=f"it cannot be read: {error}")
    settings = replace(
        settings,
        calls=given.calls or told or settings.calls,
        where=given.where or settings.where,
        setup="\n".join(filter(None, (settings.setup, given.setup))),
    )
    return Source(path, raw, settings, _surroundings(path, settings.setup), listed, cells)


def calls_in(text: str) -> tuple[str, ...]:
    """The calls behind `Shapes:` in the docstrings of a module, its classes and its functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    docs = [ast.get_docstring(n) or "" for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    return tuple(call for doc in docs for call in _marked(doc))


def _marked(text: str) -> tuple[str, ...]:
    lines = [line.strip() for line in text.splitlines()]
    return tuple(s.removeprefix(MARK).strip(" `") for s in lines if s.startswith(MARK))


def _notebook(raw: str) -> tuple[str, tuple[int, ...], str]:
    """The code of a notebook, the first line of each cell, and its text."""
    lines: list[str] = []
    cells, prose = [], []
    for cell in json.loads(raw)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            prose.append(text)
            continue
        cells.append(len(lines) + 1)
        foreign = text.startswith("%%")
        lines += ["# " + s if foreign or s.startswith(("%", "!")) else s for s in text.split("\n")]
    return "\n".join(lines) + "\n", tuple(cells), "\n".join(prose)


def _surroundings(path: Path, setup: str) -> str:
    """Code that makes a file know its place, and its imports work: of neighbours, and relative."""
    folder, package = path.resolve().parent, []
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        package.insert(0, folder.name)
        folder = folder.parent
    places = [str(path.resolve().parent), str(folder)]
    lines = ["import sys", *(f"sys.path.insert(0, {p!r})" for p in dict.fromkeys(places))]
    if path.suffix == ".py":  # a notebook has no such name
        lines.append(f"__file__ = {str(path.resolve())!r}")
    if package:
        lines.append(f"__package__ = {'.'.join(package)!r}")
    return "\n".join([*lines, setup])


def _of_project(path: Path) -> Settings:
    """What the nearest pyproject.toml says under [tool.autograder.shapes]."""
    for folder in path.resolve().parents:
        file = folder / "pyproject.toml"
        if not file.exists():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: {error}") from None
        asked = table
        for name in ("tool", "autograder", "shapes"):
            asked = _of_kind(asked, dict, file).get(name, {})
        calls = _of_kind(_of_kind(asked, dict, file).get("calls", {}), dict, file)
        own = path.resolve().relative_to(folder).as_posix()
        return Settings(
            _texts(calls.get(own, []), file),
            _texts(asked.get("where", []), file),
            _of_kind(asked.get("setup", ""), str, file),
            bool(asked.get("missing", False)),
        )
    return Settings()


def _texts(value: object, file: Path) -> tuple[str, ...]:
    """One text or a list of them."""
    several = [value] if isinstance(value, str) else _of_kind(value, list, file)
    return tuple(_of_kind(each, str, file) for each in several)


def _of_kind(value, kind: type, file: Path):
    """The value, where it is of that kind; else a ValueError that says where it stands."""
    if not isinstance(value, kind):
        wanted = {dict: "a table", list: "a text or a list of texts", str: "a text"}[kind]
        raise ValueError(f"{file}: [tool.autograder.shapes] has {value!r} where {wanted} belongs.")
    return value


if __name__ == "__main__":
    sys.exit(main())
