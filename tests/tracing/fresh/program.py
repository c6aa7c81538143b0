"""How a wrong program of these files is written down."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.tracing.programs import Program


@dataclass
class Group:
    """The programs of one file, in the order in which they were written."""

    programs: list[Program] = field(default_factory=list)

    def add(self, what: str, task: str, source: str, *causes: str) -> None:
        """A wrong answer to a task; causes: what has to be said, a pattern for each mistake."""
        self.programs.append(Program(what, task, source, causes))

    def change(self, what: str, task: str, source: str, *changes, causes) -> None:
        """A right program with some texts exchanged for others."""
        for old, new in changes:
            assert source.count(old) == 1, (what, old)
            source = source.replace(old, new)
        self.add(what, task, source, *causes)
