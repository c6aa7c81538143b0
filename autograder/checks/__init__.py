"""One module a lesson: what each exercise asks, with which cases and hints. No answers here."""
