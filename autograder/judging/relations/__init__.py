"""What can be said of a wrong result without a word of the author's: see `relation`.

`two`: how one tensor stands to another. `where`: what of a result is right. `parts`: one of several
results is wrong, in a way that is known. Touches no file and starts no process.
"""
