"""Where an answer goes wrong: its steps compared with those of the course's own answer.

May touch no file and start no process. Knows what was asked and the steps of both sides (`course`),
what was found (`judging`) and the values that cross the wall (`sandbox.inside`). It adds words to a
finding, and no finding: nothing that it says can change a mark.
"""
