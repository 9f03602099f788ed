"""What is wrong with a PretrainJob, and where: data only, no rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

Path = tuple[str | int, ...]
"""Keys and list indexes as in the document, such as ("spec", "corpus", "sources", 0, "uri")."""


@dataclass(frozen=True)
class Problem:
    """One thing to correct: where it is, and in plain words what is wrong and what would do."""

    path: Path
    message: str

    def __str__(self) -> str:
        """Give the place and the message on one line."""
        return f"{render_path(self.path)}: {self.message}" if self.path else self.message

    def under(self, *prefix: str | int) -> Problem:
        """Give the same problem as seen from further out in the document."""
        return replace(self, path=(*prefix, *self.path))


def render_path(path: Path) -> str:
    """Write a path as users do: `spec.corpus.sources[0].uri`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
