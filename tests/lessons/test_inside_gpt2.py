"""Lesson 09: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

NEEDS = "from transformer_lm.activations import record\n"


def function(signature: str, body: str) -> str:
    return f"def {signature}:\n    " + body.strip().replace("\n", "\n    ")


SIGNATURES = {
    "config": "sizes(config)",
    "table": "block_table(hidden, mlp_width)",
    "conv1d": "conv1d(x, weight, bias)",
    "tying": "tying(model)",
    "scores": "sampling_scores(logits, temperature, top_k)",
    "log_probs": "top_tokens(logits, k)",
    "hidden": "block_update(model, input_ids, block)",
    "logits": "lens_logits(model, hidden_states)",
    "attentions": "last_row(attentions, step, layer, head)",
}

SIZES = """
size = config.n_embd // config.n_head
return {"head_size": size, "scale": 1 / math.sqrt(size), "mlp_width": config.n_inner or
        4 * config.n_embd, "hidden_states": 1 + config.n_layer,
        "context_length": config.n_positions}
"""
TABLE = """
h, m = hidden, mlp_width
out = {}
for n in ("ln_1", "ln_2"):
    out[n + ".weight"] = out[n + ".bias"] = (h,)
for n, i, o in (("attn.c_attn", h, 3 * h), ("attn.c_proj", h, h), ("mlp.c_fc", h, m),
                ("mlp.c_proj", m, h)):
    out[n + ".weight"], out[n + ".bias"] = (i, o), (o,)
return out
"""
TYING = """
s = model.state_dict()
one = s["lm_head.weight"].data_ptr() == s["transformer.wte.weight"].data_ptr()
return {"tied": one, "stored": sum(t.numel() for t in s.values()),
        "learned": sum(p.numel() for p in model.parameters())}
"""
SCORES = """
s = logits / temperature
kth = s.sort(dim=-1, descending=True).values[:, top_k - 1]
return s.masked_fill(s < kth[:, None], float("-inf"))
"""
TOP = """
logp = F.log_softmax(logits, dim=-1)
best = logp.topk(k, dim=-1)
return best.indices, best.values
"""
HOOKS = """
seen = {}
def keep(module, args, output):
    seen["in"] = args[0]
    seen["out"] = output[0] if isinstance(output, tuple) else output
handle = model.transformer.h[block].register_forward_hook(keep)
model(input_ids)
handle.remove()
return (seen["out"] - seen["in"]).detach()
"""
STATES = """
with torch.no_grad(), record(model, "ln_f:input") as acts:
    states = model(input_ids, output_hidden_states=True).hidden_states
stream = states[:-1] + (acts["ln_f:input"],)
return stream[block + 1] - stream[block]
"""
LENS = """
out = []
with torch.no_grad():
    for i, h in enumerate(hidden_states):
        x = h[:, -1]
        if i < len(hidden_states) - 1:
            x = model.transformer.ln_f(x)
        out.append(x @ model.transformer.wte.weight.T)
return torch.stack(out)
"""
ROW = """
if not attentions[step]:
    raise ValueError("no maps")
