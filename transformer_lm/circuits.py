"""Circuits from the weights alone: what a head copies, and which heads can talk to each other.

Everything here is in the model's own folded and centred form (``head_weights`` with
``fold_layer_norm`` and ``centre``), so that it is a property of the model and not of how its
weights happen to be written down. The norms' division by the standard deviation, which no weight
can tell, is left out.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (OV circuit,
copying and eigenvalues, Q-, K- and V-composition).
"""

from typing import NamedTuple

import torch

from transformer_lm.activations import gpt2_stack, with_progress
from transformer_lm.gpt2_weights import attention_sizes, head_weights, ov_factors, qk_factors
from transformer_lm.low_rank import eigenvalues, random_like, squared_norm

# --- The OV circuit: from the token that is looked at to the logits -------------------------------


def ov_circuit(model, layer, head, sources=None, targets=None, embedding=None):
    """Return the OV circuit W_E W_V W_O W_U of one head, source tokens down and logits across.

    Row s, column t is what the head adds to the logit of token t where it looks at token s alone.
    W_E is centred over hidden, as ln_1 does; ln_1's gain is in W_V and ln_f's in W_U. The logits
    are relative to their mean over the vocabulary, for a softmax sees no more.

    Args:
        model: a GPT-2 with its language-model head.
        layer, head: negative layers count from the end.
        sources, targets: LongTensors of token ids; the whole vocabulary where None.
        embedding: [vocab_size, hidden], what the stream holds of each token where the head reads
            it, such as ``embedding_after_mlp``; wte where None.

    Returns:
        [sources, targets], float64.
    """
    w_e, w_u = _vocabulary(model, embedding)  # [vocab_size, hidden] each
    a, b = _ov_factors(model, layer)  # [num_heads, hidden, head_size] each
    w_e = w_e if sources is None else w_e[sources]  # [sources, hidden]
    w_u = w_u if targets is None else w_u[targets]  # [targets, hidden]
    return (w_e @ a[head]) @ (w_u @ b[head]).T  # [sources, targets]


def embedding_after_mlp(model):
    """Return wte + mlp(ln_2(wte)) of block 0: [vocab_size, hidden], what later heads read.

    Each token alone, without its position and without the attention of block 0. The first MLP
    mostly turns the embeddings, which in a model with tied weights must serve as output vectors
    too, into a form that later layers read; so give this as ``embedding`` for heads of layers from
    1 on, and compare with wte.
    """
    block = gpt2_stack(model).h[0]
    with torch.no_grad():
        w_e = gpt2_stack(model).wte.weight  # [vocab_size, hidden]
        return w_e + block.mlp(block.ln_2(w_e))  # [vocab_size, hidden]


def ov_eigenvalues(model, layer, embedding=None):
    """Return the eigenvalues of each head's OV circuit that can differ from 0.

    Complex, [num_heads, head_size]. What is the same for all source tokens (a row added to W_E)
    changes them as little as what is the same for all logits.
    """
    w_e, w_u = _vocabulary(model, embedding)  # [vocab_size, hidden] each
    a, b = _ov_factors(model, layer)  # [num_heads, hidden, head_size] each
    return eigenvalues(w_u.T @ w_e @ a, b)  # [num_heads, head_size]


def eigenvalue_score(values):
    """Return sum(lambda) / sum(|lambda|), from -1 to 1: [...].

    values: the complex eigenvalues of an OV circuit, [..., head_size]; their sum is real. 1 where
    all are positive: any mixture of tokens along an eigenvector makes itself more likely (copying);
    -1 where it makes itself less likely; about 0 for neither. It is one number for all tokens, and
    a head may copy some and not others: see ``copying_ranks``.
    """
    return values.sum(dim=-1).real / values.abs().sum(dim=-1)


def copying_scores(model, seed=None, embedding=None, progress=False):
    """Return the eigenvalue_score of each head's OV circuit: [num_layers, num_heads].

    seed: None for the model; an integer for a random twin, Gaussian W_V and W_O of the same shapes
    between the model's own embeddings. Take many seeds before you call a score large.
    """
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    w_e, w_u = _vocabulary(model, embedding)  # [vocab_size, hidden] each
    between = w_u.T @ w_e  # [hidden, hidden]
    scores = []
    for layer in with_progress(range(len(gpt2_stack(model).h)), progress, "OV circuits"):
        a, b = _ov_factors(model, layer)  # [num_heads, hidden, head_size] each
        if generator is not None:
            a, b = random_like(a, generator), random_like(b, generator)
        scores.append(eigenvalue_score(eigenvalues(between @ a, b)))
    return torch.stack(scores)  # [num_layers, num_heads]


