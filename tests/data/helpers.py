"""A web server that answers as it is told, and small files for it to serve."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import struct
import threading
from collections import defaultdict

import numpy as np

from cavity.data.registry import KnownFile


def known_file(name: str, content: bytes) -> KnownFile:
    return KnownFile(name, len(content), hashlib.sha256(content).hexdigest())


def idx(values: np.ndarray) -> bytes:
    """The bytes of an idx file."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


class Server:
    """Answers by path: a queue of answers each, the last of which stays; an answer is a function.

    ``seen`` holds (path, Range header) of every request.
    """

    def __init__(self) -> None:
        self.answers = defaultdict(list)
        self.seen = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.seen.append((self.path, self.headers.get("Range")))
                queue = server.answers[self.path]
                if not queue:
                    return self.send_error(404)
                return (queue.pop(0) if len(queue) > 1 else queue[0])(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def url(self, folder: str = "") -> str:
        return f"http://127.0.0.1:{self.http.server_port}/{folder}"

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def whole(content: bytes, *, ranges: bool = True, declare: bool = True):
    """Answers with the content, or with the part of it that was asked for."""

    def answer(request):
        wanted = request.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and ranges else 0
        if start and start >= len(content):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(content)}")
            request.send_header("Content-Length", "0")
            return request.end_headers()
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if declare:
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(content[start:])

    return answer


def begin(request, content: bytes) -> None:
    """Says that the whole content is coming."""
    request.send_response(200)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()


def cut(content: bytes, length: int):
    """Declares the whole content from the start and hangs up after ``length`` bytes."""

    def answer(request):
        begin(request, content)
        request.wfile.write(content[:length])

    return answer


def stall(content: bytes, length: int, released: threading.Event):
    """Declares the whole content, sends ``length`` bytes and then nothing until it is released."""

    def answer(request):
        begin(request, content)
        request.wfile.write(content[:length])
        request.wfile.flush()
        released.wait(30)

    return answer


def drip(content: bytes, pause: float, released: threading.Event):
    """Sends the content byte by byte, as long as somebody listens."""

    def answer(request):
        begin(request, content)
        with contextlib.suppress(OSError):
            for byte in content:
                request.wfile.write(bytes([byte]))
                request.wfile.flush()
                if released.wait(pause):
                    return

    return answer


def redirect(target: str, code: int = 302):
    def answer(request):
        request.send_response(code)
        request.send_header("Location", target)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def packed(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)


def undone(dataset, part="train"):
    """The samples of a part in their own units."""
    return getattr(dataset, f"x_{part}") * dataset.std + dataset.mean
