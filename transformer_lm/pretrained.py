"""Load a GPT-2 by name or by path, with attention probabilities that always come back.

The small models on board lie in a folder ``models`` beside this package and need no network. The
real GPT-2 sizes (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners") come
from a folder, from the Hugging Face hub's cache, or from the hub.
"""

import os
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import torch

ON_BOARD = ("tiny", "small-on-board", "base-on-board", "large-on-board")  # by size
OTHERS_ON_BOARD = ("growing",)  # with another vocabulary, kept at five stages of its training
HUB = ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")
DEFAULT_MODEL = "large-on-board"  # no head of it was guided

HUB_OWNER = "openai-community"
HUB_TIMEOUT_SECONDS = 5
BYTES_WORTH_A_PROGRESS_BAR = 500_000_000
PACKAGE_PARENT = Path(__file__).resolve().parent.parent


class ModelNotAvailable(RuntimeError):
    """The model asked for could not be found, reached or read; the message says what to do."""


def load_gpt2(name=DEFAULT_MODEL, *, verbose=False):
    """Return ``(model, tokenizer)``: a GPT-2 ready to be looked into.

    Args:
        name: a model on board (``"tiny"``, ``"small-on-board"``, ``"base-on-board"``,
            ``"large-on-board"``, ``"growing"``), a real one (``"gpt2"``, ``"gpt2-medium"``,
            ``"gpt2-large"``, ``"gpt2-xl"``), or a folder in Hugging Face format.
        verbose: print which model is in use, and where it came from.

    Returns:
        A ``transformers.GPT2LMHeadModel`` in float32, in evaluation mode (no dropout), with
        ``attn_implementation="eager"``, and its fast tokenizer, padding with the end-of-text token.

    Raises:
        ModelNotAvailable: the model is not there, cannot be reached, is not a GPT-2, or returns
            no attention probabilities.
    """
    folder, source = _find(str(name))
    model = read_model(folder, name)
    tokenizer = _load_tokenizer(folder, name, model.config.vocab_size)
    check_attentions(model)
    if verbose:
        print(f"Model in use: {name} ({source}), {describe(model)}")
    return model, tokenizer


def guided_heads(model):
    """Return the heads that were shown in training where to look, as pairs (layer, head).

    Three of the models on board have two, as their cards say; OpenAI's have none. Figures mark
    them, for their place is no finding.
    """
    return [tuple(pair) for pair in getattr(model.config, "guided_heads", ())]


class AttentionWeights(Sequence):
    """A GPT-2's attention weights, read from the file one layer at a time, float32.

    It stands in for a model wherever only attention weights are read (``transformer_lm.weights``),
    and needs the memory of one layer: gpt2-xl in megabytes instead of 6 GB. ``config`` is the
    model's; ``h`` is the sequence of blocks, each with ``ln_1``, ``attn.c_attn``, ``attn.c_proj``,
    and their ``weight`` and ``bias``.
    """

    def __init__(self, config, read):
        """read: a function from a name such as "h.0.attn.c_attn.weight" to its tensor."""
        self.config = config
        self._read = read

    @property
    def h(self):
        return self

    def __len__(self):
        return self.config.n_layer

    def __getitem__(self, layer):
        if not -len(self) <= layer < len(self):
            raise IndexError(f"layer {layer} asked for, but the model has {len(self)} layers")
        layer %= len(self)

        def part(name):
            names = (f"h.{layer}.{name}.{each}" for each in ("weight", "bias"))
            weight, bias = (self._read(each).float() for each in names)
            return SimpleNamespace(weight=weight, bias=bias)

        attention = SimpleNamespace(c_attn=part("attn.c_attn"), c_proj=part("attn.c_proj"))
        return SimpleNamespace(ln_1=part("ln_1"), attn=attention)


def open_attention_weights(name=DEFAULT_MODEL):
    """Return the AttentionWeights of a model, by the same names as load_gpt2; little is read yet.

    Raises ModelNotAvailable as load_gpt2 does, and where the weights are not in one safetensors
    file.
    """
    from safetensors import SafetensorError, safe_open

    folder, _ = _find(str(name))
    config = _load_config(folder, name)
    try:
        file = safe_open(folder / "model.safetensors", framework="pt")
        names = set(file.keys())
    except (OSError, SafetensorError):
        raise ModelNotAvailable(
            f"The folder {str(folder)!r} has no readable model.safetensors; "
            "write it with model.save_pretrained(folder)."
        ) from None
    prefix = "transformer." if "transformer.h.0.ln_1.weight" in names else ""
    return AttentionWeights(config, lambda key: file.get_tensor(prefix + key))


def describe(model):
    """Return one line: layers, heads, head size, hidden size, parameters (tied ones once)."""
    config = model.config
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    return (
        f"{config.n_layer} layers, {config.n_head} heads of size {config.n_embd // config.n_head}, "
        f"hidden size {config.n_embd}, {millions:.1f} M parameters"
    )


def check_attentions(model):
    """Raise ModelNotAvailable unless the model returns one attention map a layer.

    With any implementation but "eager", transformers 5 returns an empty tuple and says nothing.
    """
    config = model.config
    two_tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)  # [batch_size, seq_len]
    with torch.no_grad():
        attentions = model(two_tokens, output_attentions=True).attentions or ()
    expected = (1, config.n_head, 2, 2)
    shapes = [None if probs is None else tuple(probs.shape) for probs in attentions]
    if shapes != [expected] * config.n_layer:
        raise ModelNotAvailable(
            f"The model returned {len(shapes)} attention maps, but {config.n_layer} of shape "
            f"{expected} were expected; load it with attn_implementation='eager'."
        )


