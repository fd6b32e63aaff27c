"""The prefix hash: what a provider's cache can reuse of a request, message by message.

Two implementations answer to the same names and agree bit for bit: one compiled from
``ext/_prefix.pyx``, one in pure Python over the `xxhash` package; the format is in
``docs/prefix-format.md``.  Set ``RAF_SESSION_PURE=1`` to choose the second where the
first was built.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from raf_session.prefix_match import FORMAT_VERSION, ROOT, ZERO_SUBSTITUTE, PrefixMatch

__all__ = (
    "ACCELERATED",
    "FORMAT_VERSION",
    "ROOT",
    "ZERO_SUBSTITUTE",
    "PrefixMatch",
    "PrefixTracker",
    "encode_header",
    "encode_message",
    "header_digest",
    "message_digest",
    "message_size",
    "prefix_hashes",
    "value_digest",
)

_PURE = os.environ.get("RAF_SESSION_PURE") == "1"

if TYPE_CHECKING or _PURE:
    from raf_session._prefix_py import (
        PrefixTracker,
        encode_header,
        encode_message,
        header_digest,
        message_digest,
        message_size,
        prefix_hashes,
        value_digest,
    )
else:
    try:
        from raf_session._prefix import (
            PrefixTracker,
            encode_header,
            encode_message,
            header_digest,
            message_digest,
            message_size,
            prefix_hashes,
            value_digest,
        )
    except ModuleNotFoundError:  # a pure build; a broken one still raises
        from raf_session._prefix_py import (
            PrefixTracker,
            encode_header,
            encode_message,
            header_digest,
            message_digest,
            message_size,
            prefix_hashes,
            value_digest,
        )

ACCELERATED: Final[bool] = prefix_hashes.__module__ == "raf_session._prefix"
"""Whether the compiled implementation answers."""
