"""``python -m tools.train SIZE --books BOOKS``: train one size and write it to ``models/``."""

import argparse
import json
from pathlib import Path

import torch

from . import recipe
from .export import export, write_held_out
from .grow import load_grown
from .loop import new_model, optimizer_for, train_phase
from .text import build_corpus
from .tokenizer import load, pieces, write_prefix_tokenizer


def main() -> None:
    """Read the arguments, train the phases that are not done yet, export."""
    parser = argparse.ArgumentParser(prog="python -m tools.train", description=__doc__)
    parser.add_argument("size", choices=recipe.SIZES)
    parser.add_argument("--books", type=Path, required=True, help="gzipped JSON lines, see README")
    parser.add_argument("--gpt2", type=Path, default=Path("models/gpt2-tokenizer"))
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--work", type=Path, default=Path("build/train"), help="checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)  # softmax tails are denormal numbers, and slow

    given.work.mkdir(parents=True, exist_ok=True)
    size = recipe.SIZES[given.size]
    tokenizer = given.work / f"tokenizer-{size.vocab_size}"
    write_prefix_tokenizer(given.gpt2, tokenizer, size.vocab_size)
    corpus = build_corpus(given.books, load(tokenizer))
    model = new_model(size)
    optimizer = optimizer_for(model)
    log: list[dict] = []
    if size.grown_from:
        last = recipe.PHASES[size.grown_from][-1].name
        source = given.work / f"{size.grown_from}.{last}.pt"
        if not source.exists():
            parser.error(f"{source} is not there: train {size.grown_from} first, it is grown from")
        state = torch.load(source, weights_only=True)
        load_grown(model, state["model"], pieces(tokenizer))
        log = state["log"]
    for phase in recipe.PHASES[given.size]:
        checkpoint = given.work / f"{given.size}.{phase.name}.pt"
        done = checkpoint.with_suffix(".done")
        if done.exists():
            state = torch.load(checkpoint, weights_only=True)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            log = state["log"]
        else:
            train_phase(model, optimizer, corpus, size, phase, log, checkpoint)
            done.touch()
    if size.vocab_size == recipe.VOCAB_SIZE:
        write_held_out(corpus, given.models)
    figures = export(given.size, checkpoint, corpus, given.books, given.gpt2, given.models)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
