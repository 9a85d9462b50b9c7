"""A downloader for pooch that resumes, shows its progress, follows only safe redirects and verifies.

The bytes go to ``<file>.<digest of the address>.part``, are checked there, and get their name in one rename.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import logging
import os
import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from cavity.data.errors import DataError

TIMEOUT = 20.0
ATTEMPTS = 3
CHUNK = 1 << 16
#: A server must bring so many bytes within so many seconds, again and again: one that sends a byte now and then is as
#: good as one that has stopped.
PATIENCE, LEAST_BYTES = 60.0, 60_000
#: What the disk says, not the network: no other server will help, nor another try.
LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_SAFE_REDIRECTS = {("http", "http"), ("http", "https"), ("https", "https")}

Advance = Callable[[int, int | None], None]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows http → http(s) and https → https, nothing else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        schemes = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if schemes not in _SAFE_REDIRECTS:
            raise DataError(f"{req.full_url}: refused to follow a redirect to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        # The standard handler turns away other schemes with a plain HTTPError before it asks us.
        target = headers.get("location", "")
        if urlsplit(target).scheme not in ("", "http", "https"):
            raise DataError(f"{req.full_url}: refused to follow a redirect to {target}")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _Connections(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Makes the connections of a request, and can cut them off."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[http.client.HTTPConnection] = []

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(self._keep(http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(self._keep(http.client.HTTPSConnection), req)

    def _keep(self, kind: type[http.client.HTTPConnection]) -> Any:
        def connection(host: str, **options: Any) -> http.client.HTTPConnection:
            self.opened.append(kind(host, **options))
            return self.opened[-1]

        return connection

    def cut(self) -> None:
        for connection in self.opened:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)


def _answer(url: str, headers: dict[str, str]) -> Any:
    """The response to a request, body unread; OSError where it is not there soon.

    ``TIMEOUT`` is for each packet, and a header may have as many of them as bytes: all of it has a time of its own.
    """
    connections = _Connections()
    clock = threading.Timer(PATIENCE, connections.cut)
    clock.daemon = True
    clock.start()
    try:
        return _opener(connections).open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    finally:
        clock.cancel()


def _opener(connections: _Connections) -> urllib.request.OpenerDirector:
    """An opener that knows http and https only: no file:, no ftp:, no data:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        connections,
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _range_start_and_total(header: str | None) -> tuple[int | None, int | None]:
    """``bytes 10-99/100`` → (10, 100); ``bytes */100`` → (None, 100)."""
    match = re.fullmatch(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", header or "")
    if match is None:
        return None, None
    start, total = match.groups()
    return (int(start) if start else None), (int(total) if total != "*" else None)


def _transfer(url: str, part: Path, limit: int, advance: Advance) -> None:
    """One request for what ``part`` still lacks; raises OSError when the connection ends too early."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "cavity", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = _answer(url, headers)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and _range_start_and_total(error.headers.get("Content-Range"))[1] == have:
                return
            if error.code == 416:
                part.unlink()
            raise
    with response:
        start, _ = _range_start_and_total(response.headers.get("Content-Range"))
        if response.status != 206:
            have = 0
        elif start != have:
            part.unlink()
            raise ConnectionError(f"the server resumed at byte {start}, not at {have}")
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if re.fullmatch(r"\d{1,18}", length) else None
        if total is not None and total > limit:
            raise DataError(f"{url}: refused {total:,} bytes where at most {limit:,} are expected")
        with part.open("r+b" if have else "wb") as file:
            file.seek(have)
            since, before = time.monotonic(), have
            # read1 hands over what has come: read would wait for a whole chunk, however slowly it comes.
            while block := response.read1(CHUNK):
                have += len(block)
                if have > limit:
                    raise DataError(f"{url}: refused more than the {limit:,} bytes expected")
                file.write(block)
                advance(have, total)
                if time.monotonic() - since > PATIENCE:
                    if have - before < LEAST_BYTES:
                        raise TimeoutError(f"the server sent {have - before:,} bytes in {PATIENCE:.0f} seconds")
                    since, before = time.monotonic(), have
            file.flush()
            os.fsync(file.fileno())
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended after {have:,} of {total:,} bytes")


def is_local(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error is about the folder that a download goes to, not about the server."""
    # HTTPError, of the server, is an OSError without a number.
    return isinstance(error, OSError) and error.errno in LOCAL


def _complete(url: str, part: Path, limit: int, advance: Advance) -> None:
    """Transfers until the file is whole; a broken connection is resumed as long as that brings more."""
    for attempt in range(ATTEMPTS):
        before = part.stat().st_size if part.exists() else -1
        try:
            return _transfer(url, part, limit, advance)
        except (OSError, http.client.HTTPException) as error:
            if is_local(error):
                raise
            after = part.stat().st_size if part.exists() else -1
            if attempt + 1 == ATTEMPTS or after == before:
                raise


@contextlib.contextmanager
def _progress(label: str) -> Iterator[Advance]:
    """A rich progress bar on standard error; nothing at all where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda have, total: bar.update(task, completed=have, total=total)


class ResumingDownloader:
    """What pooch calls: ``downloader(url, output_file, pooch)``.

    ``verify`` raises DataError for a file that is not the one wanted; ``limit`` is the largest size accepted.
    """

    def __init__(self, part: Path, limit: int, verify: Callable[[Path], None]) -> None:
        self._part, self._limit, self._verify = part, limit, verify

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        resumed = self._part.exists()
        try:
            self._fetch(url)
        except DataError:
            self._part.unlink(missing_ok=True)
            if not resumed:
                raise
            # The beginning may have come from an older copy on the server: once more, from the start.
            self._fetch(url)
        os.replace(self._part, output_file)

    def _fetch(self, url: str) -> None:
        with _progress(url.rsplit("/", 1)[-1]) as advance:
            try:
                _complete(url, self._part, self._limit, advance)
            except OSError as error:
                # On a full disk, what has come so far is in everybody's way.
                if is_local(error):
                    with contextlib.suppress(OSError):
                        self._part.unlink(missing_ok=True)
                raise
        try:
            self._verify(self._part)
        except DataError:
            self._part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Lets one process at a time download a file; the others wait, then find it there."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with target.with_name(f".{target.name}.lock").open("wb") as lock:
        # Some network file systems know no locks; the digest still guards the result there.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def download(url: str, target: Path, limit: int, verify: Callable[[Path], None]) -> Path:
    """Fetch one verified file; OSError when it cannot be had, DataError when it is not the right one."""
    import pooch  # type: ignore[import-untyped,unused-ignore]

    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with _alone(target):
            downloader = ResumingDownloader(part, limit, verify)
            pooch.retrieve(url, known_hash=None, fname=target.name, path=target.parent, downloader=downloader)
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url}: {type(error).__name__}: {error}") from error
    finally:
        logger.setLevel(level)
    return target
