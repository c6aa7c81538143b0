"""What the names of dimensions usually mean.

A *concept* is what a size is for: batch, seq, input, hidden, heads, head_size. Words that can mean
one thing only are strong evidence; letters and words with several meanings are a preference that
the rest of a function's comments may overrule.
"""

from __future__ import annotations

import re
from functools import lru_cache

ENOUGH = 2  # comments that say what a name stands for
KEPT = 4_096  # names whose meaning is kept: a class of students writes a few hundred

STRONG = {
    "batch": """batch batch_size batchsize batch_dim batch_sz bs bsz b_size b_sz nbatch n_batch
        num_batch minibatch minibatch_size size_of_batch num_examples num_samples samples examples
        num_sequences n_samples batch_n mb""",
    "seq": """seq seq_len seqlen seq_length seqlength seq_size seq_dim sequence sequence_length
        sequence_len sequence_size sequencelength seq_l slen n_seq len_seq length_of_sequence
        num_tokens n_tokens ntokens num_token n_token tokens token token_len token_length
        number_of_tokens timesteps timestep time_steps n_steps num_steps time sent_len sentence_len
        sentence_length sentence num_words n_words words num_positions positions query_len
        query_length key_len key_length q_len k_len kv_len value_len q_length k_length q_seq_len
        k_seq_len kv_seq_len seq_len_q seq_len_k len_q len_k len_kv num_queries num_keys n_queries
        n_keys seqs seq_q seq_k input_len input_length context_len""",
    "input": """input input_size input_dim input_dims input_features input_sz input_d inputs
        in_dim in_dims in_size in_features d_in dim_in d_input inp inp_size inp_dim insize
        size_of_input n_input input_width""",
    "hidden": """hidden hidden_size hidden_dim hidden_dims hidden_sz hidden_units hidden_d hid
        hid_dim hid_size d_hid d_hidden dim_hidden d_out dim_out out_dim out_size out_features
        output_size output_dim output_features d_output hiddensize hiddendim n_hidden num_hidden
        size_of_hidden hidden_width hidden_states hidden_state hidden_features""",
    "heads": """heads num_heads n_heads n_head nheads nhead num_head number_of_heads head_num
        heads_num head_count heads_count num_attention_heads num_attn_heads n_attn_heads
        attention_heads attn_heads numheads number_heads nb_heads h_num head_number no_of_heads
        count_of_heads nr_heads""",
    "head_size": """head_size head_dim head_dims headsize headdim d_head dim_head head_d head_sz
        dim_per_head size_per_head hidden_per_head head_hidden head_width per_head per_head_dim
        per_head_size d_per_head head_features hidden_size_per_head hidden_dim_per_head
        attention_head_size att_head_size attn_head_size size_of_head head_hidden_size
        head_hidden_dim hidden_head per_head_hidden head_channels size_of_each_head head_feature
        features_per_head dims_per_head channels_per_head""",
}
CHANNELS = ("C", "c")  # for the channels of each layer, whatever their number is
WEAK = {
    "d_k dk d_v dv d_q dq d_kv dim_k dim_v dim_q key_size key_dim query_size query_dim value_size "
    "value_dim depth qk_dim": ("head_size", "hidden"),
    "dim dims d_model dmodel model_dim dim_model embed embed_dim embed_size emb emb_dim emb_size "
    "embedding embedding_dim embedding_size n_embd n_embed channels channel features feature "
    "feature_dim feature_size feat feats size width units vec vector_size vector n_dim ndim "
    "n_features num_features model_size emb_d embd": ("input", "hidden", "head_size"),
    "out output outputs": ("hidden", "head_size"),
    "len length src_len tgt_len source_len target_len src tgt source target src_seq_len step steps "
    "tgt_seq_len block_size context context_length context_size max_len n_ctx ctx": ("seq",),
    "head": ("heads", "head_size"),
    "b B": ("batch",),
    "N": ("batch", "seq", "heads"),
    "n": ("heads", "seq", "batch"),
    "s S t T l L q k Q K M m": ("seq",),
    "h H": ("heads", "hidden", "head_size"),
    "d D": ("hidden", "head_size", "input"),
    "c C e E f F": ("hidden", "input", "head_size"),
    "i I": ("input",),
    "o O": ("hidden",),
    "nh NH nH n_h h_n hn Nh num_h": ("heads",),
    "hs hd dh Dh HD HS d_h D_h h_d h_s hdim hsz": ("head_size",),
    "hi di d_i": ("input",),
}
# What has a side of so many places, and numbers for it beside.
PIECES = {"patch", "kernel", "window", "block", "tile", "crop", "image", "img", "grid", "pool"}
WIDTHS = ("_dim", "_dims", "_features", "_channels")
WORD_TO_CONCEPT = {word: c for c, words in STRONG.items() for word in words.split()}
WORD_TO_CHOICES = {w: c for words, c in WEAK.items() for w in words.split()}
WORDS = frozenset(WORD_TO_CONCEPT) | {w for w in WORD_TO_CHOICES if len(w) > 2}


