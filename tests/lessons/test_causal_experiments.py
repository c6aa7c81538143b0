"""Lesson 12: right programs in many styles pass; wrong ones are told which mistake they made."""

import re
import textwrap

import pytest

from autograder.course.calls import Draw
from autograder.course.course import Course
from tests.conftest import ROOT
from tests.forms import first_of
from tests.lessons.helper import names

SIGNATURES = {
    "causal.clean": "final_log_prob(model, input_ids)",
    "causal.cut": "without_head(z, num_heads, head, position)",
    "causal.lesion": "lesioned_log_prob(model, input_ids, layer, head, position)",
    "causal.mean": "with_mean(z, reference, num_heads, head)",
    "causal.one_and_all": "one_and_all(model, input_ids, layer, head)",
    "causal.grid": "lesion_grid(model, input_ids)",
}
EARLIER = """
def final_log_prob(model, input_ids):
    with torch.no_grad():
        log_probs = F.log_softmax(model(input_ids).logits[:, -2], dim=-1)
    return log_probs.gather(-1, input_ids[:, -1:])[:, 0]


def without_head(z, num_heads, head, position):
    z = z.clone()
    z.view(*z.shape[:2], num_heads, -1)[:, position, head] = 0
    return z
"""
NEEDS = {
    "causal.lesion": EARLIER,
    "causal.one_and_all": EARLIER,
    "causal.grid": EARLIER,
}


def program(task: str, body: str) -> str:
    """The function of a task with this body."""
    body = textwrap.dedent(body).strip()
    return f"def {SIGNATURES[task]}:\n" + textwrap.indent(body, "    ")


# --- lesions -------------------------------------------------------------------------------------
LESION = """
def hook(module, inputs):
    {knife}
    return {answer}
handle = model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook)
{run}
"""
TRY = "try:\n    return final_log_prob(model, input_ids)\nfinally:\n    handle.remove()"


def lesion(
    knife="z = without_head(inputs[0], model.config.n_head, head, position)",
    answer="(z, *inputs[1:])",
    run=TRY,
):
    return LESION.format(knife=knife, answer=answer, run=run)


BOTH = """
n, s = model.config.n_head, input_ids.shape[1]
module = model.transformer.h[layer].attn.c_proj
def run(positions):
    def hook(module, inputs):
        z = inputs[0].clone()
        for p in positions:
            z = without_head(z, n, {head}, p)
        return (z, *inputs[1:])
    handle = module.register_forward_pre_hook(hook)
    out = final_log_prob(model, input_ids)
    handle.remove()
    return out
clean = final_log_prob(model, input_ids)
one, every = run({one}), run({every})
return {answer}
"""


def both(head="head", one="[-2]", every="range(s)", answer="(one - clean, every - clean)"):
    return BOTH.format(head=head, one=one, every=every, answer=answer)


GRID = """
n, d = model.config.n_head, model.config.n_embd // model.config.n_head
def measure():
    with torch.no_grad():
        logits = model(input_ids).logits
    {measure}
clean = measure()
out = torch.zeros(model.config.n_layer, n)
handles = []
for layer, block in enumerate(model.transformer.h):
    for head in range(n):
        def hook(module, inputs{bound}):
            z = inputs[0].clone()
            z[:, {where}, head * d:(head + 1) * d] = 0
            {give}
        handles.append(block.attn.c_proj.register_forward_pre_hook(hook))
        out[layer, head] = {effect}
        {tidy}
{end}
return {answer}
"""
MEASURE = (
    "lp = F.log_softmax(logits[:, :-1], -1).gather(-1, input_ids[:, 1:, None]); return lp.mean()"
)


def grid(measure=MEASURE, **parts):
    """The grid in two loops, with some of its parts written otherwise."""
    usual = {
        "bound": "",
        "where": ":",
        "give": "return (z, *inputs[1:])",
        "effect": "measure() - clean",
        "tidy": "handles.pop().remove()",
        "end": "",
        "answer": "out",
    }
    return GRID.format(measure=measure, **{**usual, **parts})


