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
letters, is compared all the same and not called anything.

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
last the program with such a change is looked at as an answer of its own: what is told of that is
the second. Both are told, with their lines, the one that runs first to be mended first; beside an
error the other line.

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
| A | 27 of 40 | 12 of 20 | 9 of 60 | 25 of 25 |
| B | 34 of 40 | 9 of 20 | 3 of 60 | 25 of 25 |
| C | 33 of 40 | 17 of 24 | 8 of 64 | 18 of 20 |
| D | 22 of 24 | 8 of 14 | 4 of 38 | 12 of 12 |
| E | 27 of 44 | 18 of 24 | 8 of 68 | 24 of 24 |
| H | 20 of 34 | 11 of 18 | 8 of 52 | 14 of 14 |
| K | 21 of 36 | 10 of 18 | 11 of 54 | 12 of 12 |
| M | 20 of 40 | 8 of 20 | 11 of 60 | 16 of 16 |
| N | 26 of 40 | 6 of 20 | 8 of 60 | 16 of 16 |
| O | 23 of 40 | 6 of 20 | 9 of 60 | 16 of 16 |
| Q | 26 of 30 | 8 of 15 | 4 of 45 | 12 of 12 |
| V | 16 of 24 | 8 of 16 | 5 of 40 | 10 of 10 |
| W | 16 of 24 | 9 of 12 | 5 of 36 | 10 of 10 |
| X | 17 of 24 | 9 of 16 | 3 of 40 | 6 of 6 |
| J | 18 of 24 | 9 of 16 | 6 of 40 | 10 of 10 |
| Y | 19 of 24 | 10 of 16 | 8 of 40 | 10 of 10 |
| Z | 20 of 23 | 9 of 16 | 7 of 39 | 10 of 10 |
| AA | 17 of 24 | 11 of 16 | 8 of 40 | 20 of 20 |
| AB | 26 of 28 | 12 of 16 | 3 of 44 | 10 of 10 |
| AC | 20 of 27 | 12 of 14 | 4 of 41 | 10 of 10 |
| AD, by the line alone | 109 of 138 | 44 of 76 | 18 of 214 | 48 of 48 |
| AE, by the line alone | 60 of 72 | 18 of 36 | 7 of 108 | 24 of 24 |
| AF | 38 of 48 | 14 of 24 | 7 of 72 | 16 of 16 |
| AG, by the line alone | 15 of 20 | 5 of 10 | 5 of 30 | 6 of 6 |
| AH, by the line alone | 17 of 20 | 6 of 10 | 1 of 30 | 6 of 6 |
| AI, by the line alone | 14 of 20 | 6 of 10 | 3 of 30 | 6 of 6 |
| AJ, by the line alone | 15 of 20 | 3 of 10 | 6 of 30 | 6 of 6 |
| AK, lessons 01 to 05 and 08, by the line alone | 37 of 40 | 11 of 20 | 2 of 60 | 11 of 11 |
| AL, lessons 06 to 12, by the line alone | 13 of 20 | 3 of 10 | 4 of 30 | 5 of 5 |
| AM, lessons 01 to 05 and 08, by the line alone | 18 of 20 | 3 of 10 | 1 of 30 | 6 of 6 |
| AN, lessons 06 to 12, by the line alone | 13 of 20 | 5 of 10 | 4 of 30 | 5 of 5 |
| AO, lessons 01 to 05 and 08, by the line alone | 10 of 12 | 7 of 10 | 2 of 22 | 4 of 4 |
| AP, lessons 01 to 05 and 08, by the line alone | 16 of 20 | 8 of 10 | 4 of 30 | 5 of 5 |
| AQ, lessons 06 to 12, by the line alone | 14 of 20 | 5 of 10 | 2 of 30 | 5 of 5 |
| AR, lessons 01 to 05 and 08, by the line alone | 17 of 20 | 9 of 10 | 1 of 30 | 5 of 5 |
| AS, lessons 06 to 12, by the line alone | 15 of 20 | 7 of 10 | 4 of 30 | 5 of 5 |
| AT, lessons 01 to 05 and 08, by the line alone | 9 of 14 | 4 of 10 | 4 of 24 | 4 of 4 |
| AU, lessons 06 to 12, by the line alone | 9 of 14 | 5 of 10 | 3 of 24 | 3 of 4 |
| AV, lessons 01 to 05 and 08, by the line alone | 18 of 20 | 10 of 10 | 1 of 30 | 4 of 4 |
| AW, lessons 06 to 12, by the line alone | 13 of 20 | 8 of 10 | 4 of 30 | 4 of 4 |
| AX, lessons 01 to 05 and 08, by the line alone | 16 of 16 | 7 of 8 | 1 of 24 | 3 of 3 |
| AY, lessons 06 to 12, by the line alone | 13 of 16 | 4 of 8 | 4 of 24 | 3 of 3 |
| AZ, lessons 01 to 05 and 08, by the line alone | 20 of 26 | 9 of 14 | 4 of 40 | 5 of 5 |
| BA, lessons 06 to 12, by the line alone | 20 of 26 | 4 of 14 | 4 of 40 | 5 of 5 |
| BB, lessons 01 to 05 and 08, by the line alone | 12 of 12 | 4 of 6 | 2 of 18 | 2 of 2 |
| BC, lessons 06 to 12, by the line alone | 9 of 12 | 4 of 6 | 2 of 18 | 2 of 2 |
| BD, lessons 01 to 05 and 08, by the line alone | 14 of 14 | 6 of 8 | 0 of 22 | 3 of 3 |
| BE, lessons 06 to 12, by the line alone | 13 of 14 | 8 of 8 | 0 of 22 | 3 of 3 |
| BF, lessons 01 to 05, 08 and 09, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| BG, lessons 06 to 12, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| BH, lessons 01 to 05 and 08, by the line alone | 15 of 16 | 6 of 8 | 1 of 24 | 3 of 3 |
| BI, lessons 06 to 12, by the line alone | 12 of 16 | 5 of 8 | 3 of 24 | 3 of 3 |
| BJ, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| BK, lessons 06 to 12, by the line alone | 9 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| BL, lessons 00 to 05, by the line alone | 13 of 14 | 4 of 8 | 1 of 22 | 3 of 3 |
| BM, lessons 02 to 05 and 08, by the line alone | 7 of 14 | 3 of 8 | 5 of 22 | 3 of 3 |
| BN, lessons 06 to 09, by the line alone | 11 of 14 | 6 of 8 | 0 of 22 | 3 of 3 |
| BO, lessons 04 to 12, by the line alone | 11 of 14 | 3 of 8 | 1 of 22 | 3 of 3 |
| BP, lessons 01 to 05 and 08, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| BQ, lessons 06 to 12, by the line alone | 8 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| BR, habits of numpy and of public GPTs, by the line alone | 10 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| BS, loops, indices, hooks and order, by the line alone | 7 of 14 | 3 of 8 | 5 of 22 | 3 of 3 |
| BT, lessons 01 to 05 and 08, by the line alone | 10 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| BU, lessons 06, 07 and 09 to 12, by the line alone | 10 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| BV, lessons 01 to 08, by the line alone | 11 of 14 | 6 of 8 | 3 of 22 | 3 of 3 |
| BW, lessons 05 to 12, by the line alone | 9 of 14 | 8 of 8 | 3 of 22 | 3 of 3 |
| BX, lessons 01 to 06 and 08, by the line alone | 12 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| BY, lessons 05, 07 and 09 to 12, by the line alone | 8 of 14 | 5 of 8 | 3 of 22 | 3 of 3 |
| BZ, lessons 01 to 06 and 08, by the line alone | 14 of 14 | 7 of 8 | 0 of 22 | 2 of 3 |
| CA, lessons 05 to 07 and 09 to 12, by the line alone | 11 of 14 | 2 of 8 | 2 of 22 | 3 of 3 |
| CB, lessons 06, 07 and 09 to 12, by the line alone | 11 of 14 | 6 of 8 | 0 of 22 | 3 of 3 |
| CC, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 7 of 8 | 1 of 22 | 3 of 3 |
| CD, lessons 01 to 12, by the line alone | 11 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| CE, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| CF, lessons 06, 07 and 09 to 12, by the line alone | 13 of 14 | 4 of 8 | 1 of 22 | 3 of 3 |
| CG, helpers and rare functions, by the line alone | 12 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| CH, lessons 01 to 12, long pairs, by the line alone | 11 of 14 | 4 of 8 | 5 of 22 | 3 of 3 |
| CI, the same, by other exercises, by the line alone | 11 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| CJ, 01 to 05 and 08, long pairs, by the line alone | 13 of 14 | 8 of 8 | 1 of 22 | 3 of 3 |
| CK, 06, 07 and 09 to 12, long pairs, by the line alone | 11 of 14 | 4 of 8 | 1 of 22 | 3 of 3 |
| CL, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| CM, lessons 06, 07 and 09 to 12, by the line alone | 12 of 14 | 5 of 8 | 2 of 22 | 2 of 3 |
| CN, many kinds of students, by the line alone | 13 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| CO, the same, by other exercises, by the line alone | 11 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| CP, lessons 01 to 05 and 08, by the line alone | 11 of 14 | 3 of 8 | 4 of 22 | 3 of 3 |
| CQ, lessons 06, 07 and 09 to 12, by the line alone | 9 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| CR, lessons 01 to 05 and 08, by the line alone | 11 of 14 | 6 of 8 | 3 of 22 | 3 of 3 |
| CS, lessons 06, 07 and 09 to 12, by the line alone | 10 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| CT, mostly the odd lessons, by the line alone | 9 of 14 | 3 of 8 | 2 of 22 | 3 of 3 |
| CU, mostly the even lessons, by the line alone | 13 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| CV, half-understood ideas, by the line alone | 9 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| CW, the same, other lessons, by the line alone | 11 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| CX, the odd lessons, by the line alone | 11 of 14 | 8 of 8 | 1 of 22 | 3 of 3 |
| CY, the even lessons, by the line alone | 11 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| CZ, 01 to 06 and 08, as in public bugs, by the line alone | 12 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| DA, 06, 07 and 09 to 12, the same, by the line alone | 10 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| DB, lessons 01 to 05 and 08, by the line alone | 11 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| DC, lessons 06, 07 and 09 to 12, by the line alone | 13 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| DD, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 4 of 8 | 0 of 22 | 3 of 3 |
| DE, lessons 06, 07 and 09 to 12, by the line alone | 9 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| DF, as in public bugs, by the line alone | 13 of 14 | 8 of 8 | 0 of 22 | 3 of 3 |
| DG, long programs, by the line alone | 9 of 14 | 6 of 8 | 5 of 22 | 3 of 3 |
| DH, lessons 01 to 05 and 08, by the line alone | 12 of 14 | 7 of 8 | 1 of 22 | 3 of 3 |
| DI, lessons 06, 07 and 09 to 12, by the line alone | 10 of 14 | 5 of 8 | 0 of 22 | 3 of 3 |
| DJ, long programs, by the line alone | 13 of 14 | 5 of 8 | 3 of 22 | 3 of 3 |
| DK, lessons 06, 07 and 09 to 12, by the line alone | 11 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| DL, as in public bugs, by the line alone | 10 of 14 | 4 of 8 | 5 of 22 | 3 of 3 |
| DM, long, mostly of later lessons, by the line alone | 9 of 14 | 2 of 8 | 5 of 22 | 3 of 3 |
| DN, spread as a class's, by the line alone | 14 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| DO, lessons 06, 07 and 09 to 12, by the line alone | 12 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| DP, as in public bugs, by the line alone | 11 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| DQ, lessons 01 to 05 and 08, by the line alone | 13 of 14 | 7 of 8 | 1 of 22 | 3 of 3 |
| DR, lessons 06, 07 and 09 to 12, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| DS, long programs, by the line alone | 12 of 14 | 8 of 8 | 0 of 22 | 3 of 3 |
| DT, an exercise at most once, by the line alone | 10 of 14 | 6 of 8 | 2 of 22 | 3 of 3 |
| DU, lessons 06, 07 and 09 to 12, by the line alone | 11 of 14 | 6 of 8 | 3 of 22 | 3 of 3 |
| DV, lessons 01 to 05, by the line alone | 12 of 14 | 4 of 8 | 4 of 22 | 3 of 3 |
| DW, lessons 04 to 08, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| DX, 00, 03, 05 and 09 to 11, by the line alone | 12 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| DY, as in public bugs, by the line alone | 8 of 14 | 5 of 8 | 2 of 22 | 3 of 3 |
| DZ, 01, 02, 04, 06 and 08, by the line alone | 11 of 14 | 8 of 8 | 2 of 22 | 3 of 3 |
| EA, long names and small steps, by the line alone | 11 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| EB, 08 to 10 and 12, by the line alone | 12 of 14 | 8 of 8 | 0 of 22 | 2 of 3 |
| EC, long, lessons 01 to 05, by the line alone | 6 of 14 | 5 of 8 | 5 of 22 | 3 of 3 |
| ED, 01 to 03, 05 and 08, by the line alone | 13 of 14 | 6 of 8 | 3 of 22 | 2 of 3 |
| EE, long, 04 to 06, 09 and 11, by the line alone | 13 of 14 | 5 of 8 | 1 of 22 | 3 of 3 |
| EF, 02, 04, 07, 08, 10 and 12, by the line alone | 11 of 14 | 7 of 8 | 2 of 22 | 3 of 3 |
| EG, 01, 03 to 05 and 09, by the line alone | 13 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |
| EH, 02 and 05 to 08, by the line alone | 14 of 14 | 6 of 8 | 1 of 22 | 3 of 3 |
| EI, as in public bugs, by the line alone | 7 of 14 | 4 of 8 | 2 of 22 | 3 of 3 |

