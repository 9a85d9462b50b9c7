"""Downloads by pooch, whose registry has the SHA-256 of the unpacked content; only the transfer is ours.

It resumes, follows safe redirects only, and gives up on a server that sends too much or too slowly. Bytes are collected
in ``<file>.<digest of the address>.part``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeGuard
from urllib.parse import urljoin, urlsplit

import pooch
import requests
import urllib3
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from cavity.data.errors import DataError
from cavity.util.locks import held
from cavity.util.regular import NotAFile, open_own, require_replaceable

TIMEOUT = 20.0
ATTEMPTS = 3
REDIRECTS = 10
CHUNK = 1 << 16
#: A server must answer within PATIENCE seconds, and send LEAST_BYTES in each such period: one that sends a byte now and
#: then is as good as one that has stopped.
PATIENCE, LEAST_BYTES = 60.0, 60_000
#: What the disk says, not the network: no other server will help, nor another try.
LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_SAFE_REDIRECTS = {("http", "http"), ("http", "https"), ("https", "https")}


class Session(requests.Session):
    """Follows redirects from http to http(s) and from https to https, no others."""

    def __init__(self) -> None:
        super().__init__()
        self.max_redirects = REDIRECTS
        self.headers.update({"User-Agent": "cavity", "Accept-Encoding": "identity"})

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target is not None:
            schemes = urlsplit(resp.url).scheme, urlsplit(urljoin(resp.url, target)).scheme
            if schemes not in _SAFE_REDIRECTS:
                resp.close()
                raise DataError(f"{resp.url}: refused to follow a redirect to {target}")
        return target


def _answer(session: Session, url: str, start: int) -> requests.Response:
    """The response to a request for the bytes from ``start`` on, its body unread.

    ``TIMEOUT`` is for each packet, and a header may come in as many packets as it has bytes. So the request is made in
    a thread, which is left behind if the answer takes too long.
    """
    answers: SimpleQueue[requests.Response | BaseException] = SimpleQueue()

    def ask() -> None:
        try:
            wanted = {"Range": f"bytes={start}-"} if start else {}
            # Python's own variable for certificates comes before those of requests.
            trusted = os.environ.get("SSL_CERT_FILE") or True
            answers.put(session.get(url, headers=wanted, stream=True, timeout=TIMEOUT, verify=trusted))
        except BaseException as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE)
    except Empty:
        raise TimeoutError(f"the server did not answer within {PATIENCE:.0f} seconds") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else -1


def _transfer(session: Session, url: str, part: Path, limit: int, show: Callable[..., None]) -> None:
    """One request for what ``part`` still lacks; raises OSError when the connection ends too early."""
    have = max(0, _size(part))
    with _answer(session, url, have) as response:
        resumes = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if response.status_code == 416 or (response.status_code == 206 and not resumes):
            part.unlink(missing_ok=True)
            raise ConnectionError(f"the server cannot resume at byte {have}")
        response.raise_for_status()
        if response.status_code != 206:
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if re.fullmatch(r"\d{1,18}", length) else None
        if total is not None and total > limit:
            raise DataError(f"{url}: refused {total:,} bytes where at most {limit:,} are expected")
        with open_own(part, "r+b") as file:
            file.truncate(have)
            file.seek(have)
            since, before = time.monotonic(), have
            # read1 hands over what has come: read would wait for a whole chunk, however slowly it comes.
            while block := response.raw.read1(CHUNK, decode_content=False):
                have += len(block)
                if have > limit:
                    raise DataError(f"{url}: refused more than the {limit:,} bytes expected")
                file.write(block)
                show(completed=have, total=total)
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
    # The errors of requests are OSErrors without a number.
    return isinstance(error, NotAFile) or (isinstance(error, OSError) and error.errno in LOCAL)


def _complete(url: str, part: Path, limit: int) -> None:
    """Transfer until the file is whole; a broken connection is resumed as long as that brings more."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    show = functools.partial(bar.update, bar.add_task(url.rsplit("/", 1)[-1], total=None))
    with bar, Session() as session:
        for attempt in range(ATTEMPTS):
            before = _size(part)
            try:
                return _transfer(session, url, part, limit, show)
            except (OSError, urllib3.exceptions.HTTPError) as error:
                if is_local(error) or attempt + 1 == ATTEMPTS or _size(part) == before:
                    raise


def download(url: str, target: Path, sha256: str | None, limit: int, unpack: Callable[[Path], bytes]) -> Path:
    """Fetch one file, unpacked and verified; OSError when it cannot be had, DataError when it is not the right one.

    At most ``limit`` bytes are accepted; ``unpack`` turns them, in a file, into the content that pooch verifies.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    require_replaceable(target)
    part = target.with_name(f"{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")

    def downloader(url: str, output_file: str, pooch: Any) -> None:
        try:
            _complete(url, part, limit)
            Path(output_file).write_bytes(unpack(part))
            part.unlink()
        except (DataError, OSError) as error:
            # What is wrong is of no use, and on a full disk, what has come so far is in everybody's way.
            if isinstance(error, DataError) or is_local(error):
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
            raise

    # The part may be the beginning of an older copy on the server: then once more, from the start.
    retries = int(part.exists())
    known, urls = {target.name: sha256}, {target.name: url}
    files = pooch.create(target.parent, base_url="", registry=known, urls=urls, retry_if_failed=retries)
    pooch.get_logger().setLevel(logging.WARNING)
    with contextlib.ExitStack() as stack:
        # One process at a time: the others wait, then find the file there. Some network file systems know no locks; the
        # digest still guards the result there.
        with contextlib.suppress(OSError):
            stack.enter_context(held(target.with_name(f".{target.name}.lock"), wait=True))
        try:
            files.fetch(target.name, downloader=downloader)
        except DataError:
            raise
        except ValueError as error:
            raise DataError(f"{url}: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError(f"{url}: {type(error).__name__}: {error}") from error
    return target