return attentions[step][layer][:, head, -1]
"""

RIGHT = {
    "config": [
        SIZES,
        SIZES.replace("1 / math.sqrt(size)", "size ** -0.5"),
        SIZES.replace("1 / math.sqrt(size)", "1 / torch.tensor(float(size)).sqrt()"),
        SIZES.replace(
            "config.n_inner or\n        4 * config.n_embd",
            "4 * config.n_embd if config.n_inner is None else config.n_inner",
        ),
        SIZES.replace("config.n_embd // config.n_head", "int(config.n_embd / config.n_head)"),
    ],
    "table": [
        TABLE,
        TABLE.replace("(i, o), (o,)", "[i, o], [o]"),
        TABLE.replace("(i, o), (o,)", "torch.Size([i, o]), torch.Size([o])"),
        TABLE.replace("return out", "return {k: out[k] for k in sorted(out)}"),
        """
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
block = GPT2Block(GPT2Config(n_embd=hidden, n_head=1, n_inner=mlp_width), layer_idx=0)
return {n: tuple(p.shape) for n, p in block.named_parameters()}
""",
    ],
    "conv1d": [
        "return x @ weight + bias",
        "return torch.matmul(x, weight).add(bias)",
        "return torch.einsum('bti,io->bto', x, weight) + bias",
        "return F.linear(x, weight.T, bias)",
        "return torch.addmm(bias, x.flatten(0, 1), weight).view(*x.shape[:-1], -1)",
        "return torch.stack([torch.stack([t @ weight + bias for t in s]) for s in x])",
        "return torch.bmm(x, weight.expand(len(x), -1, -1)) + bias",
        "return (x.double() @ weight.double() + bias.double()).to(x.dtype)",
    ],
    "tying": [
        TYING,
        TYING.replace(
            "sum(p.numel() for p in model.parameters())",
            "sum({t.data_ptr(): t.numel() for t in s.values()}.values())",
        ),
        TYING.replace(
            's["lm_head.weight"].data_ptr() == s["transformer.wte.weight"].data_ptr()',
            "model.lm_head.weight is model.transformer.wte.weight",
        ),
        TYING.replace(".data_ptr()", ".untyped_storage().data_ptr()"),
        """
tied = model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()
learned = 0
for p in model.parameters():
    learned += p.numel()
extra = model.lm_head.weight.numel() if tied else 0
return {"tied": tied, "stored": learned + extra, "learned": learned}
""",
    ],
    "scores": [
        SCORES,
        SCORES.replace('float("-inf")', "-1e9"),
        SCORES.replace('float("-inf")', "torch.finfo(s.dtype).min"),
        """
s = logits / temperature
out = torch.full_like(s, -math.inf)
values, ids = s.topk(top_k)
return out.scatter(1, ids, values)
""",
        """
rows = []
for row in logits:
    row = row / temperature
    bound = torch.topk(row, top_k).values.min()
    rows.append(torch.where(row >= bound, row, torch.tensor(-torch.inf)))
return torch.stack(rows)
""",
        """
from transformers import TemperatureLogitsWarper, TopKLogitsWarper
return TopKLogitsWarper(top_k)(None, TemperatureLogitsWarper(temperature)(None, logits))
""",
    ],
    "log_probs": [
        TOP,
        "return tuple(reversed(torch.topk(torch.log_softmax(logits, -1), k)))",
        "v, i = logits.topk(k)\nreturn i, v - logits.logsumexp(-1, keepdim=True)",
        "lp = logits.double().log_softmax(-1)\nids = lp.argsort(-1, descending=True)[:, :k]\n"
        "return ids, lp.gather(-1, ids)",
        "best = [r.log_softmax(0).topk(k) for r in logits]\n"
        "return torch.stack([b.indices for b in best]), torch.stack([b.values for b in best])",
    ],
    "hidden": [
        HOOKS,
        STATES,
        """
with torch.no_grad(), record(model, "h.*.attn") as a, record(model, "h.*.mlp") as m:
    model(input_ids)
return a[f"h.{block}.attn"][0] + m[f"h.{block}.mlp"]
""",
        """
from transformer_lm.activations import residual_stream
return residual_stream(model, input_ids).diff(dim=0)[block]
""",
        """
rows = []
for row in input_ids:
    with torch.no_grad(), record(model, [f"h.{block}:input", f"h.{block}"]) as acts:
        model(row[None])
    rows.append((acts[f"h.{block}"] - acts[f"h.{block}:input"])[0])
return torch.stack(rows)
""",
    ],
    "logits": [
        LENS,
        LENS.replace("x @ model.transformer.wte.weight.T", "model.lm_head(x)"),
        LENS.replace(
            "model.transformer.ln_f(x)",
            "F.layer_norm(x, x.shape[-1:], model.transformer.ln_f.weight, "
            "model.transformer.ln_f.bias, model.transformer.ln_f.eps)",
        ),
        """
