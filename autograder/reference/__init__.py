"""One module a lesson: the answers, and wrong answers with names. Never in the hand-out."""