def find_folder(name):
    """Return the folder that holds the model; raises ModelNotAvailable as load_gpt2 does."""
    return _find(str(name))[0]


def _find(name):
    """Return the folder that holds the model, and a few words on where it came from."""
    if name in (*ON_BOARD, *OTHERS_ON_BOARD):
        return _find_on_board(name), "on board"
    if name in HUB:
        return _find_on_hub(name)
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file():
        return folder, "local folder"
    if folder.is_dir():
        raise ModelNotAvailable(
            f"The folder {name!r} holds no config.json, so it is no Hugging Face model; "
            "give the folder that save_pretrained() wrote."
        )
    raise ModelNotAvailable(
        f"There is no model called {name!r} and no such folder; give one of "
        f"{', '.join(ON_BOARD + OTHERS_ON_BOARD + HUB)}, or the path of a folder."
    )


def models_folders():
    """Return the folders where models on board are looked for: beside the package, then here."""
    return [PACKAGE_PARENT / "models", Path.cwd() / "models"]


def _find_on_board(name):
    for folder in models_folders():
        if (folder / name / "config.json").is_file():
            return folder / name
    raise ModelNotAvailable(
        f"The model {name!r} is not in the folder 'models' beside transformer_lm; "
        "copy that folder from the course's files."
    )


def _find_on_hub(name):
    """Look in the hub's cache first, then on the hub; never wait long for a silent network."""
    import huggingface_hub
    from huggingface_hub import constants

    wanted = ["*.json", "merges.txt", "model.safetensors"]
    for repo in (f"{HUB_OWNER}/{name}", name):
        try:
            folder = huggingface_hub.snapshot_download(
                repo, allow_patterns=wanted, local_files_only=True
            )
        except (OSError, ValueError):
            continue
        if (Path(folder) / "model.safetensors").is_file():
            return Path(folder), "the hub's cache"
    if constants.is_offline_mode() or os.environ.get("HF_HUB_OFFLINE", "0") not in ("0", ""):
        raise _no_hub(name, "is not in the hub's cache and HF_HUB_OFFLINE is set")
    repo = f"{HUB_OWNER}/{name}"
    try:
        huggingface_hub.HfApi().model_info(repo, timeout=HUB_TIMEOUT_SECONDS)
    except Exception:  # any failure of the network reads the same to a student
        why = "is not in the hub's cache and the Hugging Face hub cannot be reached"
        raise _no_hub(name, why) from None
    try:
        return Path(huggingface_hub.snapshot_download(repo, allow_patterns=wanted)), "the hub"
    except Exception as problem:  # the network again, or a full disk
        raise _no_hub(name, f"could not be downloaded ({_first_line(problem)})") from None


def _no_hub(name, why):
    return ModelNotAvailable(
        f"{name!r} {why}; use load_gpt2({DEFAULT_MODEL!r}), "
        "which needs no network, or give the path of a folder that holds the model."
    )


def _load_config(folder, name):
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder)
    except (OSError, ValueError) as problem:
        raise _unreadable(folder, problem) from None
    if config.model_type != "gpt2":
        raise ModelNotAvailable(
            f"{str(name)!r} is a model of type {config.model_type!r}, but this course reads "
            "models of type 'gpt2'; give one of those."
        )
    return config


def read_model(folder, name=None):
    """Return the ``GPT2LMHeadModel`` of a folder as load_gpt2 does, with or without a tokenizer.

    name: what the model is called in messages; the folder where None.
    """
    from safetensors import SafetensorError
    from transformers import GPT2LMHeadModel

    _load_config(folder, folder if name is None else name)
    try:
        with quiet(unless_large=folder):
            model = GPT2LMHeadModel.from_pretrained(
                folder, attn_implementation="eager", dtype=torch.float32
            )
    except (OSError, ValueError, SafetensorError) as problem:
        raise _unreadable(folder, problem) from None
    return model.eval()


@contextmanager
def quiet(unless_large=None):
    """Switch transformers' progress bars off while the ``with`` block runs.

    unless_large: a folder of weights; where they take seconds to read, the bars stay.
    """
    from transformers.utils import logging

    weights = [] if unless_large is None else Path(unless_large).glob("*.safetensors")
    is_large = sum(path.stat().st_size for path in weights) > BYTES_WORTH_A_PROGRESS_BAR
    if is_large or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _unreadable(folder, problem):
    return ModelNotAvailable(
        f"The model in {str(folder)!r} could not be read ({_first_line(problem)}); "
        "the folder needs config.json and model.safetensors, both whole."
    )


def _first_line(problem):
    return (str(problem).splitlines() or [type(problem).__name__])[0]


def _load_tokenizer(folder, name, vocab_size):
    """Read the folder's tokenizer; where it has none, one on board of the same vocabulary."""
    from transformers import AutoTokenizer

    candidates = [Path(folder)]
    for models in models_folders():
        candidates += [models / "gpt2-tokenizer", *(models / each for each in ON_BOARD)]
    for candidate in candidates:
        files = {path.name for path in candidate.glob("*")} if candidate.is_dir() else set()
        if not ("tokenizer.json" in files or {"vocab.json", "merges.txt"} <= files):
            continue
        tokenizer = AutoTokenizer.from_pretrained(candidate)
        if candidate == Path(folder) or len(tokenizer) == vocab_size:
            tokenizer.pad_token = tokenizer.eos_token  # GPT-2 was trained without a padding token
            return tokenizer
    raise ModelNotAvailable(
        f"The folder of {name!r} holds no tokenizer and none on board has its {vocab_size} tokens; "
        "put vocab.json and merges.txt beside the model."
    )
