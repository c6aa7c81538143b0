"""A vocabulary of characters: the simplest tokenizer, one token a character."""

import json
from pathlib import Path

import torch


class Characters:
    """Turns text into ids and back. Ids follow the order of the characters, each counted once.

    ``Characters(text)`` takes the characters of a text, in alphabetical order.
    """

    def __init__(self, text):
        self.characters = sorted(set(text))
        self.ids = {character: id for id, character in enumerate(self.characters)}

    def __len__(self):
        return len(self.characters)

    def encode(self, text):
        """Return the ids of a text, LongTensor[len(text)]. Raises ValueError at an unknown one."""
        unknown = sorted(set(text) - set(self.ids))
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not among the {len(self)} characters of this vocabulary; "
                "make it from a text that has all of them"
            )
        return torch.tensor([self.ids[character] for character in text], dtype=torch.long)

    def decode(self, ids):
        """Return the text of ids, a tensor [n] or a list."""
        return "".join(self.characters[id] for id in torch.as_tensor(ids).tolist())

    def save(self, folder):
        """Write the vocabulary as a Hugging Face tokenizer, which ``load_gpt2`` reads."""
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(models.WordLevel(self.ids))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)

    @classmethod
    def load(cls, folder):
        """Read what ``save`` wrote."""
        stored = json.loads((Path(folder) / "tokenizer.json").read_text(encoding="utf-8"))
        return cls(stored["model"]["vocab"])
