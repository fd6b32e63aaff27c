"""The libraries that the suite knows, and those of them that are installed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benches.contenders.agent_framework import AGENT_FRAMEWORK
from benches.contenders.contender import Contender
from benches.contenders.google_adk import GOOGLE_ADK
from benches.contenders.langgraph import LANGGRAPH
from benches.contenders.openai_agents import OPENAI_AGENTS
from benches.contenders.ours import OURS
from benches.contenders.pydantic_ai import PYDANTIC_AI
from benches.contenders.raw import RAW
from benches.contenders.trpc_agent import TRPC_AGENT

__all__ = ("LIBRARIES", "OURS_LABEL", "OUR_LABELS", "PEERS", "Contender", "contenders")

PEERS: tuple[type[Contender], ...] = (
    *OPENAI_AGENTS,
    *GOOGLE_ADK,
    *TRPC_AGENT,
    *AGENT_FRAMEWORK,
    *LANGGRAPH,
    *PYDANTIC_AI,
)
OURS_LABEL = "raf-session"
OUR_LABELS = frozenset(cls.label for cls in OURS)
LIBRARIES = tuple(dict.fromkeys(cls.label for cls in (*OURS, *RAW, *PEERS)))


def contenders(
    backend: str, *, without: str = "", labels: Collection[str] = LIBRARIES
) -> Sequence[type[Contender]]:
    """Return the installed classes for one backend, ours first.

    Args:
        backend: one of `benches.places.BACKENDS`.
        without: a kind of work; who lacks it is left out.
        labels: of which libraries.
    """
    return [
        cls
        for cls in (*OURS, *RAW, *PEERS)
        if cls.backend == backend
        and cls.label in labels
        and without not in cls.lacks
        and cls.installed()
    ]
