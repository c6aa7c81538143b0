"""The small changes, by the kind of slip that they undo, and what tries them all."""
