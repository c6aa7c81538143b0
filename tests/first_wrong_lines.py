"""Writes docs/first_wrong_line.md from programs of `tests.tracing.programs`:

python -m tests.first_wrong_lines
"""

from __future__ import annotations

import re

from autograder.reports.findings import where_in_words
from autograder.tracing.edits.ask import ALL_SECONDS
from autograder.tracing.look import SECONDS
from autograder.tracing.proof.replay import MOST_STEPS, MOST_TRIES
from tests.conftest import ROOT
from tests.tracing.helper import told
from tests.tracing.programs import PROGRAMS, Program

PAGE = ROOT / "docs" / "first_wrong_line.md"
HEAD = """\
# The first wrong line

Where an answer is wrong, its steps are compared with those of the course's own answer: each tensor
that an operation of the student's code gave, with one of the answer's, whatever the order of its
axes. The last line that is right and the first that is not are told with what was wrong; a known
mistake is recognised by the numbers of that very step, so that a second one behind it can be named
as well. Where the evidence is not strict, no line is told. No expected value ever is.

Below are twenty wrong programs with what is said of them, on the card, in the JSON
(`findings[].where`) and on the feedback page. `<--` marks the line that is told. Lines are those of
the cell, from 1: of a statement over several lines it is the one on which the wrong part stands.
This page was written from what came out: `python -m tests.first_wrong_lines`.

An author does nothing for it. A step of the answer goes by the name of the variable that holds it
there (`scaled_scores`: the scaled scores); a step without a name, or with one of less than three
letters, is compared all the same and not called anything. What other right answers that an author
gives (`also=`) have on their way is right as well, and no mark of a mistake.

## One small change that makes all right

The steps show where the numbers go wrong. What proves a cause best is a change of the program
itself: another axis, another number, operator, comparison or letter; two sides, arguments or names
in each other's places; a call, a factor, a comma or a line too many; brackets elsewhere; axes
exchanged before a reshape; a line earlier or later, in a loop or behind it; an object of its own
for each of two names; what was given or made and is nowhere used; at last a step that is missing,
such as a root, a copy or a layer. Each such change is made by itself
(`autograder/tracing/edits/kinds`), the likeliest first, and the student's own definitions run with
it, in the same throw-away process. Where every call comes out right with one of them, that is what
is wrong: its line is told, what stands there, and that everything else is right; not what would be
right. A known mistake keeps its own words and gets the line.

A change is tried on one call, where the function that it changes alone is put in its place and an
object built without it is used again; what survives is tried as it stands, on all calls. What runs
is the student's code, in its place: the rounds of loops are counted, so that none that a change
makes endless goes on. Where the steps tell a line, its changes come first: a mask may be turned
round where it is made or where it is used, and its name says which (`valid`, `future`). Where
changes in two functions would do, no line is told; nor where a name is read in one place alone, as
it may have been made wrong as well; nor where something could be missing on several lines.

Where no single change does it, two are tried. Best are two of which each alone gives what a known
mistake gives: each undoes the mistake that the other leaves. Else a second one is looked for behind
those that bring the result nearest to what is asked for, best one that alone does so, too; or
behind one with which a call comes out right and others do not; or a known mistake beside one. At
last the program with such a change, or with the nearest one, is looked at as an answer of its own:
what is told of that is the second. Both are told, with their lines, the one that runs first to be
mended first; beside an error the other line, which is looked for first where the program stops
with the error's cause mended.

A line that takes what another made is told only if it is wrong itself: a scale, a mask, a fill or a
first state is told where it is made. Lines that run in a wrong call, and in none that comes right,
are looked at first. What one line lacks and its siblings have (`k` without the bias of `q` and `v`)
is told of that line.

## Several results

Of what an answer returns side by side some may be right. A line that has no part in what is wrong
is not told; a line that alone has a part in it, and none in what is right, is. Where each of two
results is wrong for a reason of its own, each gets its line.

## Two things at once

The first wrong step is mended, in the recorded steps alone: a right tensor takes its place, and
what follows is computed again. From there the next wrong step is looked for, up to three. Each gets
its line, and the one that runs first is to be mended first, wherever it stands in the text. Two
steps that know nothing of each other are mended together. A line is told where all comes out right
in the end, or where a known mistake has the numbers of that very step. Where two known mistakes
explain all that comes back and the one has its line, the other line is the other's.

Where one changed step makes all right, that one thing is told, and no two known mistakes that come
to the same. Two tensors that change places in one statement are one mistake. A sign that may stand
where a penalty is made or where it comes in is told where it comes in, with the other line.

Two slips in one statement are told of that statement. Two of which one hides the other (a layer
that is left out behind a table of NaN) are told as "Two things at once", without lines.

In a hand-out `check()` says the same, from data: it has the answer's steps for two public calls,
each known mistake's numbers and the pairs as sketches, and no programs. The second of two mistakes
is found there only by mending the first: where no right tensor can take the first one's place, the
second gets no line.

## Where no replay proves it

A known mistake may explain all that comes back, and no single step that is mended make it right:
heads that are cut and merged by a reshape, a state that is read before it is written. Then its own
program shows the line. The first step of the answer that is not right is told, where that program
has the same numbers in the same order, neither the answer nor another right program has them, and
all that the step was made of is right. Parts that are taken of an axis which was cut in another
order are told where it was cut. In a hand-out, which holds no programs, no line is told of these.

What a function returns in another order than asked for is told at its `return`, where the names or
the order in which it was made show that they were right until then; what is unpacked in another
order than a function of the student's own names and returns it, where it is unpacked.

## Where no known mistake fits

A line is told without a name as well, where the evidence is sound: what it was made of is right, it
is not, and with the answer's own tensor in its place, or with one small change of its operation
(another axis, sign or diagonal, an operand exchanged, the step left out), all that follows comes
out right. How it differs is then said in general terms: a factor, a vector as of a lost bias, rows
that are normalised or shifted, another order along an axis, another index, a function too many.
Where another line could have been meant as well, none is told: a row of tensors that is handed on,
names that leave it open, an order that may be undone later, a number that the student adds in lines
of their own.

Of layers under other names, of other sizes or without a bias the line that makes them is told.

## How often it is right

Counted on programs that were written, with their wrong lines, before they ran. Each set was tried
once; most of what was wrong was mended afterwards, so that a set shows nothing any more. All but
the first three were written by readers who knew none of the rules, in styles as odd as students'
are; E is to more than a third made after mistakes told of in public code. A program counts where
its line (of a pair both lines) and the cause are right and nothing false is said beside them.

| set | single mistakes | pairs | told something false | right programs of which nothing was said |
|---|---|---|---|---|
| half of our own, no rule made for it | 18 of 23 | 9 of 12 | 3 of 35 | |
| our own, written afterwards | 37 of 42 | 12 of 13 | 1 of 55 | |
| public code with a slip in each | 14 of 20 | 2 of 4 | 1 of 24 | |
| a reader's | 33 of 40 | 7 of 12 | 2 or 3 of 52 | 64 of 64 |
| A to Z, AA to AC | 448 of 630 | 202 of 351 | 132 of 981 | 286 of 288 |
| AD to BK, by the line | 658 of 822 | 259 of 436 | 109 of 1258 | 222 of 223 |
| BL to BS, mistakes that nobody would list | 78 of 112 | 36 of 64 | 16 of 176 | 24 of 24 |
| BT to CC | 109 of 140 | 58 of 80 | 18 of 220 | 29 of 30 |
| CD to CQ | 164 of 196 | 72 of 112 | 30 of 308 | 41 of 42 |
| CR to DC | 131 of 168 | 67 of 96 | 20 of 264 | 36 of 36 |
| DD to DU | 203 of 252 | 102 of 144 | 32 of 396 | 54 of 54 |
| DV to EI | 154 of 196 | 78 of 112 | 28 of 308 | 40 of 42 |
| EJ to ET | 129 of 154 | 57 of 88 | 23 of 242 | 32 of 33 |
| EU to EW | 34 of 42 | 19 of 24 | 3 of 66 | 8 of 9 |
| EX to FF | 104 of 126 | 50 of 72 | 23 of 198 | 27 of 27 |
| FG to FK | 48 of 70 | 29 of 40 | 18 of 110 | 15 of 15 |
| FL to FQ | 74 of 84 | 37 of 48 | 8 of 132 | 18 of 18 |
| FR to FV | 57 of 70 | 31 of 40 | 11 of 110 | 15 of 15 |
| FW to FZ | 51 of 56 | 25 of 32 | 3 of 88 | 12 of 12 |
| GA to GI | 97 of 126 | 44 of 72 | 22 of 198 | 27 of 27 |

A row adds up sets of mostly 14 single mistakes and 8 pairs, each by another reader, each tried
before anything was mended for it. From AD on the line alone is counted, of a pair both lines. Some
sets were to be harder than homework is: after public threads and public bugs, half-done changes,
habits of numpy and of other languages, long programs, exercises that others had passed over (of GA
to GI seven of nine). Single sets differ by 6 to 14 of 14, so that no trend is proven; the
right programs that are counted as spoken of are left alone by the grader, but for two of C: their
steps, looked at without need, tell a line.

With what was mended for them, sets come to some 95 of 100 single mistakes and 75 to 85 of 100 pairs
by their lines. **That shows nothing about the next one**: of EO to ET (six sets) the first three
were tried with what had been mended for EJ to EN and without it, the last three with more, and each
time both gave the same numbers; of EX to FF the first three gave 34 of 42 single mistakes and 17 of
24 pairs, the next three, with what was mended for those, 33 and 20, the last three, with more, 37
and 13. Right programs of those readers had one place each changed by a
machine, too (a name, a number, an axis, a side, a term, a factor, a call or a statement left out):
in a first draw 420 of 547 wrong programs were told their line and 63 a wrong one, more than half of
those where an error showed lines behind what made it; in a later draw 244 of 295, and 21; in three
more 185 of 220, and 19, and of 78 with two such changes 35 had both lines. With what was mended for
the first two of these the third, 15 of 30 pairs before, had 17, and the same 52 of 60 single ones.
Of another draw 47 of 60, 8 wrong, and 15 of 30 pairs; of one more, with what was mended for it, 38
of 40, 2 wrong, and 12 of 20 pairs; of two more 64 of 70 and 36 of 42, 7 and 4 wrong ones, and
20 of 35 and 11 of 21 pairs; of the last two 55 of 60 and 41 of 46, 7 and 8 wrong ones, and 17 of 30
and 9 of 23 pairs.

What is told wrongly is mostly the line that takes what another one made, the second line of a pair,
or a line of which a known mistake's own program has the numbers. So where a known mistake is told
by its numbers alone, other orders of the statements are tried, and where one of them makes all
right its line is told.

So of single mistakes nobody had thought of, seven to nine of ten get their line and their cause; in
most others the cause or the line alone is told. One program in ten is told a line that another
reader would not point at. Of right programs nothing is said, but of two of C: of a start and of an
edit in place, which were both there. What helps is seldom what the next reader thinks of, so the
later sets are no easier.

## What it costs

Nothing for a right answer: the steps are recorded only where something is wrong. For a wrong one
the work is bound by counts, whatever the machine: for one answer {tries} ways to mend are tried and
{steps} steps made again or compared (what is begun is ended); and by {seconds:.0f} seconds of
processor time. All its changed versions together may take {versions:.0f} seconds: a net for what
counts little and takes long, beyond which nothing more is found. What is the same for everybody of
a class (the answer's steps and landmarks, and those of the known mistakes) is worked out for the
first wrong answer to a task and kept; a hand-out
has the known mistakes' numbers from the beginning. Most of it is the small changes: each is the
student's program once more. What `python benchmarks/first_line.py` printed, in processor time, on a
machine that needed 8 ms for the rest of the judging:

```
40 wrong answers; what their steps cost more:
the first to a task: median 231 ms,
  5.4 times the rest of it (42 ms);
  90 % below 1683 ms, the most 5764 ms;
  above 150 ms: 22 of 40
each after it: median 148 ms,
  19.4 times the rest of it (8 ms);
  90 % below 1581 ms, the most 5564 ms;
  above 150 ms: 20 of 40
  of it the steps recorded 1.3 ms
ways to mend: 10 at the median, at most 402 of 600
steps made again or compared: 32 at the median, at most 6015 of 6000
16 right answers, with the look and without it: 0.99 times the time
```

The rest is judging by values in the trusted process and running the student's code there; starting
a child is not counted in it. A loop over many tokens may end at the bound, and is then told without
a line.
"""
SHOWN = (
    "columns sum to one",
    "softmax twice, einsum",
    "max is a pair",
    "scaled, and softmax over the queries",
    "divided by hidden",
    "half of it for the root",
    "keys and queries exchanged",
    "the minus sign",
    "keys reshaped",
    "values made with the keys' layer",
    "q overwritten",
    "nothing returned",
    "a variable of the notebook",
    "not scaled, softmax twice",
    "the diagonal hidden too",
    "thrown away",
    "zero times infinity",
    "values scrambled",
    "not scaled, and scrambled merge",
    "scaled by hidden, mask one step late",
)
# How the values of one call differ: sizes and numbers as drawn.
_DIFFERENCE = re.compile(r" ?(The result|Part \d of the result) .*")


def page() -> str:
    """The whole page, as it should be."""
    by_name = {program.what: program for program in PROGRAMS}
    head = HEAD.format(tries=MOST_TRIES, steps=MOST_STEPS, seconds=SECONDS, versions=ALL_SECONDS)
    return head + "".join(map(section, map(by_name.__getitem__, SHOWN)))


def section(program: Program) -> str:
    """One program and what is said of it."""
    finding = next(f for f in told(program.task, program.text) if f.fails)
    lines = program.text.rstrip().split("\n")
    marked = finding.where.first_wrong if finding.where else None
    width = max(map(len, lines))
    shown = []
    for number, line in enumerate(lines, 1):
        mark = f"{line:<{width}}  <--" if number == marked else line
        shown.append(f"{number:>2}  {mark}".rstrip())
    said = _DIFFERENCE.sub("", finding.message)
    where = where_in_words(finding) or "No line is told."
    code = "\n".join(shown)
    name = program.what[:1].upper() + program.what[1:]
    rows = [f"- {text}" for text in (said, where) if text]
    return f"\n## {name} (`{program.task}`)\n\n```\n{code}\n```\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
