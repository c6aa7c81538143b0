"""Cosine similarity of head dimensions in all layers: one product a head beside the double loop.

    python -m benchmarks.weights                # GPT-2 small's sizes, random weights
    python -m benchmarks.weights --model tiny   # any name or folder that load_gpt2 takes
    python -m benchmarks.weights --memory       # gpt2-xl's sizes, one layer at a time

Both sides run in this process, on the same weights, device and threads, and give the same means,
standard deviations and, in the second line, densities. The loop visits the pairs of heads (i, j >=
i) of each layer, normalises both, multiplies, and appends to a growing array, as project 33 of "50
ML projects to understand LLMs" sets it out. The standard deviations need every dot product of two
columns: the last line is what these alone cost, by one matrix product a matrix (symmetry could save
half of it), so it bounds the ratio. What a loop wastes is all the rest; on a device or with cores
that multiply faster, the ratio is larger.
"""

import argparse
import resource
import time

import numpy as np
import torch

from transformer_lm.pretrained import AttentionWeights, open_attention_weights
from transformer_lm.weights import cosine_statistics, split_qkv, summarize_model

EDGES = np.linspace(-0.4, 0.4, 101)
SMALL = {"n_layer": 12, "n_head": 12, "n_embd": 768}
XL = {"n_layer": 48, "n_head": 25, "n_embd": 1600}


def random_weights(sizes, device="cpu", keep=True):
    """Return AttentionWeights of the given sizes: Gaussian, a fixed seed a name.

    keep: hold all layers in memory, as a loaded model does; else make each layer when it is read.
    """
    from transformers import GPT2Config

    hidden = sizes["n_embd"]
    shapes = {"c_attn.weight": (hidden, 3 * hidden), "c_attn.bias": (3 * hidden,)}
    shapes |= {"c_proj.weight": (hidden, hidden), "c_proj.bias": (hidden,)}
    shapes |= {"ln_1.weight": (hidden,), "ln_1.bias": (hidden,)}
    kept = {}

    def read(name):
        if name in kept:
            return kept[name]
        generator = torch.Generator().manual_seed(sum(map(ord, name)))
        shape = shapes[".".join(name.split(".")[-2:])]
        tensor = (0.1 * torch.randn(shape, generator=generator)).to(device)
        if keep:
            kept[name] = tensor
        return tensor

    return AttentionWeights(GPT2Config(**sizes), read)


def loop_statistics(model, edges=None):
    """The double loop: what ``cosine_statistics`` returns, as numpy arrays."""
    num_heads = model.config.n_head
    statistics, densities = [], []
    for block in model.h:
        for weight in split_qkv(block.attn.c_attn.weight)[:2]:
            heads = torch.split(weight, weight.shape[1] // num_heads, dim=1)
            within, across = np.array([]), np.array([])
            for i in range(num_heads):
                for j in range(i, num_heads):
                    first = heads[i] / torch.norm(heads[i], dim=0, keepdim=True)
                    second = heads[j] / torch.norm(heads[j], dim=0, keepdim=True)
                    cosines = (first.T @ second).cpu().numpy()
                    if i == j:
                        values = cosines[np.triu_indices(len(cosines), k=1)]
                        within = np.concatenate((within, values))
                    else:
                        across = np.concatenate((across, cosines.flatten()))
            for values in (within, across):
                statistics.append((np.mean(values), np.std(values)))
                if edges is not None:
                    densities.append(np.histogram(values, bins=edges, density=True)[0])
    layers = len(model.h)
    statistics = np.array(statistics).reshape(layers, 2, 2, 2)
    return statistics, np.array(densities).reshape(layers, 2, 2, -1) if densities else None


def products_alone(model):
    """Every dot product of two columns of W_Q and of W_K, and nothing else."""
    for block in model.h:
        for weight in split_qkv(block.attn.c_attn.weight)[:2]:
            weight.T @ weight


def seconds(function):
    """Return what the function gives and how long it took, with the device's work done."""
    start = time.perf_counter()
    result = function()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def compare(model, rounds):
    """Time the two sides in turn; print median seconds, ratios and the largest differences."""
    for _ in model.h:  # every layer in memory before a clock runs
        pass
    cosine_statistics(model)
    for edges in (None, EDGES):
        loops, products = [], []
        for _ in range(rounds):
            expected, spent = seconds(lambda edges=edges: loop_statistics(model, edges))
            loops.append(spent)
            found, spent = seconds(lambda edges=edges: cosine_statistics(model, edges=edges))
            products.append(spent)
        loop, product = np.median(loops), np.median(products)
        what = "means and stds" if edges is None else "and densities "
        print(f"{what}   loop {loop:6.3f} s   ours {product:6.3f} s   ratio {loop / product:5.1f}")
        apart = np.abs(found[0].cpu().double().numpy() - expected[0]).max()
        print(f"                 largest difference {apart:.1e}")
    moved = np.abs(found[1].numpy() - expected[1]).sum(axis=-1).max() * (EDGES[1] - EDGES[0]) / 2
    print(f"                 share of cosines in another bin {moved:.1e}")
    alone = np.median([seconds(lambda: products_alone(model))[1] for _ in range(rounds)])
    print(f"products alone   {alone:6.3f} s")


def measure_memory():
    """All of lesson 10's analyses at gpt2-xl's sizes; print seconds and peak memory."""
    model = random_weights(XL, keep=False)
    start = time.perf_counter()
    cosine_statistics(model, edges=EDGES, progress=True)
    summarize_model(model, progress=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"gpt2-xl's sizes: {time.perf_counter() - start:.0f} s, peak memory {peak:.2f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a name or folder; random weights where left out")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        measure_memory()
        return
    if options.model:
        model = open_attention_weights(options.model)
    else:
        model = random_weights(SMALL, options.device)
    sizes = f"{len(model.h)} layers of {model.config.n_head} heads"
    print(f"{sizes}, {options.device}, {options.threads} threads, median of {options.rounds}")
    compare(model, options.rounds)


if __name__ == "__main__":
    main()
