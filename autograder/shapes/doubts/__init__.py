"""What speaks against calling a comment false: the facts, asked about one claim at one statement.

Reads comments and recordings by way of the modules above; runs nothing, and decides nothing.
"""
