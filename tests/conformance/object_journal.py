"""A journal over a bucket of objects, written with the page "Write your own" alone."""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from hashlib import md5, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from anyio.lowlevel import checkpoint
from page_code import page_module
from typing_extensions import override

from raf_session.conformance import Capability, JournalHarness, JournalOpener

rules = page_module("rules")


class Bucket:
    """What an object store has: get, list, and a put under a condition."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()

    async def get(self, name: str) -> tuple[bytes, str] | None:
        """Return an object and its etag."""
        await checkpoint()
        path = self._folder / name
        with self._lock:
            if not path.exists():
                return None
            data = path.read_bytes()
        return data, md5(data, usedforsecurity=False).hexdigest()

    async def put(self, name: str, data: bytes, if_match: str | None) -> bool:
        """Replace an object whose etag is that one, or make one where there is none."""
        await checkpoint()
        path = self._folder / name
        with self._lock:
            now = path.read_bytes() if path.exists() else None
            etag = now and md5(now, usedforsecurity=False).hexdigest()
            if etag != if_match:
                return False
            path.write_bytes(data)
        await checkpoint()
        return True

    async def names(self) -> list[str]:
        """Return the name of each object."""
        await checkpoint()
        return [path.name for path in self._folder.iterdir()]


class ObjectJournal(rules.BookJournal):  # type: ignore[name-defined,misc]
    """An object for each app; the etag is the tag."""

    name = "objects"

    def __init__(self, bucket: Bucket, **options: Any) -> None:
        super().__init__(**options)
        self._bucket = bucket

    @staticmethod
    def _object(app: str) -> str:
        return sha256(app.encode()).hexdigest()

    @override
    async def _read(self, app: str) -> tuple[Any, str | None]:
        found = await self._bucket.get(self._object(app))
        if found is None:
            return rules.Book(), None
        return pickle.loads(found[0])[1], found[1]  # noqa: S301

    @override
    async def _write(self, app: str, book: Any, tag: str | None) -> bool:
        data = pickle.dumps((app, book))
        return await self._bucket.put(self._object(app), data, tag)

    @override
    async def _names(self) -> Sequence[str]:
        objects = [await self._bucket.get(name) for name in await self._bucket.names()]
        return [pickle.loads(found[0])[0] for found in objects if found]  # noqa: S301


@asynccontextmanager
async def bucket_storage() -> AsyncGenerator[JournalOpener]:
    with TemporaryDirectory() as folder:
        bucket = Bucket(Path(folder))
        yield lambda **options: ObjectJournal(bucket, **options)


HARNESS = JournalHarness("objects", bucket_storage, frozenset(Capability))
