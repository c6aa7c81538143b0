"""The made-up class of `autograder demo`: what each student changed in the model answers."""

from autograder.grading.demo import Student, put, swap

LESSON = "05_homework"
DUE = "2026-03-02 12:00:00"
LATE = "2026-03-04 09:00:00 UTC"

THREE_LINES = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2)  # [batch_size, seq_len, seq_len]
        probs = (scores / self.scale).softmax(dim=-1)  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]
""".strip()

UNSCALED = THREE_LINES.replace("(scores / self.scale)", "scores")
SWAPPED_COMMENT = THREE_LINES.replace(
    "[batch_size, seq_len, hidden]", "[batch_size, hidden, seq_len]"
)
CROWDED = THREE_LINES.replace("scores = self.q(x) @ ", "scores=self.q(x)@")
HOSTILE = "import os\nimport torch\ntorch.allclose = lambda *a, **k: True\nos._exit(0)"
CHATTY = "import sys\nimport warnings\nwarnings.warn('a warning')\nprint('note', file=sys.stderr)"


single, multi = "self_attention", "multi_head"
STUDENTS = [
    Student("ada", "everything right", lambda a: a),
    Student("ben", "forgot to scale", lambda a: {**a, single: UNSCALED}),
    Student("chloe", "three lines, for the bonus", lambda a: {**a, single: THREE_LINES}),
    Student("dev", "three lines, one comment false", lambda a: {**a, single: SWAPPED_COMMENT}),
    Student("emil", "handed in blank", lambda a: {}),
    Student("fay", "right, but late", lambda a: a, handed_in=LATE),
    Student("gil", "right, with warnings on stderr", put(single, CHATTY)),
    Student("hana", "a loop without end", put(multi, "while True:\n    pass")),
    Student("ivan", "not a notebook any more", lambda a: '{"cells": [ broken'),
    Student("jo", "renamed the file", lambda a: a, file="homework final (2).ipynb"),
    Student("kim", "three lines, but crowded", lambda a: {**a, single: CROWDED}),
    Student("lea", "hides nothing when causal", swap(multi, "if self.causal", "if False")),
    Student("mallory", "patches torch and exits", put(multi, HOSTILE)),
]
