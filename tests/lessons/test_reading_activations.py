"""Lesson 11: right programs in many styles pass; wrong ones are told which mistake they made."""

import textwrap

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

SIGNATURES = {
    "activations.text": "count_text(text, input_ids)",
    "activations.one_hook": "tap(model, input_ids, layer)",
    "activations.all_layers": "tap_all(model, input_ids)",
    "activations.split": "heads_of(wide, num_heads)",
    "activations.histogram": "layer_densities(values, edges)",
    "activations.variance": "qkv_variance(wides, first)",
    "activations.scores": "masked_scores(wide, num_heads)",
    "activations.by_layer": "score_statistics(wides, num_heads)",
    "activations.sinks": "sink_attention(model, input_ids)",
}
HEADS = """
def heads_of(wide, num_heads):
    return [t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in wide.chunk(3, dim=-1)]
"""
SCORES = """
def masked_scores(wide, num_heads):
    q, k, _ = heads_of(wide, num_heads)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
"""
NEEDS = {"activations.scores": HEADS, "activations.by_layer": HEADS + SCORES}


def program(task: str, body: str) -> str:
    return f"def {SIGNATURES[task]}:\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")


RIGHT = {
    "activations.text": {
        "lists": "i = input_ids.tolist()[0]\nreturn len(text), len(set(text)), len(i), len(set(i))",
        "unique": "return (len(text), len(set(text)), input_ids.numel(),"
        " input_ids.unique().numel())",
        "items": "return [len(text), len(set(text)), input_ids.shape[1],"
        " len({t.item() for t in input_ids[0]})]",
        "integers": "n = input_ids.size(-1)\nseen = []\nfor c in text:\n    if c not in seen:"
        " seen.append(c)\nreturn len(text), len(seen), n, len(set(map(int, input_ids[0])))",
        "one tensor": """
            ids = input_ids[0]
            return torch.tensor([len(text), len(set(text)), len(ids), len(ids.unique())])
        """,
    },
    "activations.one_hook": {
        "library": """
            from transformer_lm.activations import record
            name = f"h.{layer}.attn.c_attn"
            with torch.no_grad(), record(model, name) as acts:
                model(input_ids)
            return acts[name]
        """,
        "a dict": """
            found = {}
            def hook(module, inputs, output):
                found["x"] = output
            handle = model.transformer.h[layer].attn.c_attn.register_forward_hook(hook)
            try:
                model(input_ids)
            finally:
                handle.remove()
            return found["x"].detach()
        """,
        "a context manager": """
            out = []
            attention = model.transformer.h[layer].attn
            with attention.c_attn.register_forward_hook(lambda m, a, o: out.append(o)):
                with torch.no_grad():
                    model(input_ids)
            return out[-1]
        """,
        "nonlocal": """
            caught = None
            def hook(module, inputs, output):
                nonlocal caught
                caught = output.detach().clone()
            handle = model.transformer.h[layer].attn.c_attn.register_forward_hook(hook)
            try:
                with torch.inference_mode():
                    model(input_ids)
            finally:
                handle.remove()
            return caught
        """,
        "by hand": """
            with torch.no_grad():
                states = model(input_ids, output_hidden_states=True).hidden_states
                block = model.transformer.h[layer]
                return block.attn.c_attn(block.ln_1(states[layer]))
        """,
    },
    "activations.all_layers": {
        "library": """
            from transformer_lm.activations import record
            with torch.no_grad(), record(model, "h.*.attn.c_attn") as acts:
                model(input_ids)
            return {i: acts[f"h.{i}.attn.c_attn"] for i in range(model.config.n_layer)}
        """,
        "default argument": """
            acts, handles = {}, []
            for i, block in enumerate(model.transformer.h):
                def hook(module, inputs, output, i=i):
                    acts[i] = output.detach()
                handles.append(block.attn.c_attn.register_forward_hook(hook))
            try:
                model(input_ids)
            finally:
                for h in handles:
                    h.remove()
            return acts
        """,
        "partial": """
            import functools
            acts = {}
            def keep(i, module, inputs, output):
                acts[i] = output.detach()
            handles = [b.attn.c_attn.register_forward_hook(functools.partial(keep, i))
                       for i, b in enumerate(model.transformer.h)]
            model(input_ids)
            [h.remove() for h in handles]
            return acts
        """,
        "known by module": """
            order = [b.attn.c_attn for b in model.transformer.h]
            acts = {}
            def keep(module, inputs, output):
                acts[next(i for i, m in enumerate(order) if m is module)] = output.detach()
            handles = [m.register_forward_hook(keep) for m in order]
            model(input_ids)
            for h in handles:
                h.remove()
            return acts
        """,
        "one run a layer": """
            acts = {}
            for i in range(len(model.transformer.h)):
                def keep(module, inputs, output):
                    acts[i] = output.detach()
                handle = model.transformer.h[i].attn.c_attn.register_forward_hook(keep)
                model(input_ids)
                handle.remove()
            return acts
        """,
    },
    "activations.split": {
        "chunk and view": """
            b, s, w = wide.shape
            return [t.view(b, s, num_heads, -1).transpose(1, 2) for t in wide.chunk(3, -1)]
        """,
        "split": """
            hidden = wide.shape[-1] // 3
            q, k, v = wide.split(hidden, dim=2)
            def cut(t):
                return t.reshape(*t.shape[:2], num_heads, hidden // num_heads).permute(0, 2, 1, 3)
            return cut(q), cut(k), cut(v)
        """,
        "stacked slices": """
            hidden = wide.shape[-1] // 3
            size = hidden // num_heads
            def cut(start):
                return torch.stack([wide[..., start + h * size:start + (h + 1) * size]
                                    for h in range(num_heads)], dim=1)
            return cut(0), cut(hidden), cut(2 * hidden)
        """,
        "unflatten": "return wide.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)"
        ".unbind(0)",
        "double": "t = wide.double().unflatten(-1, (3, num_heads, -1)).transpose(1, 3)\n"
        "return t[:, :, 0], t[:, :, 1], t[:, :, 2]",
        "one tensor": """
            b, s, _ = wide.shape
            return wide.view(b, s, 3, num_heads, -1).permute(2, 0, 3, 1, 4)
        """,
    },
    "activations.histogram": {
        "torch": """
            width = edges[1] - edges[0]
            counts = torch.stack([torch.histogram(v, edges)[0] for v in values])
            n = values.shape[1]
            return (edges[:-1] + edges[1:]) / 2, counts / n / width, 1 - counts.sum(1) / n
        """,
        "numpy": """
            import numpy as np
            e, v = edges.numpy(), values.numpy()
            counts = np.array([np.histogram(row, bins=e)[0] for row in v])
            outside = ((v < e[0]) | (v > e[-1])).mean(axis=1)
            return (e[1:] + e[:-1]) / 2, counts / v.shape[1] / np.diff(e), outside
        """,
        "comparisons": """
            low, high = edges[:-1], edges[1:]
            hit = (values[:, :, None] >= low) & (values[:, :, None] < high)
            share = hit.float().mean(dim=1)
            return low + (high - low) / 2, share / (high - low), 1 - share.sum(1)
        """,
        "bucketize": """
            n, bins = values.shape[1], len(edges) - 1
            place = torch.bucketize(values, edges, right=True)
            counts = F.one_hot(place, bins + 2)[..., 1:-1].sum(1)
            return edges.unfold(0, 2, 1).mean(1), counts / n / edges.diff(),\\
                (n - counts.sum(1)) / n
        """,
    },
    "activations.variance": {
        "a loop": """
            out = torch.zeros(len(wides), 3)
            for i, w in enumerate(wides):
                hidden = w.shape[-1] // 3
                for j in range(3):
                    out[i, j] = w[:, first:, j * hidden:(j + 1) * hidden].var()
            return out
        """,
        "stacked": """
            w = torch.stack(wides)[:, :, first:]
            return torch.stack([t.flatten(1).var(1) for t in w.chunk(3, -1)], dim=1)
        """,
        "numpy": "import numpy as np\nreturn np.array([[t.numpy().var(ddof=1) for t in"
        " w[:, first:].chunk(3, -1)] for w in wides])",
        "by hand": """
            rows = []
            for w in wides:
                row = []
                for t in w[:, first:].double().chunk(3, -1):
                    row.append(((t - t.mean()) ** 2).sum() / (t.numel() - 1))
                rows.append(torch.stack(row))
            return torch.stack(rows)
        """,
    },
    "activations.scores": {
        "matmul": """
            q, k, _ = heads_of(wide, num_heads)
            s = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
            return s.masked_fill(torch.ones(s.shape[-2:]).triu(1) == 1, -math.inf)
        """,
        "minus 1e9": """
            q, k, _ = heads_of(wide, num_heads)
            s = q @ k.mT / math.sqrt(q.shape[-1])
            return s.masked_fill(torch.ones_like(s).tril() == 0, -1e9)
        """,
        "additive": """
            q, k, _ = heads_of(wide, num_heads)
            n = q.shape[2]
            return (q / q.shape[-1] ** 0.5) @ k.mT + torch.full((n, n), -torch.inf).triu(1)
        """,
        "loops": """
            b, s, w = wide.shape
            hidden = w // 3
            d = hidden // num_heads
            out = torch.full((b, num_heads, s, s), -torch.inf)
            for h in range(num_heads):
                q = wide[:, :, h * d:(h + 1) * d]
                k = wide[:, :, hidden + h * d:hidden + (h + 1) * d]
                for i in range(s):
                    for j in range(i + 1):
                        out[:, h, i, j] = (q[:, i] * k[:, j]).sum(-1) / d ** 0.5
            return out
        """,
        "finfo": """
            q, k, _ = (t.flatten(0, 1) for t in heads_of(wide, num_heads))
            s = torch.bmm(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5
            mask = torch.ones_like(s, dtype=torch.bool).triu(1)
            s = s.masked_fill(mask, torch.finfo(s.dtype).min)
            return s.view(-1, num_heads, *s.shape[1:])
        """,
    },
    "activations.by_layer": {
        "boolean triangle": """
            m, d = [], []
            for w in wides:
                s = masked_scores(w, num_heads)
                seen = torch.ones(s.shape[-2:]).tril().bool()
                s = s[..., seen]
                m.append(s.mean((0, 2)))
                d.append(s.std((0, 2)))
            return torch.stack(m), torch.stack(d)
        """,
        "indices": """
            s = torch.stack([masked_scores(w, num_heads) for w in wides])
            i, j = torch.tril_indices(s.shape[-1], s.shape[-1])
            s = s[..., i, j]
            return s.mean((1, 3)), s.std((1, 3))
        """,
        "loops": """
            m = torch.zeros(len(wides), num_heads)
            d = torch.zeros(len(wides), num_heads)
            for n, w in enumerate(wides):
                for h in range(num_heads):
                    s = masked_scores(w, num_heads)[:, h]
                    s = s[s > -1e30]
                    m[n, h], d[n, h] = s.mean(), s.std()
            return m, d
        """,
        "numpy": """
            import numpy as np
            m = np.zeros((len(wides), num_heads)); d = m.copy()
            for n, w in enumerate(wides):
                s = masked_scores(w, num_heads).numpy()
                for h in range(num_heads):
                    x = s[:, h][np.isfinite(s[:, h])]
                    m[n, h], d[n, h] = x.mean(), x.std(ddof=1)
            return m, d
        """,
        "nanmean": """
            s = torch.stack([masked_scores(w, num_heads) for w in wides]).double()
            s = s.masked_fill(s.isinf(), math.nan).transpose(1, 2).flatten(2)
            mean = s.nanmean(-1)
            n = (~s.isnan()).sum(-1)
            return mean, (((s - mean[..., None]) ** 2).nansum(-1) / (n - 1)).sqrt()
        """,
    },
    "activations.sinks": {
        "stacked": """
            p = torch.stack(model(input_ids, output_attentions=True).attentions)
            return p[:, :, :, 1:, 0].mean(dim=(1, 3)).detach()
        """,
        "loops": """
            with torch.no_grad():
                maps = model(input_ids, output_attentions=True).attentions
            return torch.tensor([[m[:, h, 1:, 0].mean().item() for h in range(m.shape[1])]
                                 for m in maps])
        """,
        "library": """
            from transformer_lm.activations import attention_patterns
            return attention_patterns(model, input_ids)[..., 0][..., 1:].mean(dim=(1, 3))
        """,
        "recomputed": """
            from transformer_lm.activations import head_activations
            found = head_activations(model, input_ids)
            return torch.stack([f.pattern[:, :, 1:, 0].mean((0, 2)) for f in found.values()])
        """,
        "sum less one": """
            with torch.no_grad():
                maps = model(input_ids, output_attentions=True).attentions
            n = input_ids.shape[1]
            return torch.stack([(m[..., 0].sum(-1) - 1).mean(0) / (n - 1) for m in maps])
        """,
    },
}

