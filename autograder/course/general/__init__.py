"""Wrong programs that nobody has to write: they are made out of an exercise's own calls.

One input taken for another, or the right answer to an input that was changed on its way in. They
are looked at where no mistake of the author's fits. Touches no file and starts no process.
"""
