"""Trains the small GPT-2 models that ship in ``models/``; README.md says how to rebuild them."""