The sets stand in the order in which they were written, each by another reader, and each was tried
once before anything was mended for it. Some were to be harder than homework is: O of mistakes that
take several words to mend, Q and V after public threads, AJ in the style of public repositories, AB
beyond attention, AT and AU half-done changes, BL to BO mistakes that nobody would list, BR and BS
habits of numpy, loops and hooks. BT to CA are to be plain homework; BX and BY were tried when BT to
BW were mended, BZ and CA when those were. All eight together are 85 of 112 and 45 of 64, with 17
wrong lines in 176, of which four are lines where a change mends the program as well. The right
program of BZ is left alone by the grader; only its steps, looked at without need, are told. CB and
CC came later; three causes of CB were mended before CC was tried. Together they are 24 of 28 and 13
of 16, with one wrong line in 44. CD to CG were tried before anything was mended for one of them: 49
of 56 and 21 of 32, with 7 wrong lines in 88. CH to CK followed, when some of that was mended (46 of
56, 20 of 32 and 9 of 88), CL to CO when nearly all of it was (49 of 56, 22 of 32 and 8 of 88), and
then CP and CQ (20 of 28, 9 of 16 and 6 of 44). All fourteen are 164 of 196 and 72 of 112, with 30
wrong lines in 308. The right program of CM is left alone by the grader, as that of BZ is. CR to CW
were tried before anything was mended for one of them (63 of 84, 29 of 48, 9 wrong lines in 132), CX
to DA when most of that was (44 of 56, 25 of 32 and 7 in 88), DB and DC when more of it was (24 of
28, 13 of 16 and 4 in 44): the twelve together are 131 of 168 and 67 of 96, with 20 wrong lines in
264. DD to DG were tried before anything was mended for one of them (44 of 56, 24 of 32, 7 wrong
lines in 88), DH to DJ when some of that was (35 of 42, 17 of 24 and 4 in 66), DK to DM when more
was (30 of 42, 11 of 24 and 11 in 66), DN to DS when nearly all was, the last three with first cases
of few tiles as well (73 of 84, 38 of 48 and 5 in 132), DT and DU at the end (21 of 28, 12 of 16 and
5 in 44). The eighteen together are 203 of 252 and 102 of 144, with 32 wrong lines in 396. DV to DY
were tried before anything was mended for one of them (43 of 56, 19 of 32, 9 wrong lines in 88), DZ
to EC when some of that was (40 of 56, 27 of 32 and 8 in 88), ED to EF when nearly all was (37 of
42, 18 of 24 and 6 in 66), EG to EI at the end (34 of 42, 14 of 24 and 5 in 66): the fourteen are
154 of 196 and 78 of 112, with 28 wrong lines in 308. The right programs of EB and ED are left alone
by the grader, as that of BZ is.

