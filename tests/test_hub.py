"""The way to the hub, with a small hub of our own: what it serves is downloaded and cached."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import ROOT

REPO = "openai-community/gpt2"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LOAD = """
from transformer_lm.pretrained import load_gpt2
model, tokenizer = load_gpt2("gpt2", verbose=True)
print(tokenizer("Today we can go to").input_ids, model.config.n_layer)
"""


@pytest.fixture
def hub():
    """A server that answers as the Hugging Face hub does, with a model on board as its gpt2.

    `asked` holds the paths that were asked for; a file named in `lost` is not served.
    """
    files = {path.name: path.read_bytes() for path in (ROOT / "models" / "tiny").iterdir()}
    asked, lost = [], set()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            asked.append(self.path)
            name = self.path.removeprefix(f"/{REPO}/resolve/{COMMIT}/")
            if self.path.startswith(f"/api/models/{REPO}/tree/"):
                tree = [
                    {"type": "file", "path": n, "size": len(f), "oid": hashlib.sha1(f).hexdigest()}
                    for n, f in files.items()
                ]
                self.answer(200, json.dumps(tree).encode(), "application/json")
            elif self.path.startswith(f"/api/models/{REPO}"):
                siblings = [{"rfilename": name} for name in files]
                facts = {"id": REPO, "sha": COMMIT, "siblings": siblings}
                self.answer(200, json.dumps(facts).encode(), "application/json")
            elif name in files and name not in lost:
                self.answer(200, files[name], "application/octet-stream")
            else:
                self.answer(404, b"", "text/plain")

        def answer(self, status, body, kind):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.asked, server.lost = asked, lost
    yield server
    server.shutdown()
    server.server_close()


def load(home, endpoint: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HUB_OFFLINE": "0", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.slow
def test_a_model_of_the_hub_is_downloaded_once_and_then_read_from_the_cache(hub, tmp_path):
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    first = load(tmp_path, endpoint)
    assert first.returncode == 0, first.stderr
    assert "(the hub)" in first.stdout
    assert "[8888, 356, 460, 467, 284] 2" in first.stdout
    assert any(path.endswith("/model.safetensors") for path in hub.asked)

    hub.asked.clear()
    second = load(tmp_path, endpoint)
    assert "(the hub's cache)" in second.stdout
    assert "[8888, 356, 460, 467, 284] 2" in second.stdout
    assert hub.asked == []


@pytest.mark.slow
def test_a_download_that_breaks_off_says_so(hub, tmp_path):
    hub.lost.add("model.safetensors")
    done = load(tmp_path, f"http://127.0.0.1:{hub.server_port}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "could not be downloaded (" in last
    assert "load_gpt2('large-on-board')" in last
