"""Right or wrong, and why: pure functions of what was asked and what came back."""
