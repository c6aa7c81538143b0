"""A prefix of GPT-2's byte-pair vocabulary.

GPT-2's ids are its 256 bytes, then its merges in order (checked below), so the first N ids
together with the first N - 256 merges are a complete byte-pair vocabulary of their own: a token
that is kept has the same id as in GPT-2.
"""

import json
from pathlib import Path

from transformers import GPT2TokenizerFast

from .recipe import NUM_POSITIONS

BYTE_IDS = 256


def write_prefix_tokenizer(full: Path, out: Path, vocab_size: int) -> None:
    """Write the files of the shortened tokenizer.

    Args:
        full: folder with GPT-2's own ``vocab.json`` and ``merges.txt``.
        out: folder that receives ``vocab.json``, ``merges.txt`` and ``tokenizer_config.json``.
        vocab_size: so many ids less one are kept; the last is <|endoftext|>.

    Raises:
        ValueError: the ids of ``full`` do not follow the order of its merges.
    """
    vocab = json.loads((full / "vocab.json").read_text(encoding="utf-8"))
    header, *merges = (full / "merges.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    end_of_text = vocab_size - 1
    for rank, merge in enumerate(merges):
        if vocab.get(merge.replace(" ", "")) != BYTE_IDS + rank:
            raise ValueError(
                f"merge {rank} of {full}/merges.txt is not token {BYTE_IDS + rank} of vocab.json. "
                "Only GPT-2's own two files can be shortened; fetch them again."
            )
    kept = {token: i for token, i in vocab.items() if i < end_of_text}
    kept["<|endoftext|>"] = end_of_text
    out.mkdir(parents=True, exist_ok=True)
    (out / "vocab.json").write_text(
        json.dumps(kept, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
    lines = [header, *merges[: end_of_text - BYTE_IDS]]
    (out / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        "model_max_length": NUM_POSITIONS,
        "add_prefix_space": False,
        "bos_token": "<|endoftext|>",
        "eos_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def pieces(folder: Path) -> list[tuple[int, int]]:
    """The two ids of which each id beyond the bytes is made, in the order of the ids."""
    ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    _, *merges = (folder / "merges.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [(ids[left], ids[right]) for left, right in map(str.split, merges)]


def load(folder: Path) -> GPT2TokenizerFast:
    """The fast tokenizer of a folder, read from its files alone."""
    return GPT2TokenizerFast.from_pretrained(folder, local_files_only=True)
