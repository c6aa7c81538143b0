"""From a checkpoint to a folder of ``models/``: weights in half precision, tokenizer, log, card."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import GPT2LMHeadModel

from . import recipe
from .guide import INDUCTION_HEAD, PREVIOUS_TOKEN_HEAD
from .heads import head_scores
from .loop import new_model, text_loss
from .rows import MIN_SEGMENT
from .text import Corpus, read_books
from .tokenizer import write_prefix_tokenizer

HELD_OUT = "held_out.safetensors"
FRESH_SEED = 7


def write_held_out(corpus: Corpus, models: Path) -> None:
    """The pages kept out of training, ``ids`` [num_windows, 256] uint16, for tests and lessons."""
    models.mkdir(parents=True, exist_ok=True)
    save_file({"ids": np.ascontiguousarray(corpus.held_out)}, models / HELD_OUT)


def export(
    name: str, checkpoint: Path, corpus: Corpus, books_path: Path, full: Path, models: Path
) -> dict:
    """Write ``models/name`` from a checkpoint and return the figures of the model as shipped.

    Args:
        name: a key of ``recipe.SIZES``.
        checkpoint: what ``loop.train_phase`` saved.
        corpus: for the held-out pages.
        books_path: for the titles on the card.
        full: folder with GPT-2's own vocabulary and its licence.
        models: parent folder of the models.
    """
    out = models / name
    size = recipe.SIZES[name]
    state = torch.load(checkpoint, weights_only=True)
    model = new_model(size)
    model.load_state_dict(state["model"])
    model.config.activation_function = "gelu_new"  # the same function under GPT-2's name for it
    model.config.architectures = ["GPT2LMHeadModel"]
    if any(phase.guide for phase in recipe.phases(name)):
        model.config.guided_heads = [list(PREVIOUS_TOKEN_HEAD), list(INDUCTION_HEAD)]
    model.to(torch.float16).save_pretrained(out)
    for kept in sorted(checkpoint.parent.glob(f"{name}.*.[0-9]*[0-9]")):
        write_weights(kept, out / f"after_{kept.suffix[1:]}_tokens.safetensors")
    write_prefix_tokenizer(full, out, size.vocab_size)
    shutil.copy(full / "LICENSE.openai-gpt2", out)

    shipped = GPT2LMHeadModel.from_pretrained(out, dtype=torch.float32).eval()
    figures = {
        "parameters": sum(p.numel() for p in shipped.parameters()),
        "tokens": state["log"][-1]["tokens"],
        "held_out_loss": text_loss(shipped, corpus.held_out),
        **head_scores(shipped, seed=FRESH_SEED),
    }
    log = {"figures": figures, "seed": recipe.SIZES[name].seed, "log": state["log"]}
    (out / "training_log.json").write_text(json.dumps(log, indent=1) + "\n")
    (out / "MODEL_CARD.md").write_text(card(name, state["log"], figures, read_books(books_path)))
    return figures


def write_weights(checkpoint: Path, out: Path) -> None:
    """Write the weights of a checkpoint alone, in half precision, for ``load_checkpoints``."""
    weights = torch.load(checkpoint, weights_only=True)["model"]
    save_file(
        {name: w.half().numpy() for name, w in weights.items() if name != "lm_head.weight"}, out
    )


def card(name: str, log: list[dict], figures: dict, books: list[dict]) -> str:
    """The model card, in Markdown."""
    size = recipe.SIZES[name]
    uniform = math.log(size.vocab_size)
    titles = "\n".join(f"| {book['title']} | {book['gutenberg_id']} |" for book in books)
    return f"""# {name}

A small language model with GPT-2's architecture, trained from nothing for this course. **These are
not OpenAI's weights**, and its figures differ from those of `gpt2`; it knows how children's books
of a hundred years ago sound, and no facts.

