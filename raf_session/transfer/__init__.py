"""What is done with whole sessions, on every journal alike: copy, dump, erase, fork."""

from raf_session.transfer.copy_report import Conflict, CopyReport, Failure
from raf_session.transfer.copying import copy
from raf_session.transfer.dump_reader import DUMP_VERSION
from raf_session.transfer.dumps import dump, restore
from raf_session.transfer.erasure import ErasedSession, Erasure, ErasureReceipt, erase
from raf_session.transfer.forks import fork

__all__ = (
    "DUMP_VERSION",
    "Conflict",
    "CopyReport",
    "ErasedSession",
    "Erasure",
    "ErasureReceipt",
    "Failure",
    "copy",
    "dump",
    "erase",
    "fork",
    "restore",
)
