"""A page that follows its runs: written anew while they train, and served to browsers on this machine only.

The server answers GET and HEAD of ``/`` with the page, and everything else with an error. It reads no file for a
request: the page is in memory.
"""

from __future__ import annotations

import hashlib
import html
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from cavity.report.collect import collect_all
from cavity.report.page import page
from cavity.report.wording import printable
from cavity.runs.checkpoint import CheckpointError
from cavity.runs.entropy import ENTROPY
from cavity.runs.folder import CHECKPOINT, CONFIG, METRICS, open_run

HOST = "127.0.0.1"
#: Connections at once, and seconds after which a silent one is closed.
MOST_CONNECTIONS, PATIENCE = 16, 10.0
#: Seconds between two looks at the folders; after writing a page, this many times as long passes as that has taken, so
#: that training keeps most of the machine, but never more than this many seconds.
EVERY, REST, LONGEST_REST = 1.0, 3.0, 15.0
#: What a browser asks again after.
AGAIN = 2

WAITING = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>cavity report</title>
<meta http-equiv="refresh" content="{again}"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ font: 1rem/1.6 system-ui, sans-serif; margin: 15vh auto; max-width: 40rem; padding: 0 1rem }}</style>
</head><body><h1>Not yet</h1><p>{reason}</p><p>This page looks again every {again} seconds.</p></body></html>"""


class Served(NamedTuple):
    """What is sent, and what tells a browser that it has changed."""

    content: bytes
    tag: str

    @classmethod
    def of(cls, document: str) -> Served:
        content = printable(document).encode()
        return cls(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


class Page:
    """The newest page of the runs in ``folders``."""

    def __init__(self, folders: Sequence[Path], data_changed: str | None = None) -> None:
        self.folders, self.data_changed = folders, data_changed
        self.seen: object = None
        self.served = Served.of(WAITING.format(again=AGAIN, reason="The page is being written."))

    def refresh(self) -> bool:
        """Write the page anew if a run has changed; returns whether it has. While a run has no checkpoint, or is just
        being replaced, the last page stays, or one that says so."""
        found = [_stamps(folder) for folder in self.folders]
        if found == self.seen:
            return False
        try:
            runs = [open_run(folder) for folder in self.folders]
            self.served = Served.of(page(collect_all(runs, self.data_changed), live=True))
        except (OSError, ValueError, CheckpointError) as error:
            if self.seen is None or b"<main" not in self.served.content:
                self.served = Served.of(WAITING.format(again=AGAIN, reason=html.escape(str(error))))
        self.seen = found
        return True


def _stamps(folder: Path) -> list[tuple[int, int] | None]:
    """Time and size of each file that a page is made of."""
    found: list[tuple[int, int] | None] = []
    for name in (CONFIG, METRICS, CHECKPOINT, ENTROPY):
        try:
            about = (folder / name).stat()
            found.append((about.st_mtime_ns, about.st_size))
        except OSError:
            found.append(None)
    return found


class Server(ThreadingHTTPServer):
    """Serves one page on this machine; threads end with the process."""

    daemon_threads = True
    # A second server must not quietly share the port of the first.
    allow_reuse_port = False

    def __init__(self, source: Page, port: int = 0) -> None:
        self.source, self.free = source, threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, unless there are too many: then not at all."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is nobody's concern."""


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, or with an error."""

    server: Server
    server_version, sys_version = "cavity", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def _answer(self, with_content: bool) -> None:
        port = self.server.server_port
        # A page of somebody else's, whose name he lets point to this machine, must not read this one.
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            return self.send_error(HTTPStatus.FORBIDDEN)
        if self.path != "/":
            return self.send_error(HTTPStatus.NOT_FOUND)
        content, tag = self.server.source.served
        self.send_response(HTTPStatus.OK)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(content)),
            "ETag": tag,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if with_content:
            self.wfile.write(content)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line."""


def serve(
    folders: Sequence[Path],
    port: int = 0,
    *,
    data_changed: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
    stop: threading.Event | None = None,
) -> None:
    """Serve the page of the runs in ``folders`` until Ctrl-C, or until ``stop``; ``ready`` is told the address. Port 0
    is any that is free."""
    stop, source = stop or threading.Event(), Page(folders, data_changed)
    try:
        server = Server(source, port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, socket.error) else "it must be from 0 to 65535"
        raise OSError(f"port {port} of {HOST} cannot be used: {reason}; choose another --port") from error
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            ready(server.address)
            while not stop.is_set():
                started = time.monotonic()
                rest = EVERY
                if source.refresh():
                    rest = min(max(EVERY, REST * (time.monotonic() - started)), LONGEST_REST)
                stop.wait(rest)
        finally:
            server.shutdown()
            thread.join()
