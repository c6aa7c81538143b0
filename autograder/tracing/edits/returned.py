"""The line of what comes back, where the text alone says that nothing else can be wrong.

An argument is returned as it came in, or something that is no tensor where one belongs; or the
answer is one statement.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

import torch

from autograder.course.asking import Finding, Verdict, Where
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.say import listed, sentence
from autograder.tracing.text import (
    Text,
    alone,
    callee,
    function_around,
    own_nodes,
    root_of,
    stored_in,
)

AS_IT_CAME = "`{}` comes back as it was given"
THROWN_AWAY = "`{}` makes a new tensor, which is kept nowhere"
NO_TENSOR = "`{}` comes back where a tensor belongs"
NO_KEY = "`{}` is no key that is asked for"
CALLED = "`{}` is the call that this is about"
LEFT_IN = "hook left in"  # how a check ends that finds a hook in the model afterwards
OVERWRITTEN = "`{}` is another hook in each round, and only the last one is taken away"
PILED_UP = "`{}` runs with the hooks of all rounds before, too"
SAME_EACH_ROUND = "`{}` takes away the same hook in each round, and leaves the others in"
RUNS_NOT = "`{}` does not run where the model raises an error"
COVERS = "`{}` covers NaN on the way forward alone"
OF_NAN = ("nan_to_num", "nan_to_num_", "isnan")
HALF = "`{}` leaves out half of each complex number"
QUOTED = "`{}` is what this is about"
TAKEN_AWAY = "`{}` takes the hook away before the model runs"
BEHIND_IT = "`{}` runs behind the `with`, at the end of which the hook is taken away"
TENSORS = {name for name in dir(torch.Tensor) if not name.startswith("_")}
# A name in a sentence: in backticks, or written as code alone is.
NAMED = re.compile(r"`(?:\w{1,40}\.){0,4}(\w{1,40})(?:\([^`]{0,80}\))?`|\b(\w{1,20}_\w{1,20})\b")
DOTTED = re.compile(r"`(\w{1,40}(?:\.\w{1,40}){1,4})`")
MEANT = {"svdvals": "singular value", "svd": "singular value"}  # calls, by what they give
SIGN = re.compile(r"[\W_]")
LIST = "a list comes back where one tensor belongs"


def at_its_return(finding: Finding, asked: WrongAnswer, place: int | None) -> Finding:
    """A finding without a line, with that of what is returned, where it must be that one.

    place: the call that is looked at.
    """
    text = Text(asked.source)
    if (
        finding.where is None
        and finding.verdict == Verdict.ERROR
        and (early := _removed_too_early(text))
    ):
        line, how = early
        message = f"{finding.message} {sentence(how)}"
        where = Where(last_right=None, first_wrong=line, how=how)
        return replace(finding, message=message, where=where)
    if finding.where is not None or finding.verdict != Verdict.WRONG or place is None:
        return finding
    got, wanted = asked.outcomes[place], asked.known.expected[place]
    if got.error is not None or wanted.error is not None:
        return finding
    one = alone(text)
    told = (
        _thrown_away(text) or _removed_too_early(text) or _of_a_key(text, got.value, wanted.value)
    )
    told = told or _told(_last(text, asked.exercise.name), got.value, wanted.value, text)
    line, how = told if told is not None else (one.lineno if one is not None else None, "")
    if line is None:
        return finding
    where = Where(last_right=None, first_wrong=line, how=how)
    return replace(finding, where=where, line=line, statement=text.statement(line))


def at_its_remove(finding: Finding, asked: WrongAnswer) -> Finding:
    """A finding without a line that a hook stays in, also where the model raises, with the one line
    that takes hooks away, where that runs only if nothing is raised."""
    text = Text(asked.source)
    if finding.where is not None or not finding.check.endswith(LEFT_IN):
        return finding
    ends = {n for t in text.nodes if isinstance(t, ast.Try) for n in t.finalbody}
    inside = {each for n in ends for each in ast.walk(n)}
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n) == "remove"]
    over, piled = _overwritten_handle(text, calls), _with_those_before(text, calls)
    if (same := _same_each_round(text, calls)) is not None:
        line, how = same.lineno, SAME_EACH_ROUND.format(text.of(same))
    elif over is not None:
        line, how = over.lineno, OVERWRITTEN.format(text.of(over.targets[0]))
    elif piled is not None:
        line, how = piled.lineno, PILED_UP.format(text.of(piled))
    elif len(calls) == 1 and calls[0] not in inside:
        line, how = calls[0].lineno, RUNS_NOT.format(text.of(calls[0]))
    else:
        return finding
    where = Where(last_right=None, first_wrong=line, how=how)
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _same_each_round(text: Text, removes: list[ast.Call]) -> ast.Call | None:
    """The call in a loop that takes a hook away and reads nothing of what the loop goes through."""
    for loop in (n for n in text.nodes if isinstance(n, ast.For)):
        inside = [n for each in loop.body for n in ast.walk(each)]
        own = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        read = {n.id for n in inside if isinstance(n, ast.Name)}
        taken = [n for n in inside if n in removes]
        if len(taken) == 1 and not own & read and not any(map(_is_a_hook, inside)):
            return taken[0]
    return None


def _overwritten_handle(text: Text, removes: list[ast.Call]) -> ast.Assign | None:
    """The statement in a loop that keeps each round's hook by one name, alone or as a list, which
    is taken away once, behind the loop."""
    removed = {text.of(n.func.value) for n in removes if isinstance(n.func, ast.Attribute)}
    loops = [n for n in text.nodes if isinstance(n, ast.For)]
    removed |= {text.of(n.iter) for n in loops if text.of(n.target) in removed}
    for loop in loops:
        inside = [n for each in loop.body for n in ast.walk(each)]
        kept = [n for n in inside if isinstance(n, ast.Assign) and _is_a_hook(n.value)]
        kept = [n for n in kept if text.of(n.targets[0]) in removed]
        if len(kept) == 1 and not any(n in inside for n in removes):
            return kept[0]
    return None


def _with_those_before(text: Text, removes: list[ast.Call]) -> ast.stmt | None:
    """The statement of a loop behind the one that puts a hook into a list, which is emptied behind
    the loop alone."""
    for loop in (n for n in text.nodes if isinstance(n, ast.For)):
        if any(n in removes for each in loop.body for n in ast.walk(each)):
            continue
        for one, after in itertools.pairwise(loop.body):
            put = one.value if isinstance(one, ast.Expr) else None
            added = isinstance(put, ast.Call) and callee(put) == "append" and len(put.args) == 1
            runs = any(isinstance(n, ast.Call) for n in ast.walk(after))
            if added and _is_a_hook(put.args[0]) and runs:
                return after
    return None


def _is_a_hook(node: ast.expr) -> bool:
    """Whether an expression puts a hook in, or is a list of one such."""
    one = node.elts[0] if isinstance(node, ast.List) and len(node.elts) == 1 else node
    return isinstance(one, ast.Call) and callee(one).endswith("_hook")


def at_what_it_names(finding: Finding, asked: WrongAnswer) -> Finding:
    """A finding without a line whose words name one function that the answer calls, with the line
    of that call, where it is the only one."""
    if finding.where is not None or finding.verdict != Verdict.WRONG:
        return finding
    text = Text(asked.source)
    words = finding.message
    found = the_call_named(words, text) or the_text_named(words, text) or _the_is_named(words, text)
    found = found or _the_argument_named(words, text) or _the_text_meant(words, text)
    how = CALLED if isinstance(found, ast.Call) else QUOTED
    if found is None:
        found, how = _that_covers_nan(words, text), COVERS
    if found is None:
        found, how = _that_halves(words, text), HALF
    if found is None:
        return finding
    line, where = found.lineno, Where(None, found.lineno, "", how.format(text.of(found)))
    return replace(finding, where=where, line=line, statement=text.statement(line))


def the_call_named(words: str, text: Text) -> ast.Call | None:
    """The only call of what a sentence names; None where there are more, or none."""
    named = {one or other for one, other in NAMED.findall(words)}
    aliases = {
        target.id
        for n in text.nodes
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Attribute)
        for target in n.targets
        if isinstance(target, ast.Name) and n.value.attr in named and len(text.made(target.id)) == 1
    }
    named |= aliases | {name for name, meant in MEANT.items() if meant in words.lower()}
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n) in named]
    return calls[0] if len(calls) == 1 else None


def _that_covers_nan(words: str, text: Text) -> ast.Call | None:
    """The one call that puts numbers in the place of NaN, where the gradient is NaN still."""
    if not re.search(r"gradient\b[^.]*\bNaN", words):
        return None
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n) in OF_NAN]
    return calls[0] if len({n.lineno for n in calls}) == 1 else None


def _that_halves(words: str, text: Text) -> ast.Attribute | None:
    """The one place that takes a half of complex numbers, where a sentence is about the other."""
    if "imaginary" not in words:
        return None
    halves = [n for n in text.nodes if isinstance(n, ast.Attribute) and n.attr in ("real", "imag")]
    return halves[0] if len(halves) == 1 else None


def the_text_named(words: str, text: Text) -> ast.Constant | None:
    """The only text in quotes that is a name in a sentence, or begins with one and a point, as
    "c_proj.weight" does; None where there are more, or none."""
    named = {other for _, other in NAMED.findall(words)} - {""}  # in backticks stand variables
    texts = [n for n in text.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    texts = [n for n in texts if n.value.partition(".")[0] in named]
    return texts[0] if len(texts) == 1 else None


def _the_text_meant(words: str, text: Text) -> ast.Constant | None:
    """The only text in quotes that has the letters of a name in a sentence, and other signs between
    them: "out_proj_bias" for `out_proj.bias`; None where there are more, or none."""
    named = {SIGN.sub("", name): name for name in DOTTED.findall(words)}
    texts = [n for n in text.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    letters = [(n, SIGN.sub("", n.value)) for n in texts]
    found = [n for n, own in letters if n.value != named.get(own, n.value)]
    return found[0] if len(found) == 1 else None


def _the_argument_named(words: str, text: Text) -> ast.keyword | None:
    """The only argument by a name that a sentence speaks of; None where there are more, or none."""
    named = {one or other for one, other in NAMED.findall(words)}
    found = [n for n in text.nodes if isinstance(n, ast.keyword) and n.arg in named]
    return found[0] if len(found) == 1 else None


def _the_is_named(words: str, text: Text) -> ast.Compare | None:
    """The only comparison by `is` of what is not None, where a sentence speaks of it."""
    compared = (n for n in text.nodes if isinstance(n, ast.Compare) and "`is`" in words)
    found = [
        n
        for n in compared
        if isinstance(n.ops[0], ast.Is | ast.IsNot)
        and not isinstance(n.comparators[0], ast.Constant)
    ]
    return found[0] if len(found) == 1 else None


def _removed_too_early(text: Text) -> tuple[int, str] | None:
    """The line that takes a hook away right behind the one that gave it, before anything runs."""
    for block in (n.body for n in text.nodes if hasattr(n, "body") and isinstance(n.body, list)):
        for place, node in enumerate(block):
            value = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(value, ast.Call) or not callee(value).endswith("_hook"):
                continue
            removed = {f"{text.of(target)}.remove()" for target in node.targets}
            for behind in block[place + 1 :]:
                if isinstance(behind, ast.Expr) and text.of(behind) in removed:
                    return behind.lineno, TAKEN_AWAY.format(text.of(behind))
                if any(_may_run_it(n) for n in ast.walk(behind)):
                    break
    return _behind_its_block(text)


def _may_run_it(node: ast.AST) -> bool:
    """Whether a call may run a model: not of a tensor's own method."""
    return isinstance(node, ast.Call) and callee(node) not in TENSORS


