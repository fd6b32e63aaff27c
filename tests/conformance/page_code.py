"""The code of the page "Write your own", as modules."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

PAGE = (Path(__file__).parents[2] / "docs" / "write-your-own.md").read_text("utf-8")
BLOCKS: dict[str, str] = dict(
    re.findall(r"<!-- code: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL)
)


@cache
def page_module(*names: str) -> ModuleType:
    """Return the module that a reader makes of these blocks, in this order."""
    module = ModuleType("_".join(("page", *names)))
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    source = "\n\n".join(BLOCKS[name] for name in names)
    code = compile(source, f"write-your-own.md: {', '.join(names)}", "exec")
    exec(code, vars(module))  # noqa: S102
    return module
