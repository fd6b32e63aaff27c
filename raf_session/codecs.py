"""Codecs: what stands between JSON and storage, to make it smaller or unreadable.

A codec sees the bodies of entries and the values of states.  Keys, entry ids, kinds,
times, counts, labels, titles, models, names of states and the digests of requests are
stored as they are, because the journals search and sort by them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from raf_session.journal import Codec
from raf_session.keys import check_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ("AesGcmCodec", "ChainCodec", "ZlibCodec")

_AS_IT_IS: Final = b"\0"
_DEFLATED: Final = b"\1"


class ZlibCodec(Codec):
    """Compression by zlib; what it would not make smaller is stored as it is.

    One byte in front tells which, so nothing grows by more than that.

    Args:
        level: 0 (none) to 9 (best); -1: zlib's own choice.

    Raises:
        ValueError: there is no such level.
    """

    def __init__(self, level: int = -1) -> None:
        if not -1 <= level <= 9:
            raise ValueError(f"level={level} is not between -1 and 9")
        self._level = level

    @override
    def encode(self, data: bytes, /) -> bytes:
        """Return the data compressed, where that makes it smaller."""
        small = zlib.compress(data, self._level)
        return _DEFLATED + small if len(small) < len(data) else _AS_IT_IS + data

    @override
    def decode(self, data: bytes, /) -> bytes:
        """Return what `encode` was given.

        Raises:
            ValueError: it is not what `encode` returned.
        """
        flag, rest = data[:1], data[1:]
        if flag == _AS_IT_IS:
            return rest
        if flag != _DEFLATED:
            raise ValueError("not compressed by ZlibCodec")
        inflater = zlib.decompressobj()
        try:
            whole = inflater.decompress(rest)
        except zlib.error as error:
            raise ValueError(f"cannot be decompressed: {error}") from error
        if not inflater.eof or inflater.unused_data:
            raise ValueError("cannot be decompressed: torn")
        return whole


_FORM: Final = 1
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = frozenset((16, 24, 32))
_MAX_ID_BYTES: Final = 255


class AesGcmCodec(Codec):
    """Encryption by AES-GCM; needs the extra ``crypto``.

    Values are written under the first key, and read under whichever wrote them: to
    change keys put the new one in front and keep the old ones.  Each value has a random
    nonce of 96 bits, so use a key for fewer than 2³² values.  A value that was altered,
    or whose key is not among these, is refused; one put in the place of another value
    of the same key is not noticed.

    Args:
        keys: by id, the first for writing; 16, 24 or 32 random bytes each.  An id is
            stored with each value, readable, in at most 255 bytes of UTF-8.

    Raises:
        ValueError: no key, one of another length, or an id that is empty or too long.
        ModuleNotFoundError: ``cryptography`` is not installed.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("there is no key to write with")
        self._ciphers: dict[bytes, AESGCM] = {}
        for key_id, key in keys.items():
            name = check_name(key_id, "key id").encode()
            if len(name) > _MAX_ID_BYTES:
                raise ValueError(f"key id is longer than {_MAX_ID_BYTES} bytes")
            if len(key) not in _KEY_BYTES:
                raise ValueError(
                    f"key {key_id!r} has {len(key)} bytes, not 16, 24 or 32"
                )
            self._ciphers[name] = _cipher(key)
        first = next(iter(self._ciphers))
        self._writer = self._ciphers[first]
        self._header: Final = bytes((_FORM, len(first))) + first

    @override
    def encode(self, data: bytes, /) -> bytes:
        """Return form, key id, nonce, ciphertext and tag."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._writer.encrypt(nonce, data, self._header)
        return self._header + nonce + sealed

    @override
    def decode(self, data: bytes, /) -> bytes:
        """Return what `encode` was given.

        Raises:
            ValueError: it was altered, is no such value, or its key is missing.
        """
        from cryptography.exceptions import InvalidTag

        end = 2 + (data[1] if len(data) > 1 else 0)
        if data[:1] != bytes((_FORM,)) or len(data) < end + _NONCE_BYTES + _TAG_BYTES:
            raise ValueError("not encrypted by AesGcmCodec")
        cipher = self._ciphers.get(data[2:end])
        if cipher is None:
            name = data[2:end].decode(errors="replace")
            raise ValueError(f"encrypted under the key {name!r}, which is not given")
        nonce, sealed = data[end : end + _NONCE_BYTES], data[end + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, sealed, data[:end])
        except InvalidTag as error:
            raise ValueError("encrypted under another key, or altered") from error


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"AesGcmCodec needs the package {error.name}: "
            "pip install 'raf-session[crypto]'",
            name=error.name,
        ) from error
    return AESGCM(key)


class ChainCodec(Codec):
    """Several codecs, one after another: compress first, then encrypt.

    Args:
        codecs: in the order of encoding; decoding goes backwards.

    Raises:
        ValueError: there are none.
    """

    def __init__(self, *codecs: Codec) -> None:
        if not codecs:
            raise ValueError("a chain of no codecs")
        self._codecs = codecs

    @override
    def encode(self, data: bytes, /) -> bytes:
        """Return the data as the last codec gives it."""
        for codec in self._codecs:
            data = codec.encode(data)
        return data

    @override
    def decode(self, data: bytes, /) -> bytes:
        """Return what `encode` was given; raise what a codec raises."""
        for codec in reversed(self._codecs):
            data = codec.decode(data)
        return data