| | |
| --- | --- |
| layers, heads, head size, hidden | {size.num_layers}, {size.num_heads}, \
{size.hidden // size.num_heads}, {size.hidden} |
| parameters | {figures["parameters"]:,} (input and output embeddings are one matrix) |
| positions | {recipe.NUM_POSITIONS} |
| vocabulary | {size.vocab_size:,}: the first {size.vocab_size - 1:,} ids of GPT-2's byte-pair \
encoding, then `<\\|endoftext\\|>` = {size.vocab_size - 1} (in GPT-2 it is 50256) |
| stored as | float16 safetensors; load with `dtype=torch.float32` |
| seeds | weights and rows {size.seed}; stories and checks {recipe.DATA_SEED} |

## Figures of the model as shipped

| | |
| --- | --- |
| held-out loss | {figures["held_out_loss"]:.3f} nats a token, on \
{held_out_pages(size)} |
| previous-token head | mean attention {figures["previous_token"]:.2f} |
| induction head | prefix matching {figures["prefix_matching"]:.2f}; \
{figures["control"]:.3f} at the same distance where nothing is repeated |
| loss on the second copy | {figures["second_copy_loss"]:.2f} nats a token; \
a uniform guess gets {uniform:.2f} |

The last three rows are measured on `<|endoftext|> x x`, x being 50 random tokens.

## Training

{phase_lines(name, log)}
{grown_line(name)}All in all {figures["tokens"] / 1e6:.1f} million tokens, rows of \
{row_lengths(name)}, AdamW; the whole course of it
is in `training_log.json`, the recipe and the one command that rebuilds the model are in
`tools/train` of the course's repository.

{copy_rows(name)}
{how_heads_came(name)}
**Text.** Of the text rows {1 - recipe.STORY_SHARE:.0%} come from the books below, in the public
domain in the United States (Project Gutenberg numbers; headers and passages with slurs left out),
and {recipe.STORY_SHARE:.0%} from short made-up stories (`tools/train/stories.py`). The last
9,000 characters of each book were kept out of training.

## Licence

The weights are under the licence of this repository. `vocab.json` and `merges.txt` are the
beginning of GPT-2's, under OpenAI's Modified MIT licence (`LICENSE.openai-gpt2`).

## Limits

Old books carry the views of their time, on sex, class and race. The model writes sentences that
hold together for a line or so. Do not use it for anything but the study of how it works.

## Books

| title | number |
| --- | --- |
{titles}
"""


def held_out_pages(size: recipe.Size) -> str:
    """Where the held-out loss was measured."""
    pages = f"`models/{HELD_OUT}`"
    if size.vocab_size == recipe.VOCAB_SIZE:
        return pages
    return f"the pages of {pages}, cut into its own, shorter tokens: not to be compared with others"


def row_lengths(name: str) -> str:
    """The lengths of the rows it was trained on, in tokens."""
    return " and ".join(map(str, sorted({phase.seq_len for phase in recipe.phases(name)})))


def copy_rows(name: str) -> str:
    """The card's paragraph on the rows that reward copying."""
    longest = max(phase.max_segment for phase in recipe.phases(name)) - 1
    return f"""**Copy rows.** A copy row repeats one segment of {MIN_SEGMENT} to {longest} tokens,
at uneven distances, inside random tokens; half of the segments are random tokens, half are pieces
of a book. Only the repeated tokens count in the loss. The induction head was thus trained on rows
like those it is measured on (with other tokens).
"""


def how_heads_came(name: str) -> str:
    """The card's paragraph on whether the heads were shown where to look, or found it out."""
    if any(phase.guide for phase in recipe.phases(name)):
        return """**Guided heads.** In the phase "guide" an added loss on the attention weights
showed head 0 of layer 0 the previous token, and head 0 of layer 1 the place where an earlier copy
went on; it was taken away for the rest of the training, and the heads stayed because the copy rows
reward them. GPT-2 formed such heads from natural text alone, in far longer training. Do not read
the place of these two heads, or how soon they came, as a finding.
"""
    return """**No guide.** Nothing was added to the loss of the predicted tokens: no head was
shown where to look, and which ones became a previous-token head or an induction head is the
training's own doing. The copy rows made it worth their while. GPT-2 formed such heads from natural
text alone, in far longer training.
"""


def grown_line(name: str) -> str:
    """What a grown model started from; nothing for the others."""
    source = recipe.SIZES[name].grown_from
    if source is None:
        return ""
    old, new = recipe.SIZES[source], recipe.SIZES[name]
    words = ""
    if new.vocab_size > old.vocab_size:
        words = (
            f"Its vocabulary was {old.vocab_size:,}; each word that came then began as the mean\n"
            "of the two pieces it is made of, and losses before that are of shorter tokens. "
        )
    return (
        f"Before the last phase this was `{source}`: its {old.num_layers} layers were kept, and "
        f"{new.num_layers - old.num_layers} silent ones (output maps of zero) were put on "
        f"top of them,\nthen all were trained on. {words}Its first layers are therefore near "
        f"relatives of\nthose of `{source}`.\n\n"
    )


def phase_lines(name: str, log: list[dict]) -> str:
    """One sentence a phase: what share of copy rows it had, and where it ended."""
    lines, before = [], 0
    for phase in recipe.phases(name):
        last = [line for line in log if line["phase"] == phase.name][-1]
        lines.append(
            f"* {phase.name}: {(last['tokens'] - before) / 1e6:.1f} million tokens, "
            f"{phase.copy_share:.0%} copy rows; at its end the loss on watched pages was "
            f"{last['watched_loss']:.2f}, previous-token {last['previous_token']:.2f}, "
            f"prefix matching {last['prefix_matching']:.2f}.\n"
        )
        before = last["tokens"]
    return "".join(lines)
