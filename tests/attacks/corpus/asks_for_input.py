"""Waits for somebody to type.

answers: right
expect: err
"""

name = input("Your name: ")