TAP = """
kept = []
handle = model.transformer.h[{layer}].attn.{module}.register_forward_hook(
    lambda m, i, o: kept.append({what}))
{run}
return kept[0]
"""
RUN = "try:\n    model(input_ids)\nfinally:\n    handle.remove()"


def hooked(layer="layer", module="c_attn", what="o.detach()", run=RUN):
    return TAP.format(layer=layer, module=module, what=what, run=run)


LATE = """
acts, handles = {{}}, []
for i, block in enumerate(model.transformer.h):
    def hook(module, inputs, output):
        acts[{key}] = {what}
    handles.append(block.attn.{module}.register_forward_hook(hook))
model(input_ids)
{end}
return acts
"""


def late(key="i", what="output.detach()", module="c_attn", end="for h in handles: h.remove()"):
    return LATE.format(key=key, what=what, module=module, end=end)


def scores(mask: str, scale: str = "/ q.shape[-1] ** 0.5", product: str = "q @ k.mT") -> str:
    return f"""
q, k, _ = heads_of(wide, num_heads)
s = {product} {scale}
return {mask}
"""


MASK = "s.masked_fill(torch.ones_like(s).triu(1).bool(), -torch.inf)"
FULL = "q, k, v = wide.chunk(3, -1)\nd = q.shape[-1] // num_heads\ns = q @ k.mT / d ** 0.5\n"
STATS = """
means, stds = [], []
for w in wides:
    s = masked_scores({wide}, num_heads)
    seen = torch.ones(s.shape[-2:]).{seen}.bool()
    s = s[..., seen]
    means.append({mean})
    stds.append({std})
return torch.stack(means), torch.stack(stds)
"""


