"""What a comment says: one lexer, one table of spellings, a reader for chains of shapes.

Pure functions of text, in linear time, under a limit of size; nothing here knows any code.
"""