h = torch.stack(hidden_states)
h = torch.cat([model.transformer.ln_f(h[:-1]), h[-1:]])
return model.lm_head(h)[:, :, -1].detach()
""",
        """
E = model.lm_head.weight.detach()
done = [model.transformer.ln_f(h) for h in hidden_states[:-1]] + [hidden_states[-1]]
return torch.einsum("sbh,vh->sbv", torch.stack([d[:, -1] for d in done]), E)
""",
    ],
    "attentions": [
        ROW,
        ROW.replace("if not attentions[step]", "if len(attentions[step]) == 0"),
        ROW.replace("[:, head, -1]", "[:, head][:, -1]"),
        ROW.replace(
            "attentions[step][layer][:, head, -1]",
            "torch.stack(attentions[step])[layer, :, head, -1, :]",
        ),
        ROW.replace(
            "return attentions[step][layer][:, head, -1]",
            "m = attentions[step][layer]\nreturn torch.stack([i[head, -1] for i in m])",
        ),
    ],
}
WRONG = [
    (
        "config",
        SIZES.replace("config.n_inner or\n", "")
        .replace('"mlp_width": \n', "")
        .replace('"mlp_width":         4', '"mlp_width": 4'),
        "config.n_inner ignored",
    ),
    (
        "config",
        SIZES.replace("1 / math.sqrt(size)", "1 / math.sqrt(config.n_embd)"),
        "scale.hidden",
    ),
    ("config", SIZES.replace("1 / math.sqrt(size)", "math.sqrt(size)"), "scale.inverted"),
    ("config", SIZES.replace("1 / math.sqrt(size)", "1 / size"), "scale.not a root"),
    (
        "config",
        SIZES.replace("1 + config.n_layer", "config.n_layer"),
        "config.hidden_states off by one",
    ),
    (
        "config",
        SIZES.replace("config.n_positions", "config.vocab_size"),
        "config.context is the vocabulary",
    ),
    (
        "config",
        SIZES.replace("size = config.n_embd // config.n_head", "size = config.n_embd"),
        "config.head_size is hidden",
    ),
    ("table", TABLE.replace("(i, o), (o,)", "(o, i), (o,)"), "conv1d.in and out"),
    (
        "table",
        TABLE.replace('("mlp.c_proj", m, h)', '("mlp.c_proj", h, m)').replace(
            "return out", 'out["mlp.c_proj.bias"] = (h,)\nreturn out'
        ),
        "table.c_proj of the MLP",
    ),
    (
        "table",
        TABLE.replace("return out", 'out["attn.c_attn.bias"] = (h,)\nreturn out'),
        "table.bias of c_attn",
    ),
    (
        "table",
        TABLE.replace("(i, o), (o,)", "(i, o), (i,)").replace(
            "return out", 'out["attn.c_attn.bias"] = (3 * h,)\nreturn out'
        ),
        "table.bias of inputs",
    ),
    (
        "table",
        TABLE.replace('"attn.c_attn", h, 3 * h', '"attn.c_attn", h, h'),
        "table.width of c_attn",
    ),
    (
        "table",
        TABLE.replace("hidden, mlp_width", "hidden, 4 * hidden"),
        "table.mlp always four times",
    ),
    ("conv1d", "return F.linear(x, weight, bias)", "conv1d.in and out"),
    ("conv1d", "return x @ weight.T + bias", "conv1d.in and out"),
    ("conv1d", "return F.linear(x, weight.view(-1, x.shape[-1]), bias)", "conv1d.reshaped"),
    ("conv1d", "return torch.einsum('bti,io->bto', x, weight)", "conv1d.lost bias"),
    ("conv1d", "return torch.addmm(bias, x.flatten(0, 1), weight)", "conv1d.batch lost"),
    ("conv1d", "return x[0] @ weight + bias", "conv1d.first sequence only"),
    (
        "tying",
        TYING.replace(
            's["lm_head.weight"].data_ptr() == s["transformer.wte.weight"].data_ptr()',
            'torch.equal(s["lm_head.weight"], s["transformer.wte.weight"])',
        ),
        "tying.equal is not tied",
    ),
    (
        "tying",
        TYING.replace(
            "sum(p.numel() for p in model.parameters())", "sum(t.numel() for t in s.values())"
        ),
        "tying.counted twice",
    ),
    (
        "tying",
        TYING.replace(
            "sum(p.numel() for p in model.parameters())",
            "sum(t.numel() for n, t in s.items() if n != 'lm_head.weight')",
        ),
        "tying.head never counted",
    ),
    (
        "tying",
        TYING.replace(
            "sum(t.numel() for t in s.values())", "sum(p.numel() for p in model.parameters())"
        ),
        "tying.stored counts once",
    ),
    (
        "tying",
        TYING.replace(
            's["lm_head.weight"].data_ptr() == s["transformer.wte.weight"].data_ptr()',
            's["lm_head.weight"] is s["transformer.wte.weight"]',
        ),
        "tying.is asks for the object",
    ),
    ("tying", TYING.replace("one = s", "one = True or s"), "tying.always tied"),
    (
        "scores",
        SCORES.replace("logits / temperature", "logits * temperature"),
        "temperature.multiplied",
    ),
    ("scores", SCORES.replace("logits / temperature", "logits"), "temperature.missing"),
    ("scores", SCORES.replace('float("-inf")', "0.0"), "top_k.filled with 0"),
    ("scores", SCORES.replace("top_k - 1]", "top_k]"), "top_k.one too many"),
    ("scores", SCORES.replace("s < kth", "s <= kth"), "top_k.one too few"),
    ("scores", SCORES.replace("return s.masked", "return s\nreturn s.masked"), "top_k.missing"),
    (
        "scores",
        SCORES.replace('float("-inf"))', 'float("-inf")).log_softmax(-1)'),
        "scores.log_softmax",
    ),
    (
        "scores",
        SCORES.replace("[:, top_k - 1]", "[0, top_k - 1].expand(len(s))"),
        "top_k.one bound for all",
    ),
    ("log_probs", TOP.replace("dim=-1)\nbest", "dim=0)\nbest"), "log_probs.axis"),
    ("log_probs", TOP.replace("F.log_softmax(logits, dim=-1)", "logits"), "log_probs.logits"),
    ("log_probs", TOP.replace("log_softmax", "softmax"), "log_probs.probabilities"),
    (
        "log_probs",
        "v, i = logits.topk(k)\nreturn i, v.log_softmax(-1)",
        "log_probs.only among the k",
    ),
    (
        "log_probs",
        "v, i = logits.topk(k)\nreturn i, logits.softmax(-1).gather(-1, i).log()",
        "log_probs.underflow",
    ),
    (
        "log_probs",
        TOP.replace("F.log_softmax(logits, dim=-1)", "logits.softmax(-1).log()"),
        "log_probs.underflow",
    ),
    ("log_probs", TOP.replace("best.indices, best.values", "best"), "log_probs.order"),
    ("log_probs", TOP.replace("k, dim=-1)", "k, dim=-1, largest=False)"), "log_probs.smallest"),
    (
        "hidden",
        """
