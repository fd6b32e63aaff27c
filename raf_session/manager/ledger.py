"""`Ledger`: what a manager remembers of the sessions that it served last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from raf_session.entries import SessionHead
from raf_session.keys import SessionKey
from raf_session.manager.compaction_report import CompactionReport
from raf_session.manager.reuse import CacheReuse

__all__ = ("Account", "Ledger")

_LIMIT: Final = 10_000


@dataclass(slots=True)
class Account:
    """What is remembered of one session."""

    incarnation: str
    reuse: CacheReuse = field(default_factory=CacheReuse)
    last: CompactionReport | None = None
    """The last attempt to compact it."""
    untold: CompactionReport | None = None
    """It, until a request tells of it."""

    def tell(self, report: CompactionReport) -> None:
        """Take note of an attempt to compact the session."""
        self.last = self.untold = report

    def take_untold(self) -> CompactionReport | None:
        """Return the last attempt, once."""
        report, self.untold = self.untold, None
        return report


class Ledger:
    """The accounts of the last sessions, 10,000 at most; those of others are forgotten.

    A session that was re-created begins anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: OrderedDict[SessionKey, Account] = OrderedDict()

    def open(self, head: SessionHead) -> Account:
        """Return the account of a session, made if missing."""
        with self._lock:
            account = self._accounts.get(head.key)
            if account is None or account.incarnation != head.incarnation:
                account = self._accounts[head.key] = Account(head.incarnation)
            self._accounts.move_to_end(head.key)
            while len(self._accounts) > _LIMIT:
                self._accounts.popitem(last=False)
            return account

    def find(self, key: SessionKey) -> Account | None:
        """Return the account of the session of a key, if it is remembered."""
        with self._lock:
            return self._accounts.get(key)