RIGHT = {
    "causal.clean": {
        "gather": """
            with torch.no_grad():
                lp = model(input_ids).logits.log_softmax(-1)
            return lp[:, -2].gather(1, input_ids[:, -1:]).squeeze(1)
        """,
        "indices": """
            lp = F.log_softmax(model(input_ids).logits[:, -2].detach(), dim=1)
            return lp[torch.arange(len(lp)), input_ids[:, -1]]
        """,
        "cross entropy": """
            with torch.no_grad():
                logits = model(input_ids).logits
            return -F.cross_entropy(logits[:, -2], input_ids[:, -1], reduction="none")
        """,
        "without the last token": """
            with torch.no_grad():
                lp = F.log_softmax(model(input_ids[:, :-1]).logits[:, -1], dim=-1)
            return torch.stack([row[i] for row, i in zip(lp, input_ids[:, -1])])
        """,
        "library": """
            from transformer_lm.ablation import target_log_probs
            return target_log_probs(model, input_ids)[:, -1]
        """,
    },
    "causal.cut": {
        "clone and view": """
            b, s, hidden = z.shape
            out = z.clone().view(b, s, num_heads, -1)
            out[:, position, head] = 0
            return out.view(b, s, hidden)
        """,
        "slices": """
            size = z.shape[-1] // num_heads
            out = z.detach().clone()
            out[:, position, head * size:(head + 1) * size] = 0
            return out
        """,
        "a mask": """
            mask = torch.ones(z.shape[1], num_heads, 1)
            mask[position, head] = 0
            return (z.unflatten(-1, (num_heads, -1)) * mask).flatten(2)
        """,
        "list of heads": """
            parts = [p.clone() for p in z.chunk(num_heads, dim=-1)]
            parts[head][:, position] = 0.0
            return torch.cat(parts, dim=-1)
        """,
        "masked_fill": """
            size = z.shape[-1] // num_heads
            where = torch.zeros_like(z[0], dtype=torch.bool)
            where[position, head * size:head * size + size] = True
            return z.masked_fill(where, 0)
        """,
    },
    "causal.lesion": {
        "finally": lesion(),
        "a tuple of one": lesion(answer="(z,)"),
        "the tensor alone": lesion(answer="z"),
        "library": """
            from transformer_lm.ablation import ablate
            with ablate(model, [(layer, head)], positions=[position]):
                return final_log_prob(model, input_ids)
        """,
        "on the spot": lesion(
            knife="b, s, n = inputs[0].shape; z = inputs[0].clone().view(b, s, "
            "model.config.n_head, -1); z[:, position, head] = 0; z = z.view(b, s, n)"
        ),
        "in place": lesion(
            knife="z = inputs[0].view(*inputs[0].shape[:2], model.config.n_head, -1); "
            "z[:, position, head, :] = 0; z = z.view(*inputs[0].shape)",
            answer="(z, *inputs[1:])",
        ),
    },
    "causal.mean": {
        "slices": """
            d = z.shape[-1] // num_heads
            out = z.clone()
            out[:, :, head * d:(head + 1) * d] = reference[:, :, head * d:(head + 1) * d]\\
                .mean(dim=(0, 1))
            return out
        """,
        "heads apart": """
            out = z.clone().unflatten(-1, (num_heads, -1))
            ref = reference.unflatten(-1, (num_heads, -1))
            out[:, :, head] = ref[:, :, head].flatten(0, 1).mean(0)
            return out.flatten(2)
        """,
        "chunks": """
            parts = list(z.chunk(num_heads, -1))
            mean = reference.chunk(num_heads, -1)[head].mean((0, 1))
            parts[head] = mean.expand(*z.shape[:2], -1)
            return torch.cat(parts, -1)
        """,
        "two means": """
            m = reference.mean(0).mean(0)
            d = z.shape[-1] // num_heads
            mask = torch.zeros(z.shape[-1])
            mask[head * d:head * d + d] = 1
            return z * (1 - mask) + m * mask
        """,
        "double": """
            out = z.double().clone()
            d = z.shape[-1] // num_heads
            for f in range(head * d, (head + 1) * d):
                out[..., f] = reference[..., f].double().mean()
            return out
        """,
    },
    "causal.one_and_all": {
        "two runs": both(),
        "slices": both(one="[s - 2]", every="list(range(-s, 0))"),
        "up to -2 is all": both(every="range(s - 1)"),
        "library": """
            from transformer_lm.ablation import ablate
            clean = final_log_prob(model, input_ids)
            with ablate(model, [(layer, head)], positions=[-2]):
                one = final_log_prob(model, input_ids)
            with ablate(model, [(layer, head)]):
                every = final_log_prob(model, input_ids)
            return one - clean, every - clean
        """,
        "a list": both(answer="[one - clean, every - clean]"),
        "one tensor": both(answer="torch.stack([one - clean, every - clean])"),
    },
    "causal.grid": {
        "two loops": grid(),
        "library": """
            from transformer_lm.ablation import ablation_grid
            return ablation_grid(model, input_ids)
        """,
        "default argument": grid(bound=", head=head", end="for h in handles: h.remove()"),
        "cross entropy": grid(
            "return -F.cross_entropy(logits[:, :-1].transpose(1, 2), input_ids[:, 1:])"
        ),
        "losses": grid(
            "return -model(input_ids, labels=input_ids).loss.detach()",
        ),
    },
}