def copying_ranks(model, layer, head, tokens, embedding=None):
    """Return where each token stands among the logits that the head moves when it looks at it.

    tokens: LongTensor[n]. Returns LongTensor[n]: 0 where the token's own logit is raised most of
    the whole vocabulary, so that ``(ranks == 0).double().mean()`` is the share of tokens copied.
    """
    moved = ov_circuit(model, layer, head, tokens, embedding=embedding)  # [n, vocab_size]
    own = moved.gather(1, tokens[:, None])  # [n, 1]
    return (moved > own).sum(dim=1)  # [n]


# --- Composition: whether a head reads what an earlier one writes ---------------------------------


class Composition(NamedTuple):
    """How much of what an earlier head writes goes into a later head's queries, keys and values.

    Each: [num_layers, num_heads, num_layers, num_heads], writer first and reader last; nan where
    the reader is not in a later layer.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def composition_scores(model, progress=False):
    """Return the Composition of all pairs of heads, from 0 to 1, float64.

    ||OV QK|| / (||OV|| ||QK||) for the queries, with the writer's OV = W_V W_O and the reader's
    QK = W_Q W_K^T; with QK^T for the keys and with OV of the reader for the values. Two unrelated
    heads are not at 0 but at about 1 / sqrt(hidden): compare with ``composition_baseline``.
    """
    sizes = attention_sizes(gpt2_stack(model).config)
    num_layers, num_heads = sizes["num_layers"], sizes["num_heads"]
    layers = [
        head_weights(model, layer, fold_layer_norm=True, centre=True) for layer in range(num_layers)
    ]
    nowhere = torch.full((num_layers, num_heads) * 2, torch.nan, dtype=torch.float64)
    found = Composition(*(nowhere.clone() for _ in Composition._fields))
    for writer in with_progress(range(num_layers), progress, "composition by layer"):
        written = [w.double() for w in ov_factors(layers[writer])]
        for reader in range(writer + 1, num_layers):
            w_q, w_k = (w.double() for w in qk_factors(layers[reader]))
            ov = [w.double() for w in ov_factors(layers[reader])]
            # [num_heads, hidden, head_size] each
            for scores, read in zip(found, [(w_q, w_k), (w_k, w_q), ov], strict=True):
                scores[writer, :, reader] = _composition(written, read)
    return found


def composition_baseline(model, draws=200, seed=0):
    """Return the mean and standard deviation of a composition score of unrelated heads: two floats.

    Of Gaussian matrices with the heads' shapes, centred like them; their spread does not matter.
    """
    sizes = attention_sizes(gpt2_stack(model).config)
    generator = torch.Generator().manual_seed(seed)
    shape = (draws, sizes["hidden"], sizes["head_size"])
    a, b, c, d = (
        _centred(torch.randn(shape, generator=generator, dtype=torch.float64), dim=-2)
        for _ in range(4)
    )
    product = squared_norm(a @ (b.mT @ c), d)  # [draws]
    scores = (product / (squared_norm(a, b) * squared_norm(c, d))).sqrt()  # [draws]
    return scores.mean().item(), scores.std().item()


def _composition(written, read):
    """Return ||M N|| / (||M|| ||N||) for each M = a @ b^T written and N = c @ d^T read.

    a, b, c, d: [num_heads, hidden, head_size]. Returns [writers, readers].
    """
    (a, b), (c, d) = written, read
    between = b.mT[:, None] @ c[None]  # [writers, readers, head_size, head_size]
    product = squared_norm(a[:, None] @ between, d[None])  # [writers, readers]
    norms = squared_norm(a, b)[:, None] * squared_norm(c, d)  # [writers, readers]
    return (product / norms).sqrt()  # [writers, readers]


def _ov_factors(model, layer):
    """Return (a, b) with W_V W_O = a @ b^T, folded and centred; [num_heads, hidden, head_size]."""
    heads = head_weights(model, layer, fold_layer_norm=True, centre=True)
    a, b = ov_factors(heads)
    return a.double(), b.double()


def _vocabulary(model, embedding):
    """Return W_E and W_U^T as the heads read and write them: [vocab_size, hidden] each, float64."""
    stack = gpt2_stack(model)
    w_e = (stack.wte.weight if embedding is None else embedding).detach().double()
    w_u = model.lm_head.weight.detach().double() * stack.ln_f.weight.detach().double()
    w_e, w_u = _centred(w_e, dim=-1), _centred(w_u, dim=-1)  # [vocab_size, hidden] each
    return w_e, w_u - w_u.mean(dim=0)  # each logit minus the mean of all logits


def _centred(w, dim):
    return w - w.mean(dim=dim, keepdim=True)