With what was mended for them, sets come to some 95 of 100 single mistakes and 75 of 100 pairs by
their lines (BL to BS to 107 of 112 and 44 of 64): that shows nothing about the next one. Right
programs of all those readers had one place each changed by a machine, too (a name, a number, an
axis, a side, a term, a factor, a call or a statement left out): in a first draw 420 of 547 wrong
programs were told their line and 63 a wrong one, more than half of those where an error showed
lines behind what made it; in a later draw 244 of 295, and 21.

What is told wrongly is mostly the line that takes what another one made, the second line of a pair,
or a line of which a known mistake's own program has the numbers. So where a known mistake is told
by its numbers alone, other orders of the statements are tried, and where one of them makes all
right its line is told.

So of single mistakes nobody had thought of, seven to nine of ten get their line and their cause; in
most others the cause or the line alone is told. One program in twelve is told a line that another
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
machine that needed 5 ms for the rest of the judging:

```
40 wrong answers; what their steps cost more:
the first to a task: median 135 ms,
  5.3 times the rest of it (25 ms);
  90 % below 784 ms, the most 1422 ms;
  above 150 ms: 18 of 40
each after it: median 88 ms,
  18.3 times the rest of it (5 ms);
  90 % below 706 ms, the most 1206 ms;
  above 150 ms: 16 of 40
  of it the steps recorded 1.1 ms
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
