"""A model at several stages of its training, to see what it learns and when."""

import copy
import json
import re
from pathlib import Path

from safetensors.torch import load_file

from transformer_lm.pretrained import ModelNotAvailable, find_folder, read_model

GROWING = "growing"
STAGE = re.compile(r"after_(\d+)_tokens\.safetensors")


def load_checkpoints(name=GROWING):
    """Return ``{tokens: model}``, in the order of training: the same model again and again.

    Args:
        name: a model that was kept at several stages: ``"growing"``, on board, or a folder in
            Hugging Face format with the earlier weights beside ``model.safetensors``, in files
            ``after_<tokens>_tokens.safetensors``, and a ``training_log.json``.

    Returns:
        For each number of tokens it had read, a ``GPT2LMHeadModel`` as ``load_gpt2`` gives it, the
        last of them that very model. All have its tokenizer.

    Raises:
        ModelNotAvailable: there is no such folder, or it holds no stages.
    """
    folder = find_folder(name)
    found = {int(hit[1]): path for path in folder.iterdir() if (hit := STAGE.fullmatch(path.name))}
    if not found:
        raise ModelNotAvailable(
            f"The model {str(name)!r} was kept at its last stage only: {str(folder)!r} holds no "
            f"file after_<tokens>_tokens.safetensors; give {GROWING!r}."
        )
    last = read_model(folder, name)
    stages = {tokens: _at_stage(last, found[tokens]) for tokens in sorted(found)}
    log = json.loads((folder / "training_log.json").read_text(encoding="utf-8"))
    return stages | {log["figures"]["tokens"]: last}


def _at_stage(model, path: Path):
    """Return a copy of the model with the weights of a file; the unembedding stays tied."""
    earlier = copy.deepcopy(model)
    weights = {key: value.float() for key, value in load_file(path).items()}
    earlier.load_state_dict(weights | {"lm_head.weight": weights["transformer.wte.weight"]})
    return earlier