@lru_cache(KEPT)
def normal(name: str) -> str:
    """One spelling for `self.num_heads`, `Num Heads` and `num_heads`; letters keep their case."""
    name = name.rsplit(".", 1)[-1]
    if len(name) <= 2:
        return name
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    name = re.sub(r"lenght|lenth", "length", name.lower())  # as it is often written
    return re.sub(r"_+", "_", name).strip("_")


@lru_cache(KEPT)
def concept(name: str) -> str | None:
    """The one thing a word can mean, or None."""
    name = normal(name)
    if name in WORD_TO_CONCEPT:
        return WORD_TO_CONCEPT[name]
    for plain in (name.removesuffix("s"), name.replace("number_of_", "num_"), name.lower()):
        if plain in WORD_TO_CONCEPT:
            return WORD_TO_CONCEPT[plain]
    return None


def choices(name: str) -> tuple[str, ...]:
    """What a letter or an ambiguous word may mean, most likely first."""
    name = normal(name)
    return WORD_TO_CHOICES.get(name) or WORD_TO_CHOICES.get(name.removesuffix("s"), ())


def counts(name: str) -> bool:
    """Whether a name counts what there is one number of only: `[b, b]` is no square."""
    return {concept(name), *choices(name)} - {None} in ({"batch"}, {"heads"})


def may_be_length(name: str) -> bool:
    """Whether a word may mean the length of a sequence: `seq_len`, `block_size`, `T'`."""
    plain = normal(name.rstrip("'")).removeprefix("max_")
    ends = plain.endswith(("_len", "_length"))
    return ends or "seq" in (concept(plain), *choices(plain))


def spelled_like(name: str, values: dict[str, object]) -> set[int]:
    """The whole numbers among variables and attributes that are spelled like a name."""
    wanted = stem(normal(name))
    ends = {n: n.rsplit(".", 1)[-1] for n, v in values.items() if isinstance(v, int)}
    return {int(values[n]) for n, end in ends.items() if stem(normal(end)) == wanted}


def known(name: str) -> bool:
    """Whether the word is one that people write for a dimension."""
    return concept(name) is not None or bool(choices(name))


_HYPHENS = """
    batch_size seq_len seq_length sequence_length head_dim head_size hidden_size hidden_dim
    hidden_state num_heads n_heads num_tokens n_tokens input_size input_dim output_dim
    output_size embed_dim embedding_dim embedding_size emb_dim emb_size model_dim feature_dim
"""
HYPHENS = frozenset(_HYPHENS.split())


def hyphenated(name: str) -> bool:
    """Whether `seq-len` is one name, and no subtraction."""
    return name.lower() in HYPHENS


def stem(name: str) -> str:
    """What is left of a name without its unit: `seq_len` and `seq`, `num_heads` and `heads`."""
    plain = normal(name)
    for end in ("_size", "_len", "_length", "_dim", "_dims", "_sz", "size", "_features"):
        if plain.endswith(end) and len(plain) > len(end) + 1:
            return plain.removesuffix(end)
    for begin in ("num_", "n_", "number_of_"):
        if plain.startswith(begin):
            return plain.removeprefix(begin).rstrip("s") + "s"
    return plain


def akin(name: str, other: str) -> bool:
    """Whether two names differ by a unit only, and mean one thing: `head` is no `head_dim`."""
    means = {concept(n) or next(iter(choices(n)), None) for n in (name, other)}
    if stem(name) in PIECES and len({normal(n).endswith(WIDTHS) for n in (name, other)}) == 2:
        return False  # `patch_dim` is how wide it is, and `patch_size` its side
    return stem(name) == stem(other) and (None in means or len(means) == 1)


