"""Three lines of forward, with all the others in a cell beside it.

builds: the notebook
answers: right
expect: same
"""

HELPER = """def attend(layer, x):
    q, k, v = layer.q(x), layer.k(x), layer.v(x)
    scores = q @ k.transpose(1, 2)
    scores = scores / layer.scale
    return scores.softmax(-1) @ v"""
ANSWER = """class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden**0.5

    def forward(self, x):
        return attend(self, x)  # [batch_size, seq_len, hidden]
"""


def change(notebook):
    cells = notebook["cells"]
    place = next(i for i, c in enumerate(cells) if c["id"] == "self_attention")
    cells[place]["source"] = ANSWER
    cell = {"cell_type": "code", "source": HELPER, "metadata": {}, "outputs": [], "id": "h"}
    cells.insert(place, {**cell, "execution_count": None})
