"""Every program in attacks/ ends as its first lines say, and harms nobody."""

import re
from pathlib import Path

import pytest

from autograder.sandbox import ChildFailed
from tests.forms import share
from tests.sandbox.conftest import ask_honestly, left_over

FOLDER = Path(__file__).parent / "attacks"
ATTACKS = sorted(path.stem for path in FOLDER.glob("*.py"))


def verdict(child, source: str, given: dict, seconds: float) -> tuple[str, list]:
    """How the attack, and a second question after it, went; and what the attack got hold of."""
    try:
        attack = {"op": "run", "source": source, "given": given}
        header, _ = child.request(attack, {}, seconds=seconds)
        child.request({"op": "facts", "source": "1"}, {})
    except ChildFailed as failure:
        assert failure.reason.endswith(".") and "Traceback" not in failure.reason
        return failure.kind, []
    return "ok", header["found"]


@pytest.mark.parametrize("attack", share(ATTACKS, 3))
def test_an_attack_ends_as_expected_and_harms_nobody(box, attack, canary, marker):
    source = (FOLDER / f"{attack}.py").read_text()
    expected = re.search(r"^expected: (.+)$", source, re.MULTILINE)[1].split(" | ")
    seconds = re.search(r"^seconds: (.+)$", source, re.MULTILINE)

    # The warm process of another test's sandbox may still be there, in the order of another run.
    before = {each.partition(":")[0] for each in left_over(box, str(marker))}
    with box.child() as child:
        kind, found = verdict(child, source, canary.given, float(seconds[1]) if seconds else 8)

    assert kind in expected
    assert found == []
    after = left_over(box, str(marker))
    assert [each for each in after if each.partition(":")[0] not in before] == []
    assert canary.look() == canary.before
    assert len(child.printed) <= box.limits.printed
    with box.child() as child:
        ask_honestly(child)