def alike(word: str, candidates) -> list[str]:
    """The names of five letters or more that are one letter or one mark away."""
    found = (c for c in sorted(candidates) if min(len(c), len(word)) >= 5)
    return [c for c in found if _one_edit(word, c)]


def near(word: str, candidates) -> str | None:
    """A name that is one slip of the keyboard away: `hiden` for `hidden`.

    `batch_size'`, `d_model3` and `seq_lenk` are names of their own, and so is a word that people
    write: `batch_size` is no slip for `patch_size`.
    """
    if known(word):
        return None
    return next((c for c in alike(word, candidates) if not _of_its_own(word, c)), None)


def _of_its_own(word: str, other: str) -> bool:
    """Whether a digit or a mark tells two names apart, or a letter behind: `seq_lenk`."""
    signs = [re.sub(r"[^\W\d_]|_", "", w) for w in (word, other)]
    return signs[0] != signs[1] or (word[:-1] == other and word[-1] not in ("s", other[-1]))


def _one_edit(a: str, b: str) -> bool:
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    i = 0
    while i < min(len(a), len(b)) and a[i] == b[i]:
        i += 1
    if len(a) == len(b):
        return a[i + 1 :] == b[i + 1 :] or (
            a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
        )
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[i + 1 :] == shorter[i:]


def of_role(plain: str, sizes: dict[str, int]) -> int | None:
    """The size that the call has by that name."""
    return next((size for role, size in sizes.items() if normal(role) == plain), None)


def by_concept(plain: str, sizes: dict[str, int]) -> int | None:
    """The size of a word that can mean one thing only, a slip of the keyboard allowed."""
    meant = concept(plain)
    if meant is None:
        slip = near(plain, {*WORDS, *map(normal, sizes)})
        meant = concept(slip) if slip else None
    if meant is None:
        return None
    found = {size for role, size in sizes.items() if concept(role) == meant}
    if not found and meant == "head_size":
        wide = [s for r, s in sizes.items() if concept(r) == "hidden"]
        heads = [s for r, s in sizes.items() if concept(r) == "heads"]
        found = {w // h for w in wide for h in heads if w % h == 0}
    return found.pop() if len(found) == 1 else None


class Confirmed:
    """Where names stand alone for sizes in true comments: their lines, by run, name and size."""

    def __init__(self):
        self.found: dict[tuple[int, str], dict[int, set[int]]] = {}
        self.parts: dict[tuple[int, str], dict[int, set[int]]] = {}  # as in `n + 1`, `2 * n`

    def note(self, run: int, name: str, size: int, line: int, part: bool = False) -> None:
        found = self.parts if part else self.found
        found.setdefault((run, name), {}).setdefault(size, set()).add(line)

    def of(self, run: int, name: str) -> dict[int, set[int]]:
        """The lines in which a name stands for each of its sizes."""
        return self.found.get((run, name), {})

    def usual(self, run: int, name: str) -> int | None:
        """The size that a name has in most lines."""
        said = self.of(run, name)
        return max(said, key=lambda s: (len(said[s]), -s), default=None)

    def elsewhere(self, run: int, name: str, lines: tuple[int, int]) -> int | None:
        """The only size of a name outside of a function's lines, where enough comments say it."""
        there = {
            s: {n for n in of if not lines[0] <= n <= lines[1]}
            for s, of in self.of(run, name).items()
        }
        there = {s: of for s, of in there.items() if of}
        one = len(there) == 1 and min(map(len, there.values())) >= ENOUGH
        return next(iter(there)) if one else None

    def called(self, run: int, size: int, name: str, lines: tuple[int, int]) -> int:
        """How many comments within a function's lines have another name for a size."""
        others = self.lines_of(run, size, but=name) - self.of(run, name).get(size, set())
        return sum(lines[0] <= n <= lines[1] for n in others)

    def lines_of(self, run: int, size: int, but: str = "") -> set[int]:
        """The lines in which any name, or any but one, stands for a size."""
        items = self.found.items()
        return {line for (r, n), of in items if r == run and n != but for line in of.get(size, ())}
