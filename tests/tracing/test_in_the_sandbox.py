"""From a student's notebook to the JSON, the card and the page; and in the hand-out, from data."""

import json
from dataclasses import replace

import torch

from autograder.course.calls import Draw
from autograder.course.course import Course
from autograder.course.steps.bank import Programs
from autograder.course.steps.stored import Stored, pack
from autograder.grading.grade import model_answers
from autograder.reports.cards import Card
from autograder.reports.feedback import code
from autograder.tracing.look import Look
from autograder.tracing.text import Text
from tests.conftest import ROOT
from tests.tracing.helper import look
from tests.tracing.programs import PROGRAMS

WRONG = """
def attention_weights(q, k):
    scores = q @ k.transpose(-2, -1)
    scores = scores / k.shape[-1]
    return torch.softmax(scores, dim=-1)
"""
LIES = """
import torch, sys
steps = sys.modules.get("course_steps")
def attention_weights(q, k):
    if steps is not None:
        steps.run = lambda *args: ({"traces": [{"steps": "no"}]}, {})
    return (q @ k.T) ** 3
"""
HANGS = """
calls = []
def attention_weights(q, k):
    calls.append(1)
    while len(calls) > 3:
        pass
    return (q @ k.T) ** 3
"""
LESSON = "02_queries_keys_values"


def cell_of(task: str) -> str:
    lesson = Course.at(ROOT).lessons[LESSON]
    return next(c.of for c in lesson.with_role("check") if c.task == task)


def result(grader, hand_in, source: str):
    path = hand_in(LESSON, {cell_of("one_head.scale"): source})
    report = grader.grade(path)
    return next(r for r in report.results if r.task == "one_head.scale")


def test_the_json_and_the_card_say_where(grader, hand_in):
    found = result(grader, hand_in, WRONG)
    finding = json.loads(json.dumps(found.to_json()))["findings"][0]
    assert finding["check"] == "scale.not a root" and found.points == 0
    where = finding["where"]
    assert set(where) == {"last_right", "first_wrong", "landmark", "how"}
    assert where["first_wrong"] - where["last_right"] == 1 and where["landmark"] == "the scores"
    assert finding["statement"] == "scores = scores / k.shape[-1]"
    card = repr(Card("one_head.scale", False, found.findings))
    assert f"Line {where['last_right']} is right so far: these are the scores." in card


def test_a_right_answer_has_no_where(grader, hand_in):
    models = model_answers(Course.at(ROOT), LESSON)
    cell = cell_of("one_head.scale")
    found = result(grader, hand_in, models[cell])
    assert found.passed and all(f.where is None for f in found.findings)


def test_a_child_that_lies_or_hangs_over_its_steps_is_judged_by_its_values(grader, hand_in):
    for source in (LIES, HANGS):
        found = result(grader, hand_in, source)
        assert not found.passed and found.findings[0].check not in ("timed out", "bad reply")
        assert found.findings[0].where is None


def test_the_wrong_line_is_marked_on_the_page():
    page = code("a = 1\nb = '<i>'\nc = 3\n", [2])
    before, marked = page.split('<span class="hll">')
    assert ">a<" in before and ">b<" in marked and "&lt;i&gt;" in marked
    assert marked.index("\n</span>") < marked.index(">c<")


def test_a_hand_out_says_the_same_of_the_first_mistake():
    for program in PROGRAMS[10:30:3]:
        own = look(program.task, program.text)
        written = Course.at(ROOT).written[program.task]
        calls = written.exercise.cases(Draw(0))
        tensors: dict[str, torch.Tensor] = {}
        kept = pack(Programs(written, [c.double() for c in calls]), tensors)
        stored = Stored(json.loads(json.dumps(kept)), tensors)
        there = Look(own.trace, stored, 0, Text(program.text))
        assert stored.knows(0)
        assert there.told()[:1] == own.told()[:1], program.what


def test_what_a_hand_out_keeps_holds_no_program():
    written = Course.at(ROOT).written["one_head.scale"]
    calls = [c.double() for c in written.exercise.cases(Draw(0))]
    kept = json.dumps(pack(Programs(written, calls), {}))
    assert "def " not in kept and "lambda" not in kept


def test_what_another_right_answer_has_is_no_mark_of_a_mistake_in_a_hand_out():
    written = Course.at(ROOT).written["fast.tiles"]
    calls = [c.double() for c in written.exercise.cases(Draw(0))]

    def marks(also: tuple) -> set[tuple]:
        kept = pack(Programs(replace(written, also=also), calls), {})
        wrong = [each for place, own in kept.items() for each in own["wrong"]]
        return {(check, *mark) for _, check, _, own in wrong for mark in own}

    assert marks(written.also) < marks(())
