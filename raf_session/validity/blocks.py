"""What messages are made of, whatever shape they are in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from raf_session.messages import ChatMessage

__all__ = ("Block", "CallId", "Kind", "Reading", "Shape", "Speaker")

CallId: TypeAlias = str | int | None
"""The id of a call: as given, a number where its shape needs none, or `None`."""


class Kind(Enum):
    """What a block is."""

    TEXT = auto()
    CALL = auto()
    RESULT = auto()
    THINKING = auto()
    SERVER_CALL = auto()
    """A call that the provider itself carries out."""
    SERVER_RESULT = auto()
    OTHER = auto()
    """An image, a file, or what this library does not know."""


class Shape(Enum):
    """In whose shape a block is written."""

    OPENAI = auto()
    FUNCTION = auto()
    """OpenAI's before there were tools: ``function_call``, and role ``function``."""
    ANTHROPIC = auto()
    GEMINI = auto()


class Speaker(Enum):
    """Whose turn a message belongs to; results are the user's."""

    SYSTEM = auto()
    USER = auto()
    ASSISTANT = auto()


class Block(NamedTuple):
    """One thing that a message holds."""

    kind: Kind
    shape: Shape
    call: CallId = None
    """The id of the call, or of the one that is answered."""
    name: str | None = None
    """The function, where the block says it."""
    text: str = ""
    """Of `Kind.TEXT`."""
    signed: bool = True
    """Whether thinking has its signature or its data."""

    @property
    def label(self) -> str:
        """The call in words."""
        if isinstance(self.call, int):
            return f"of {self.name!r}"
        return repr(self.call)


@dataclass(frozen=True, slots=True)
class Reading:
    """A message as blocks."""

    index: int
    """Its place in the sequence."""
    message: ChatMessage
    speaker: Speaker
    blocks: tuple[Block, ...]
    malformed: str | None
    """The field that has no form of its kind; `None`: all have."""

    @property
    def calls(self) -> list[Block]:
        """What an assistant message asks for."""
        if self.speaker is not Speaker.ASSISTANT:
            return []
        return [block for block in self.blocks if block.kind is Kind.CALL]

    @property
    def results(self) -> list[Block]:
        """What a message of the user's answers."""
        if self.speaker is not Speaker.USER:
            return []
        return [block for block in self.blocks if block.kind is Kind.RESULT]
