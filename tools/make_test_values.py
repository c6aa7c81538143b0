"""Writes transformer_lm/test_values.py: `python tools/make_test_values.py`.

The expected outputs are computed in float64 with PyTorch's own
`scaled_dot_product_attention`, not with the classes that they test.
"""

from pathlib import Path

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

FILE = Path(__file__).parents[1] / "transformer_lm" / "test_values.py"
BATCH_SIZE, SEQ_LEN, INPUT_SIZE, HIDDEN = 2, 5, 7, 11
NUM_HEADS, HEAD_SIZE = 3, 4

HEADER = '''"""Fixed weights, inputs and outputs to test an implementation with. Data only.

Made by tools/make_test_values.py from PyTorch's own attention in float64. All sizes are pairwise
different, so that no two dimensions can be mistaken for each other. Compare with a tolerance:
torch.allclose(output, expected, atol=1e-5).
"""

import torch
'''


def draw(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Numbers with two decimals, so that they are exact in the file."""
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 100).round() / 100


def project(values: dict, name: str) -> torch.Tensor:
    """One projection of the input."""
    return linear(values["x"], values[f"{name}_weight"], values[f"{name}_bias"])


def single() -> dict[str, torch.Tensor]:
    """Values for SelfAttention(7, 11)."""
    generator = torch.Generator().manual_seed(2017)
    values = {"x": draw(generator, BATCH_SIZE, SEQ_LEN, INPUT_SIZE)}
    for name in "kqv":
        values[f"{name}_weight"] = draw(generator, HIDDEN, INPUT_SIZE)
        values[f"{name}_bias"] = draw(generator, HIDDEN)
    values["output"] = scaled_dot_product_attention(*(project(values, n) for n in "qkv"))
    return values


def multi() -> dict[str, torch.Tensor]:
    """Values for MultiHeadSelfAttention(7, 12, num_heads=3), with and without the mask."""
    generator = torch.Generator().manual_seed(762)
    hidden = NUM_HEADS * HEAD_SIZE
    values = {"x": draw(generator, BATCH_SIZE, SEQ_LEN, INPUT_SIZE)}
    for name in "kqv":
        values[f"{name}_weight"] = draw(generator, hidden, INPUT_SIZE)
        values[f"{name}_bias"] = draw(generator, hidden)
    values["mix_weight"] = draw(generator, hidden, hidden)
    values["mix_bias"] = draw(generator, hidden)
    q, k, v = (project(values, n).unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2) for n in "qkv")
    for name, causal in (("output", False), ("causal_output", True)):
        heads = scaled_dot_product_attention(q, k, v, is_causal=causal)
        merged = heads.transpose(1, 2).flatten(-2)
        values[name] = linear(merged, values["mix_weight"], values["mix_bias"])
    return values


def text(name: str, doc: str, values: dict[str, torch.Tensor]) -> str:
    """One class of the file."""
    lines = [f"class {name}:", f'    """{doc}"""', ""]
    for key, tensor in values.items():
        digits = 6 if "output" in key else 2
        lines.append(f"    {key} = torch.tensor(  # {list(tensor.shape)}")
        lines += rows(tensor.tolist(), digits, 8, last="")
        lines += ["    )"]
    return "\n".join(lines)


def rows(values: list, digits: int, indent: int, last: str = ",") -> list[str]:
    """A nested list, one innermost row a line (or several, to stay within 99 columns)."""
    blanks = " " * indent
    if isinstance(values[0], list):
        inner = [line for v in values for line in rows(v, digits, indent + 4)]
        return [f"{blanks}[", *inner, f"{blanks}]{last}"]
    numbers = [f"{v:.{digits}f}" for v in values]
    if len(line := f"{blanks}[{', '.join(numbers)}]{last}") <= 99:
        return [line]
    return [f"{blanks}[", *(f"{blanks}    {n}," for n in numbers), f"{blanks}]{last}"]


def render() -> str:
    """The whole file."""
    return "\n\n".join(
        [
            HEADER,
            text("SelfAttentionTestValues", "For SelfAttention(input_size=7, hidden=11).", single())
            + "\n",
            text(
                "MultiHeadAttentionTestValues",
                "For MultiHeadSelfAttention(input_size=7, hidden=12, num_heads=3).",
                multi(),
            )
            + "\n",
        ]
    )


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
