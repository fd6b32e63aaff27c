"""Where and with what something was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import sys
from pathlib import Path
from typing import Any

__all__ = ("DISTRIBUTIONS", "described", "machine", "version")

DISTRIBUTIONS = (
    "raf-session",
    "pydantic",
    "anyio",
    "xxhash",
    "orjson",
    "redis",
    "asyncpg",
    "asyncmy",
    "sqlalchemy",
    "openai-agents",
    "google-adk",
    "trpc-agent-py",
    "agent-framework-core",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "pydantic-ai-slim",
    "hearth-ai",
    "cacheguardian",
    "cachebench",
)


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, `None` where it is not there."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            names = (line for line in lines if line.startswith("model name"))
            return next(names).partition(":")[2].strip()
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Return interpreter, system, processor, load and the versions of libraries."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "machine": platform.machine(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: v for name in DISTRIBUTIONS if (v := version(name))},
    }


def described(where: dict[str, Any]) -> str:
    """Return it as two lines of text."""
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    return (
        f"Python {where['python']} on {where['system']}, {where['cores']} cores "
        f"({where['processor']}), load average {where['load']:.2f}, "
        f"SQLite {where['sqlite']}\n{versions}"
    )
