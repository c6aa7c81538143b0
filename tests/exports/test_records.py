"""What the gradebook keeps of a result comes back as the same result."""

import json
from dataclasses import asdict

from autograder.course.asking import Finding, Verdict, Where
from autograder.grading.records import result
from autograder.reports.report import Result


def test_a_result_comes_back_as_it_was():
    where = Where(3, 4, "the scores", "its values differ")
    found = Finding("a", Verdict.WRONG, "It is wrong.", 4, "x = y", mistake="a.b", where=where)
    before = Result("t", 1.0, 2.0, False, False, (found, Finding("b", Verdict.TRUE, "")))
    assert result(json.loads(json.dumps(asdict(before)))) == before
