"""A homework full of script, in every place that a page shows."""

import json

from tests.attacks.entries import NAME, honest

MARK = "document.documentElement.setAttribute('data-harm','1')"
VECTORS = (
    f"<script>{MARK}</script>",
    f'<img src=x onerror="{MARK}">',
    f'<svg onload="{MARK}"><script>{MARK}</script></svg>',
    f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    f'<body onload="{MARK}"><details open ontoggle="{MARK}"><summary>x</summary></details>',
    f'<a href="javascript:{MARK}" autofocus onfocus="{MARK}">x</a>',
    f'<object data="javascript:{MARK}"></object><embed src="javascript:{MARK}">',
    '<meta http-equiv="refresh" content="0;url=https://example.org/">',
    '<base href="https://example.org/"><link rel=stylesheet href="https://example.org/x.css">',
    f'<math><mtext><style><img src=x onerror="{MARK}"></style></mtext></math>',
    f"</pre></code></div></td></table><script>{MARK}</script>",
    f"<!--><script>{MARK}</script>-->",
    f"<<script>{MARK}//<</script>",
    f"<ScRiPt/x>{MARK}</sCrIpT >",
)
MARKDOWN = (
    f"[x](javascript:{MARK})",
    f"[x](JaVa&#115;cript:{MARK})",
    f"[x](data:text/html,<script>{MARK}</script>)",
    f"[x][1]\n\n[1]: javascript:{MARK}",
    f"<javascript:{MARK}>",
    "![x](https://example.org/x.png)",
    f'![x"onerror="{MARK}](x)',
    f'[x](x "title\\" onmouseover=\\"{MARK}")',
    f"`` <script>{MARK}</script> ``",
    f"```html\n<script>{MARK}</script>\n```\n<script>{MARK}</script>",
    f"$x<script>{MARK}</script>$ $$<img src=x onerror={MARK}>$$",
    f"| a |\n|---|\n| <script>{MARK}</script> |",
    f"    <script>{MARK}</script>",
    "\x1b[31m\u202e&lt;script&gt; &#60;script&#62;" + MARK,
)
EVERYTHING = "\n\n".join((*VECTORS, *MARKDOWN))


def notebook() -> str:
    """A homework with script in answers, notes, code, prints, errors, types and metadata."""
    data = json.loads(honest())
    cells = {cell["id"]: cell for cell in data["cells"]}
    for name in ("q1", "q2", "q3", "q4", "q5"):
        cells[name]["source"] = EVERYTHING
    text = json.dumps(VECTORS)
    cells["code-007"]["source"] = f"x = {text}\nprint('\\n'.join(x))\nx"
    cells["self_attention"]["source"] = (
        f"# {VECTORS[0]}\nclass SelfAttention:\n    def __init__(self, *_):\n"
        f"        raise type({VECTORS[1]!r}, (Exception,), {{}})({VECTORS[10]!r})  # {VECTORS[4]}\n"
    )
    cells["multi_head"]["source"] = f"raise ValueError({text!r})"
    data["cells"].insert(2, {"cell_type": "markdown", "id": "<b>", "metadata": {}})
    data["cells"][2]["source"] = EVERYTHING
    data["cells"].insert(3, {"cell_type": "raw", "id": "raw", "metadata": {}})
    data["cells"][3]["source"] = EVERYTHING
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": EVERYTHING}}
    for cell in data["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [output]
    data["metadata"]["title"] = EVERYTHING
    return json.dumps(data)


FILE = "<img src=x onerror=alert(1)>.ipynb"
STUDENT = "mallory <img src=x onerror=alert(1)>"
__all__ = ["EVERYTHING", "FILE", "MARK", "NAME", "STUDENT", "VECTORS", "notebook"]