WRONG = {
    "causal.clean": [
        (name, f"lp = {lp}\nreturn {answer}")
        for name, lp, answer in (
            (
                "clean.position -1",
                "model(input_ids).logits.log_softmax(-1)[:, -1]",
                "lp.gather(1, input_ids[:, -1:])[:, 0]",
            ),
            (
                "clean.log-softmax axis",
                "model(input_ids).logits.log_softmax(1)[:, -2]",
                "lp.gather(1, input_ids[:, -1:])[:, 0]",
            ),
            (
                "clean.log-softmax axis",
                "model(input_ids).logits[:, -2].log_softmax(0)",
                "lp.gather(1, input_ids[:, -1:])[:, 0]",
            ),
            (
                "clean.probability",
                "model(input_ids).logits.softmax(-1)[:, -2]",
                "lp.gather(1, input_ids[:, -1:])[:, 0]",
            ),
            (
                "clean.logit",
                "model(input_ids).logits[:, -2]",
                "lp.gather(1, input_ids[:, -1:])[:, 0]",
            ),
            (
                "clean.best token",
                "model(input_ids).logits.log_softmax(-1)[:, -2]",
                "lp.max(-1).values",
            ),
            (
                "clean.another token",
                "model(input_ids).logits.log_softmax(-1)[:, -2]",
                "lp.gather(1, input_ids[:, -2:-1])[:, 0]",
            ),
        )
    ],
    "causal.cut": [
        (
            "cut.in place",
            "b, s, n = z.shape\nz.view(b, s, num_heads, -1)[:, position, head] = 0\nreturn z",
        ),
        *[
            (
                name,
                f"b, s, n = z.shape\nout = z.clone().view({view})\nout[{where}] = 0\n"
                "return out.view(b, s, n)",
            )
            for name, view, where in (
                ("cut.all positions", "b, s, num_heads, -1", ":, :, head"),
                ("cut.all heads", "b, s, num_heads, -1", ":, position"),
                ("cut.another head", "b, s, num_heads, -1", ":, position, head - 1"),
                ("cut.another position", "b, s, num_heads, -1", ":, position - 1, head"),
                ("cut.interleaved", "b, s, -1, num_heads", ":, position, :, head"),
                ("cut.heads before tokens", "b, num_heads, s, -1", ":, head, position"),
            )
        ],
        (
            "cut.four axes",
            "out = z.clone().unflatten(-1, (num_heads, -1))\n"
            "out[:, position, head] = 0\nreturn out",
        ),
        *[
            (
                name,
                f"d = z.shape[-1] // num_heads\nout = z.clone()\nout[:, {where}] = 0\nreturn out",
            )
            for name, where in (
                ("cut.to the end", "position, head * d:"),
                ("cut.from the beginning", "position, :(head + 1) * d"),
                ("cut.one feature", "position, head"),
                ("cut.one feature too many", "position, head * d:(head + 1) * d + 1"),
                ("cut.count for size", "position, head * num_heads:(head + 1) * num_heads"),
                ("cut.from there on", "position:, head * d:(head + 1) * d"),
                ("cut.always -2", "-2, head * d:(head + 1) * d"),
            )
        ],
    ],
    "causal.lesion": [
        ("lesion.tuple(t, *rest)", lesion(answer="tuple(z, *inputs[1:])")),
        ("lesion.nothing changed", lesion(answer="None")),
        (
            "lesion.nothing changed",
            lesion(knife="z = inputs[0]; without_head(z, model.config.n_head, head, position)"),
        ),
        ("lesion.position -1 for -2", lesion().replace("position)", "position + 1)")),
        ("lesion.all heads", lesion(knife="z = inputs[0].clone(); z[:, position] = 0")),
        (
            "lesion.all positions",
            lesion(
                knife="z = inputs[0].clone().unflatten(-1, (model.config.n_head, -1)); "
                "z[:, :, head] = 0; z = z.flatten(2)"
            ),
        ),
        ("lesion.another head", lesion().replace("head, position)", "head - 1, position)")),
        ("lesion.probability", lesion().replace("input_ids)\n", "input_ids).exp()\n")),
        ("causal.lesion.hook left in", lesion(run="return final_log_prob(model, input_ids)")),
        (
            "causal.lesion.hook left in",
            lesion(run="out = final_log_prob(model, input_ids)\nreturn out"),
        ),
        (
            "causal.lesion.model changed",
            lesion(
                run="out = final_log_prob(model, input_ids)\nhandle.remove()\n"
                "model.transformer.ln_f.bias.data += 1\nreturn out"
            ),
        ),
        ("lesion.always -2", lesion().replace("position)", "-2)")),
        ("lesion.last layer", lesion().replace("h[layer]", "h[-1]")),
        ("lesion.before c_attn", lesion().replace("c_proj", "c_attn")),
    ],
    "causal.mean": [
        (
            name,
            f"d = z.shape[-1] // num_heads\npart = slice(head * d, head * d + d)\n"
            f"out = {out}\nout[:, :, {where}] = {mean}\nreturn out",
        )
        for name, out, where, mean in (
            ("mean.in place", "z", "part", "reference[:, :, part].mean((0, 1))"),
            ("mean.of the input itself", "z.clone()", "part", "z[:, :, part].mean((0, 1))"),
            ("mean.by position", "z.clone()", "part", "reference[:, :, part].mean(0)"),
            ("mean.one number", "z.clone()", "part", "reference[:, :, part].mean()"),
            ("mean.all features as one", "z.clone()", "part", "reference.mean()"),
            ("mean.zero", "z.clone()", "part", "0"),
            ("mean.all heads", "z.clone()", ":", "reference.mean((0, 1))"),
            ("mean.sum", "z.clone()", "part", "reference[:, :, part].sum((0, 1))"),
            ("mean.of one sequence", "z.clone()", "part", "reference[0, :, part].mean(0)"),
            ("mean.of the last token", "z.clone()", "part", "reference[:, -1, part].mean(0)"),
        )
    ],
    "causal.one_and_all": [
        ("effects.sign", both(answer="(clean - one, clean - every)")),
        ("effects.not subtracted", both(answer="(one, every)")),
        ("effects.swapped", both(answer="(every - clean, one - clean)")),
        ("effects.position -1 for -2", both(one="[-1]")),
        ("effects.one position twice", both(every="[-2]")),
        ("effects.position left out of all", both(every="range(s - 2)")),
        ("effects.another head", both(head="(head + 1) % n")),
        ("effects.measured against the first lesion", both(answer="(one - clean, every - one)")),
        ("causal.one_and_all.hook left in", both().replace("    handle.remove()\n", "")),
        (
            "effects.added up",
            both(answer="(one - clean, sum(run([p]) - clean for p in range(s)))"),
        ),
        ("effects.ratio", both(answer="(one / clean, every / clean)")),
        (
            "effects.probabilities",
            both(answer="(one.exp() - clean.exp(), every.exp() - clean.exp())"),
        ),
    ],
    "causal.grid": [
        (
            "grid.hook left in",
            grid(bound=", head=head", tidy="", end="for h in handles: h.remove()"),
        ),
        ("grid.hook left in", grid(tidy="", end="for h in handles: h.remove()")),
        ("grid.sign", grid(effect="clean - measure()")),
        ("grid.not subtracted", grid(effect="measure()")),
        ("grid.heads and layers swapped", grid(answer="out.T")),
        ("grid.one position", grid(where="-2")),
        ("grid.nothing changed", grid(give="pass")),
        ("grid.summed", grid(MEASURE.replace("mean()", "sum()"))),
        ("grid.last token alone", grid(MEASURE.replace("lp.mean()", "lp[:, -1].mean()"))),
        ("grid.first item alone", grid(MEASURE.replace("lp.mean()", "lp[0].mean()"))),
        ("grid.probabilities", grid(MEASURE.replace("lp.mean()", "lp.exp().mean()"))),
        (
            "grid.logits",
            grid(MEASURE.replace("F.log_softmax(logits[:, :-1], -1)", "logits[:, :-1]")),
        ),
        ("grid.log-softmax axis", grid(MEASURE.replace("[:, :-1], -1)", "[:, :-1], 1)"))),
        ("grid.absolute values", grid(effect="(measure() - clean).abs()")),
        ("grid.relative", grid(effect="measure() / clean - 1")),
    ],
}