def _behind_its_block(text: Text) -> tuple[int, str] | None:
    """The line that calls what a hook hangs on, behind the `with` that takes the hook away; what
    is called is given to the function, and called nowhere else in it."""
    for block in (n for n in text.nodes if isinstance(n, ast.With)):
        hooks = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
        function = function_around(text, block.lineno)
        if function is None or not any(callee(hook).endswith("_hook") for hook in hooks):
            continue
        given = {a.arg for a in function.args.args}
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
        runs = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id in given]
        if runs and all(n.lineno > block.end_lineno for n in runs):
            return runs[0].lineno, BEHIND_IT.format(text.of(runs[0]))
    return None


def _thrown_away(text: Text) -> tuple[int, str] | None:
    """The line of the one statement that calls a layer and keeps nothing of what it gives."""
    called = [n for n in text.nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    found = [n for n in called if _is_layer(text, n.value.func)]
    how = THROWN_AWAY.format(text.of(found[0].value)) if found else ""
    return (found[0].lineno, how) if len(found) == 1 else None


def beside_a_key(finding: Finding, asked: WrongAnswer, place: int | None) -> Finding:
    """A finding that other keys come back, with the line of the one that is not asked for beside
    another that the steps tell: what is wrong there is another thing."""
    text, where = Text(asked.source), finding.where
    if place is None or where is None or not where.how or finding.verdict != Verdict.WRONG:
        return finding
    told = _of_a_key(text, asked.outcomes[place].value, asked.known.expected[place].value)
    if told is None or told[0] == where.first_wrong:
        return finding
    parts = [(line, sentence(how)) for line, how in sorted([(where.first_wrong, where.how), told])]
    message = f"Two things are wrong. {listed(parts)} {finding.message}"
    return replace(finding, message=message)


def _of_a_key(text: Text, got, wanted) -> tuple[int, str] | None:
    """The line of the one key that comes back and is not asked for, where it is written out."""
    if not isinstance(got, Mapping) or not isinstance(wanted, Mapping):
        return None
    more = set(map(str, got)) - set(map(str, wanted))
    lines = [n.lineno for n in text.nodes if isinstance(n, ast.Constant) and n.value in more]
    found = len(more) == len(lines) == 1
    return (lines[0], NO_KEY.format(*more)) if found else None


def _is_layer(text: Text, func: ast.expr) -> bool:
    """Whether `self.name` is set to a layer of the library somewhere."""
    made = [
        n.value for n in text.nodes if isinstance(n, ast.Assign) if text.of(func) in _own(text, n)
    ]
    layers = (n.func for n in made if isinstance(n, ast.Call))
    is_own = isinstance(func, ast.Attribute) and root_of(func) == "self"
    return is_own and any(text.of(each).startswith("nn.") for each in layers)


def _own(text: Text, node: ast.Assign) -> list[str]:
    return [text.of(target) for target in node.targets]


def _last(text: Text, name: str) -> ast.Return | None:
    """The one `return` of the function that is asked for, of its `forward` if it is a class."""
    found = [n for n in text.nodes if isinstance(n, ast.FunctionDef)]
    inside = [n.body for n in text.nodes if isinstance(n, ast.ClassDef) and n.name == name]
    own = [f for f in found if f.name == name]
    own = own or [f for f in found if f.name == "forward" and any(f in body for body in inside)]
    ends = [n for f in own for n in own_nodes(f) if isinstance(n, ast.Return)]
    return ends[0] if len(own) == 1 and len(ends) == 1 else None


def _told(last: ast.Return | None, got, wanted, text: Text) -> tuple[int, str] | None:
    """The line of a `return` and what is wrong with it; None where that may stand elsewhere."""
    if last is None or last.value is None:
        return None
    value = last.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    gave = got if isinstance(got, tuple | list) and len(parts) > 1 else (got,)
    asked = wanted if isinstance(wanted, tuple | list) and len(parts) > 1 else (wanted,)
    if len(parts) != len(gave) or len(gave) != len(asked):
        return None
    for part, own, right in zip(parts, gave, asked, strict=True):
        if not isinstance(right, torch.Tensor):
            continue
        if isinstance(own, torch.Tensor):
            if isinstance(part, ast.Name) and _is_as_given(part, last, text):
                return last.lineno, AS_IT_CAME.format(part.id)
        elif isinstance(part, ast.Constant | ast.JoinedStr):
            return last.lineno, NO_TENSOR.format(text.of(part))
        elif isinstance(own, list) and isinstance(part, ast.Name):
            return last.lineno, LIST
    return None


def _is_as_given(part: ast.Name, last: ast.Return, text: Text) -> bool:
    """Whether a name is an argument that nothing in its function gives another value or changes,
    and of which no statement makes something that it throws away."""
    function = function_around(text, last.lineno)
    given = [a.arg for a in function.args.args] if function is not None else []
    if part.id not in given or part.id in stored_in(function):
        return False
    inside = list(own_nodes(function))
    changing = [n for n in inside if isinstance(n, ast.Expr)]
    changing += [n for n in inside if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    used = (n for each in changing for n in ast.walk(each))
    return not any(isinstance(n, ast.Name) and n.id == part.id for n in used)
