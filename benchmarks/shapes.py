"""How long the shape comments of a class take: trace, three runs, verdicts; torch imported before.

The ratio to `import torch` in the same run says how it weighs on any machine.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

X = "(x[batch_size, seq_len, input_size]"
CALLS = {
    "SelfAttention": f"SelfAttention(input_size, hidden){X})",
    "MultiHeadSelfAttention": f"MultiHeadSelfAttention(input_size, hidden, num_heads){X}); "
    f"MultiHeadSelfAttention(input_size, hidden, num_heads, causal=True){X}, "
    "return_attention=True)",
}


def best(function, times: int = 5) -> float:
    """The shortest of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    from autograder.one_thread import one_thread

    one_thread()
    command = [sys.executable, "-c", "import torch"]
    importing = best(lambda: subprocess.run(command, check=True), times=2)
    from autograder.shapes import check_source, plan

    text = (ROOT / "solutions" / "05_homework.py").read_text(encoding="utf-8")
    print(f"import torch: {importing * 1000:.0f} ms")
    for name, call in CALLS.items():
        start = text.index(f"class {name}(nn.Module)")
        source = text[start : text.index("\n# %%", start)]
        seconds = best(lambda s=source, c=call: check_source(s, plan(c)))
        print(f"{name}: {seconds * 1000:.0f} ms, {seconds / importing:.2f} of `import torch`")


if __name__ == "__main__":
    main()
