"""What a run covers: how much of it, on which backends, of which libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benches.contenders import LIBRARIES, OUR_LABELS, OURS_LABEL, Contender, contenders
from benches.places import BACKENDS

__all__ = ("Scope",)


@dataclass(frozen=True)
class Scope:
    """The command line, as the kinds of work see it."""

    quick: bool = False
    """Everything once and tiny: the answers count, the figures do not."""
    backends: tuple[str, ...] = BACKENDS
    libraries: tuple[str, ...] = LIBRARIES
    sizes: tuple[int, ...] | None = None
    """Instead of those that a kind of work has by itself."""

    def classes(self, backend: str, work: str = "") -> Sequence[type[Contender]]:
        """Return the installed classes on this backend that can do this work."""
        return contenders(backend, without=work, labels=self.libraries)

    def one_each(self, backend: str, work: str) -> Sequence[type[Contender]]:
        """Return the same, one class for each library, unless libraries were named."""
        classes = self.classes(backend, work)
        if self.libraries != LIBRARIES:
            return classes
        return [
            c for c in classes if c.label == OURS_LABEL or c.label not in OUR_LABELS
        ]

    def at(self, sizes: Sequence[int], quick: Sequence[int]) -> Sequence[int]:
        """Return the sizes to measure at."""
        if self.quick:
            return quick
        return sizes if self.sizes is None else self.sizes
