"""A person at a browser: chromium, told by its own debugging protocol what the person does.

Clicks and keys are real ones, which go where the mouse and the focus are. websocket-client, over
which chromium is told, comes with Jupyter's server.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import websocket

from tests.test_feedback import BROWSER

PATIENCE = 300  # seconds, on a busy machine
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
    # Nothing but this machine is there: a page that waits for the network would be seen.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
KEYS = {"Tab": 9}


class Person:
    """One page of a browser, and hands on its mouse and keyboard."""

    def __init__(self, address: str):
        self._socket = websocket.create_connection(address, PATIENCE, suppress_origin=True)
        self._asked = 0

    def _tell(self, method: str, **params) -> dict:
        self._asked += 1
        self._socket.send(json.dumps({"id": self._asked, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("id") == self._asked:
                assert "error" not in said, (method, said)
                return said["result"]

    def go(self, url: str) -> None:
        """Opens an address; what is on its page is waited for by `see`."""
        self._tell("Page.navigate", url=url)

    def width(self, pixels: int) -> None:
        """Makes the page as wide as a phone's or a desk's."""
        size = {"width": pixels, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        self._tell("Emulation.setDeviceMetricsOverride", **size)

    def see(self, script: str):
        """What a JavaScript expression gives, as soon as it is neither empty nor an error."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self._tell("Runtime.evaluate", expression=script, returnByValue=True)
            if "exceptionDetails" not in found and found["result"].get("value"):
                return found["result"]["value"]
            time.sleep(0.2)
        text = self._tell("Runtime.evaluate", expression="document.body.innerText")
        raise AssertionError(f"{script} was never seen on\n{text['result'].get('value')}")

    def click(self, element: str) -> None:
        """Clicks into the middle of an element, given as a JavaScript expression.

        A page may still be moving: the element is clicked where it stands still.
        """
        script = (
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            " const b = e.getBoundingClientRect();"
            " return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null })"
            f"({element})"
        )
        place, before = self.see(script), None
        while place != before:
            time.sleep(0.5)
            place, before = self.see(script), place
        for kind in ("mousePressed", "mouseReleased"):
            x, y = place
            self._tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def follow(self, words: str) -> None:
        """Clicks the link with these words."""
        self.click(
            "[...document.querySelectorAll('a')]"
            f".find(a => a.innerText.trim() === {json.dumps(words)} && a.offsetWidth)"
        )

    def write(self, text: str) -> None:
        """Types a text where the focus is."""
        self._tell("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Presses a key and lets it go."""
        for kind in ("rawKeyDown", "keyUp"):
            code = KEYS[key]
            self._tell(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Person]:
    """A browser with an empty profile in this folder, while the context lasts."""
    profile = folder / "profile"
    with open(folder / "browser.log", "w") as log:
        process = subprocess.Popen(
            [BROWSER, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Person(_page(process, profile / "DevToolsActivePort", folder / "browser.log"))
    finally:
        process.terminate()
        process.wait(60)


def _page(process: subprocess.Popen, written: Path, log: Path) -> str:
    """Where the browser's page is told what to do, as soon as there is one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, IndexError, ValueError):
            port = int(written.read_text().splitlines()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=60) as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.2)
    raise AssertionError(f"the browser did not start:\n{log.read_text()}")
