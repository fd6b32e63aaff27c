from collections.abc import Mapping
from typing import Any

__all__ = ("changed_files",)

def changed_files(
    folder: str, files: Mapping[str, tuple[Any, ...] | None]
) -> list[str]: ...