s = model(input_ids, output_hidden_states=True).hidden_states
return (s[block + 1] - s[block]).detach()
""",
        "hidden.final norm",
    ),
    (
        "hidden",
        STATES.replace("stream[block + 1] - stream[block]", "stream[block] - stream[block - 1]"),
        "",
    ),
    (
        "hidden",
        STATES.replace("[block + 1] - stream[block]", "[block + 1]"),
        "hidden.not subtracted",
    ),
    (
        "hidden",
        STATES.replace("stream[block + 1] - stream[block]", "stream[block] - stream[block + 1]"),
        "hidden.sign",
    ),
    (
        "hidden",
        STATES.replace("stream[block + 1] - stream[block]", "stream[block]"),
        "hidden.input",
    ),
    (
        "hidden",
        """
with torch.no_grad():
    x = model(input_ids, output_hidden_states=True).hidden_states[block]
    return model.transformer.h[block](x) - x
""",
        "hidden.no mask",
    ),
    (
        "hidden",
        "with torch.no_grad(), record(model, 'h.*.attn') as acts:\n    model(input_ids)\n"
        "return acts[f'h.{block}.attn'][0]",
        "hidden.attention only",
    ),
    ("logits", LENS.replace("i < len(hidden_states) - 1", "True"), "logits.final norm twice"),
    ("logits", LENS.replace("i < len(hidden_states) - 1", "False"), "logits.final norm missing"),
    ("logits", LENS.replace("h[:, -1]", "h[:, 0]"), "logits.first position"),
    ("logits", LENS.replace("h[:, -1]", "h[:, -2]"), "logits.position before the last"),
    ("logits", LENS.replace("if i <", "if 0 < i <"), "logits.embedding not normed"),
    ("logits", LENS.replace("stack(out)", "stack(out, 1)"), "logits.batch first"),
    (
        "logits",
        LENS.replace("enumerate(hidden_states)", "enumerate(hidden_states[1:], 1)"),
        "logits.embedding left out",
    ),
    ("logits", LENS.replace("h[:, -1]", "h"), ""),
    ("attentions", "return attentions[step][layer][:, head, -1]", "attentions.empty"),
    ("attentions", ROW.replace("[step][layer]", "[layer][step]"), "attentions.layer before step"),
    ("attentions", ROW.replace("[:, head, -1]", "[:, head + 1, -1]"), "attentions.head off by one"),
    (
        "attentions",
        ROW.replace("[step][layer]", "[step][layer + 1]"),
        "attentions.layer off by one",
    ),
    ("attentions", ROW.replace("[:, head, -1]", "[:, head, 0]"), "attentions.first query"),
    ("attentions", ROW.replace("[:, head, -1]", "[:, head, :, -1]"), "attentions.key for query"),
    ("attentions", ROW.replace("[:, head, -1]", "[0, head, -1]"), "attentions.batch lost"),
    (
        "attentions",
        ROW.replace("[:, head, -1]", "[:, :, -1].mean(1)"),
        "attentions.mean over heads",
    ),
    (
        "log_probs",
        "v, i = logits.softmax(-1).log_softmax(-1).topk(k)\n"
        "i = logits.topk(k).indices\nreturn i, logits.softmax(-1).log_softmax(-1).gather(-1, i)",
        "log_probs.softmax twice",
    ),
    (
        "log_probs",
        "v, i = logits.log_softmax(-1).topk(k)\nreturn i, -v",
        "log_probs.sign",
    ),
    (
        "log_probs",
        "p = logits.exp() / logits.exp().sum(-1, keepdim=True)\n"
        "v, i = p.log().topk(k)\nreturn i, v",
        "log_probs.overflow",
    ),
    (
        "scores",
        "x = logits / temperature\nb = x.flatten().topk(top_k).values[-1]\n"
        "return x.masked_fill(x < b, -math.inf)",
        "top_k.one bound for all",
    ),
    (
        "hidden",
        "with torch.no_grad(), record(model, f'h.{block}.mlp') as acts:\n    model(input_ids)\n"
        "return acts[f'h.{block}.mlp']",
        "hidden.MLP only",
    ),
    ("attentions", ROW.replace("head, -1", "head - 1, -1"), "attentions.head off by one"),
]


def found(task, body, seed):
    return names(f"inside.{task}", function(SIGNATURES[task], body), seed, NEEDS)


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body"), [(t, b) for t, bodies in RIGHT.items() for b in bodies])
def test_right_programs_pass_in_every_style(task, body, seed):
    assert found(task, body, seed) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, body, check, seed):
    names_found = found(task, body, seed)
    assert names_found and names_found[0].startswith(check)
