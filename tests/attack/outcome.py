"""What an attack came to: how often it was tried, and what did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The row of one attack in the table.

    Attributes:
        name: What was tried.
        tries: How often.
        broken: What did not hold, in words.
        remark: Figures worth keeping.
    """

    name: str
    tries: int = 0
    broken: list[str] = field(default_factory=list)
    remark: str = ""

    def expect(self, holds: bool, message: str) -> None:
        """Count a try, and note it if it did not hold."""
        self.tries += 1
        if not holds:
            self.broken.append(message)

    def line(self) -> str:
        """The row as it stands in docs/trust.md."""
        held = "held" if not self.broken else f"BROKEN {len(self.broken):,}"
        return f"| {self.name} | {self.tries:,} | {held} | {self.remark} |"