@pytest.mark.parametrize("seed", first_of(3, 4))
@pytest.mark.parametrize(("task", "style"), [(t, s) for t in RIGHT for s in RIGHT[t]])
def test_a_right_program_passes_in_any_style(task, style, seed):
    source = program(task, RIGHT[task][style])
    assert names(task, source, seed, NEEDS.get(task, "")) == []


WRONG_ONES = [(t, i) for t in WRONG for i in range(len(WRONG[t]))]


@pytest.mark.parametrize(("task", "place"), WRONG_ONES)
def test_a_wrong_program_is_told_which_mistake_it_made(task, place):
    expected, body = WRONG[task][place]
    found = names(task, program(task, body), 5, NEEDS.get(task, ""))
    assert found == [expected]


@pytest.mark.parametrize("task", ["causal.cut", "causal.lesion", "causal.mean"])
def test_the_first_and_the_last_head_are_cut_whatever_the_seed(task):
    exercise = Course.at(ROOT).exercises[task]
    for seed in range(5):
        first, last = (call.says for call in exercise.cases(Draw(seed))[:2])
        assert re.search(r"head 0\b", first)
        heads, head = (int(re.search(p, last)[1]) for p in (r"(\d+) heads", r"head (\d+)"))
        assert head == heads - 1


@pytest.mark.parametrize("seed", first_of(*range(3)))
def test_a_program_that_forgets_which_head_is_seen(seed):
    for head in ("0", "-1"):
        body = "d = z.shape[-1] // num_heads\nout = z.clone().unflatten(-1, (num_heads, d))\n"
        body += f"out[:, position, {head}] = 0\nreturn out.flatten(2)"
        assert names("causal.cut", program("causal.cut", body), seed)
