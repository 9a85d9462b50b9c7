"""Files that somebody else has written."""

from __future__ import annotations

import hashlib


def resealed(content: bytes) -> bytes:
    """The content with a checksum that fits."""
    return content + hashlib.sha256(content).digest()
