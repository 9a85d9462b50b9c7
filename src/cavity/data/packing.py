"""Unpacking with a bound: gzip, xz and tar are read up to the size that is expected, never further."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cavity.data.errors import damaged, reading
from cavity.data.registry import KnownFile, Source
from cavity.util.regular import open_regular

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
# An xz header may ask for a dictionary of 4 GiB; the strongest preset of the xz tool needs 65 MiB.
XZ_MEMORY = 128 << 20
# An archive of a few files needs far less than this for headers, padding and read-me files.
ARCHIVE_OVERHEAD = 1 << 20
MAX_MEMBERS = 100
# Packed files may unpack to SMALL bytes freely, and beyond it to at most MAX_RATIO times their own size.
SMALL = 64 << 20
MAX_RATIO = 100
MAX_BYTES = 16 << 30


def check_expansion(path: Path, packed: int, unpacked: int) -> None:
    """Refuse a user's file that declares far more content than its own size makes plausible."""
    bound = min(MAX_BYTES, max(SMALL, MAX_RATIO * packed))
    if unpacked > bound:
        declared = f"declares {unpacked:,} bytes of content in {packed:,} bytes"
        raise damaged(path, f"{declared}; at most {bound:,} are accepted")


def _unxz(packed: bytes, limit: int) -> bytes:
    """At most ``limit`` + 1 unpacked bytes, in bounded memory, which ``lzma.open`` cannot promise."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
    content = decoder.decompress(packed, limit + 1)
    if len(content) <= limit and not decoder.eof:
        raise EOFError("the compressed stream ends before its end marker")
    if decoder.unused_data:
        raise lzma.LZMAError("bytes follow the end of the compressed stream")
    return content


def _open(file: io.BufferedReader) -> BinaryIO:
    """The content of an open file: its own bytes, or unpacked where it starts like gzip."""
    if file.peek(2).startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[return-value]
    return file


def check_content(path: str | Path, content: bytes, file: KnownFile) -> bytes:
    """The content itself when its size and SHA-256 are those of ``file``; otherwise an error."""
    digest = hashlib.sha256(check_size(path, content, file)).hexdigest()
    if digest != file.sha256:
        raise damaged(path, f"is not {file.name}: the SHA-256 of the content is {digest}, expected {file.sha256}")
    return content


def check_size(path: str | Path, content: bytes, file: KnownFile) -> bytes:
    """The content itself when its size is that of ``file``; otherwise an error."""
    if len(content) != file.size:
        held = "more" if len(content) > file.size else f"{len(content):,}"
        raise damaged(path, f"holds {held} bytes where {file.name} has {file.size:,}")
    return content


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a plain, gzip or xz file, of which at most ``limit`` + 1 bytes are read."""
    try:
        with open_regular(path) as raw, _open(raw) as stream:
            is_xz = stream is raw and raw.peek(6).startswith(XZ_MAGIC)
            return _unxz(raw.read(), limit) if is_xz else stream.read(limit + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise damaged(path, f"cannot be read: {error}") from error


def read_known(path: Path, file: KnownFile) -> bytes:
    """The verified content of a plain, gzip or xz file."""
    return check_content(path, read_bounded(path, file.size), file)


class _Limited(io.RawIOBase):
    """Hands through at most ``limit`` bytes of a stream and then raises, so that no archive is a bomb."""

    def __init__(self, path: Path, stream: BinaryIO, limit: int) -> None:
        self._path, self._stream, self._left = path, stream, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._stream.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise damaged(self._path, "unpacks to more than the data set can hold")
        buffer[: len(content)] = content
        return len(content)


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\\" in member.name or ":" in member.name:
        raise damaged(path, f"refused: member {member.name!r} points outside the archive")
    if not (member.isreg() or member.isdir()):
        raise damaged(path, f"refused: member {member.name!r} is a link or device, not a file")


def iterate_archive(path: Path, source: Source) -> Iterator[tuple[KnownFile, bytes]]:
    """The known files of a packed tar, verified, each as soon as it comes by; nothing is written to disk."""
    wanted = {file.name: file for file in source.files}
    errors = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError)
    with reading(path, "archive", *errors), open_regular(path) as raw, _open(raw) as stream:
        limited = _Limited(path, stream, source.total_size + ARCHIVE_OVERHEAD)
        with tarfile.open(fileobj=limited, mode="r|", errorlevel=2) as archive:
            for count, member in enumerate(archive):
                if count >= MAX_MEMBERS:
                    raise damaged(path, f"refused: more than {MAX_MEMBERS} members")
                _check_member(path, member)
                file = wanted.pop(PurePosixPath(member.name).name, None) if member.isreg() else None
                if file is not None:
                    stored = archive.extractfile(member)
                    content = stored.read(file.size + 1) if stored is not None else b""
                    yield file, check_content(f"{path}:{member.name}", content, file)
    if wanted:
        raise damaged(path, f"lacks {', '.join(wanted)}")