def stats(wide="w", seen="tril()", mean="s.mean((0, 2))", std="s.std((0, 2))"):
    return STATS.format(wide=wide, seen=seen, mean=mean, std=std)


def sinks(pick: str) -> str:
    return f"""
with torch.no_grad():
    p = torch.stack(model(input_ids, output_attentions=True).attentions)
return {pick}
"""


WRONG = {
    "activations.text": [
        (
            "text.tensors in a set",
            "return len(text), len(set(text)), len(input_ids[0]), len(set(input_ids[0]))",
        ),
        (
            "text.batch counted",
            "return len(text), len(set(text)), len(input_ids), len(set(input_ids))",
        ),
        ("text.words", "w = text.split()\nreturn len(text), len(set(text)), len(w), len(set(w))"),
        (
            "text.order",
            "i = input_ids[0].tolist()\nreturn len(text), len(i), len(set(text)), len(set(i))",
        ),
        (
            "text.case folded",
            "i = input_ids[0].tolist()\n"
            "return len(text), len(set(text.lower())), len(i), len(set(i))",
        ),
        ("activations.text.length", "return len(text), len(set(text))"),
        (
            "text.tensors in a set",
            "return len(text), len(set(text)), len(input_ids[0]), len(set(input_ids))",
        ),
        (
            "text.stripped",
            "i = input_ids[0].tolist()\n"
            "return len(text.strip()), len(set(text)), len(i), len(set(i))",
        ),
    ],
    "activations.one_hook": [
        ("activations.one_hook.hook left in", hooked(run="model(input_ids)")),
        ("activations.one_hook.hook left in", hooked(run="model(input_ids)\nhandle.remove()")),
        ("hook.input caught", hooked(what="i[0].detach()")),
        ("hook.whole attention", hooked(module="c_proj")),
        ("hook.another layer", hooked(layer="layer - 1")),
        ("hook.another layer", hooked(layer="-1")),
        ("hook.first item alone", hooked(what="o[0].detach()")),
        (
            "hook.error swallowed",
            "try:\n"
            + textwrap.indent(hooked().strip(), "    ")
            + "\nexcept IndexError:\n    return None",
        ),
        (
            "activations.one_hook.model changed",
            "with torch.no_grad():\n    model.transformer.ln_f.weight.zero_()\n" + hooked(),
        ),
    ],
    "activations.all_layers": [
        ("all hooks.late binding", late()),
        (
            "all hooks.late binding",
            "found = {}\nhandles = [b.attn.c_attn.register_forward_hook("
            "lambda m, i, o: found.update({n: o.detach()})) "
            "for n, b in enumerate(model.transformer.h"
            ")]\nmodel(input_ids)\nfor h in handles: h.remove()\nreturn found",
        ),
        ("activations.all_layers.hook left in", late(key="len(acts)", end="")),
        ("activations.all_layers.hook left in", late(key="len(acts)", end="handles[-1].remove()")),
        ("all hooks.counted from 1", late(key="len(acts) + 1")),
        ("all hooks.another module", late(key="len(acts)", module="c_proj")),
        ("all hooks.input caught", late(key="len(acts)", what="inputs[0].detach()")),
        ("all hooks.named keys", late(key="f'L{len(acts)}_qkv'")),
    ],
    "activations.split": [
        (
            "split.order",
            "t = wide.unflatten(-1, (3, num_heads, -1)).permute(2, 0, 3, 1, 4)\n"
            "return t[0], t[2], t[1]",
        ),
        (
            "split.heads before q, k, v",
            "t = wide.unflatten(-1, (num_heads, 3, -1))\nreturn t.permute(3, 0, 2, 1, 4).unbind(0)",
        ),
        (
            "split.reshape for transpose",
            "b, s, w = wide.shape\n"
            "return [t.reshape(b, num_heads, s, -1) for t in wide.chunk(3, -1)]",
        ),
        (
            "split.interleaved heads",
            "b, s, w = wide.shape\n"
            "return [t.reshape(b, s, -1, num_heads).permute(0, 3, 1, 2) "
            "for t in wide.chunk(3, -1)]",
        ),
        (
            "split.not transposed",
            "b, s, w = wide.shape\n"
            "return [t.reshape(b, s, num_heads, -1) for t in wide.chunk(3, -1)]",
        ),
        ("split.no heads", "return wide.chunk(3, dim=-1)"),
        (
            "split.every third",
            "return [wide[..., i::3].unflatten(-1, (num_heads, -1))"
            ".transpose(1, 2) for i in range(3)]",
        ),
    ],
    "activations.histogram": [
        (
            "histogram.inside alone",
            """
            import numpy as np
            e, v = edges.numpy(), values.numpy()
            d = np.array([np.histogram(row, bins=e, density=True)[0] for row in v])
            return (e[1:] + e[:-1]) / 2, d, ((v < e[0]) | (v > e[-1])).mean(axis=1)
        """,
        ),
        *[
            (
                name,
                f"""
            c = torch.stack([torch.histogram(v, edges)[0] for v in values])
            n, w = values.shape[1], edges[1] - edges[0]
            x = (edges[:-1] + edges[1:]) / 2
            return {answer}
        """,
            )
            for name, answer in (
                ("histogram.left edges", "edges[:-1], c / n / w, 1 - c.sum(1) / n"),
                ("histogram.right edges", "edges[1:], c / n / w, 1 - c.sum(1) / n"),
                ("histogram.counts", "x, c, 1 - c.sum(1) / n"),
                ("histogram.width forgotten", "x, c / n, 1 - c.sum(1) / n"),
                ("histogram.share inside", "x, c / n / w, c.sum(1) / n"),
                ("histogram.count outside", "x, c / n / w, n - c.sum(1)"),
                ("histogram.layers pooled", "x, c / values.numel() / w, 1 - c.sum(1) / n"),
            )
        ],
    ],
    "activations.variance": [
        (name, f"return torch.tensor([[{each} for t in {w}.chunk(3, -1)] for w in wides])")
        for name, each, w in (
            ("variance.first token kept", "t.var().item()", "w"),
            ("variance.wrong axis cut", "t.var().item()", "w[first:]"),
            ("variance.ddof", "t.numpy().var().item()", "w[:, first:]"),
            ("variance.standard deviation", "t.std().item()", "w[:, first:]"),
            ("variance.stale tensor", "t.var().item()", "wides[-1][:, first:]"),
            ("variance.one sequence", "t[0].var().item()", "w[:, first:]"),
            ("variance.mean square", "t.square().mean().item()", "w[:, first:]"),
        )
    ],
    "activations.scores": [
        ("scores.summed heads", FULL + "return s"),
        ("scores.summed heads", FULL + "return " + MASK),
        ("scores.no mask", scores("s")),
        ("scores.mask hides itself", scores(MASK.replace("triu(1)", "triu(0)"))),
        ("scores.mask inverted", scores(MASK.replace("triu(1)", "tril()"))),
        ("scores.filled with 0", scores("s.tril()")),
        ("scores.not scaled", scores(MASK, "")),
        ("scores.scaled by the full width", scores(MASK, "/ (num_heads * q.shape[-1]) ** 0.5")),
        ("scores.already a softmax", scores(MASK + ".softmax(-1)")),
        ("scores.queries and keys swapped", scores(MASK, product="k @ q.mT")),
    ],
    "activations.by_layer": [
        ("statistics.stale tensor", stats(wide="wides[-1]")),
        ("statistics.infinite", stats(seen="bool().fill_(True)")),
        ("statistics.diagonal left out", stats(seen="tril(-1)")),
        ("statistics.heads pooled", stats(mean="s.mean()", std="s.std()")),
        ("statistics.first item alone", stats(mean="s[0].mean(1)", std="s[0].std(1)")),
        ("statistics.ddof", stats(std="s.std((0, 2), correction=0)")),
        ("statistics.variance", stats(std="s.var((0, 2))")),
        (
            "statistics.summed heads",
            "m, sd = [], []\nfor wide in wides:\n"
            + textwrap.indent(FULL + "m.append(s.mean())\nsd.append(s.std())", "    ")
            + "\nreturn torch.stack(m), torch.stack(sd)",
        ),
    ],
    "activations.sinks": [
        ("sinks.first query counted", sinks("p[..., 0].mean((1, 3))")),
        ("sinks.row for column", sinks("p[:, :, :, 0].mean((1, 3))")),
        ("sinks.heads averaged", sinks("p[..., 1:, 0].mean((1, 2, 3))")),
        ("sinks.batch kept", sinks("p[..., 1:, 0].mean(3)")),
        ("sinks.sum", sinks("p[..., 1:, 0].sum(3).mean(1)")),
        ("sinks.last query alone", sinks("p[..., -1, 0].mean(1)")),
        ("sinks.another token", sinks("p[..., 1:, 1].mean((1, 3))")),
        ("sinks.first item alone", sinks("p[:, 0, :, 1:, 0].mean(2)")),
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


def test_a_hook_left_in_by_an_error_is_seen_though_all_values_are_right():
    source = program("activations.one_hook", hooked(run="model(input_ids)\nhandle.remove()"))
    assert names("activations.one_hook", source, 6) == ["activations.one_hook.hook left in"]


def test_a_model_left_in_training_mode_is_seen_though_all_values_are_right():
    source = program("activations.one_hook", "value = None\n" + hooked()).replace(
        "return kept[0]", "model.train()\n    return kept[0]"
    )
    assert names("activations.one_hook", source, 6) == ["activations.one_hook.another mode"]


SCORED = """
b, s, w = wide.shape
q, k, v = (p.{split} for p in wide.chunk(3, -1))
d, future = q.shape[-1], torch.ones(s, s).triu({diagonal}) == 1
return (q @ {other}.mT * {scale}).masked_fill(future, float("-inf"))
"""


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("scores.scaled by the number of heads", {"scale": "num_heads ** -0.5"}),
        ("scores.scaled by the full width", {"scale": "w ** -0.5"}),
        ("scores.scaled by the tokens", {"scale": "s ** -0.5"}),
        ("scores.multiplied", {"scale": "d ** 0.5"}),
        ("scores.one future key", {"diagonal": "2"}),
        ("scores.reshape for transpose", {"split": "reshape(b, num_heads, s, -1)"}),
        ("scores.values for keys", {"other": "v"}),
        ("scores.queries with themselves", {"other": "q"}),
    ],
)
def test_scores_of_other_pairs_scales_and_masks_are_told_apart(check, change):
    usual = {
        "split": "reshape(b, s, num_heads, -1).transpose(1, 2)",
        "diagonal": "1",
        "other": "k",
        "scale": "d ** -0.5",
    }
    task = "activations.scores"
    for parts, expected in ((usual, []), (usual | change, [check])):
        source = program(task, SCORED.format(**parts))
        assert names(task, source, 7, NEEDS[task]) == expected
