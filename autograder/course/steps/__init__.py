"""The steps of an exercise's answer and of its known mistakes, one for each operation.

What the room `tracing` compares a student's steps with. Touches no file and starts no process.
"""
