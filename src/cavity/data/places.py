"""Where files are looked for: a given folder, ``$CAVITY_DATA``, the user's cache, Debian's data sets."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cavity.data.errors import DataError
from cavity.data.packing import read_known
from cavity.data.registry import SOURCES, Source, known
from cavity.util.paths import expanded

ENVIRONMENT = "CAVITY_DATA"
# Debian's package dataset-fashion-mnist installs into the folder fashion-mnist/ here.
DEBIAN = Path("/usr/share/datasets")
SUFFIXES = ("", ".gz", ".xz")

Folder: TypeAlias = "str | os.PathLike[str] | None"


class Place(NamedTuple):
    """A path that was looked at for ``file``, and whether the file is there."""

    file: str
    path: Path
    found: bool


class Entry(NamedTuple):
    """A line of the list of data sets; ``present`` means that loading it needs no network."""

    name: str
    description: str
    present: bool


def cache_folder() -> Path:
    """The user's cache, e.g. ``~/.cache/cavity`` on Linux."""
    from pooch import os_cache

    return Path(os_cache("cavity"))


def roots(data_dir: Folder = None) -> tuple[Path, ...]:
    """The folders searched, in order, without doubles."""
    environment = os.environ.get(ENVIRONMENT)
    given = [expanded(folder) for folder in (data_dir, environment) if folder]
    return tuple(dict.fromkeys((*given, cache_folder(), DEBIAN)))


def _holds_sibling(folder: Path, source: Source) -> bool:
    """Whether a folder verifiably holds another data set whose files have the same names.

    MNIST and Fashion-MNIST name their files alike, so a folder without a sub-folder could be either; the
    smallest file, a few kilobytes of labels, settles it.
    """
    own = {file.name for file in source.files}
    others = (other for other in SOURCES.values() if other.files and other.name != source.name)
    for smallest in (min(other.files, key=lambda file: file.size) for other in others):
        for path in (folder / (smallest.name + suffix) for suffix in SUFFIXES):
            if smallest.name in own and path.is_file():
                with contextlib.suppress(DataError):
                    read_known(path, smallest)
                    return True
    return False


def _find_under(root: Path, source: Source, name: str) -> Path | None:
    """A file under one root, plain or packed: in one of the data set's folders, or else in the root itself."""
    suffixes = ("",) if name == source.archive else SUFFIXES
    for folder in (*(root / folder for folder in source.folders), root):
        for path in (folder / (name + suffix) for suffix in suffixes):
            if path.is_file() and not (folder == root and _holds_sibling(root, source)):
                return path
    return None


def find(source: Source, name: str, data_dir: Folder = None) -> Path | None:
    """The first path at which a file of a data set lies, plain or packed, or its archive; None if it is nowhere."""
    return next(filter(None, (_find_under(root, source, name) for root in roots(data_dir))), None)


def where(name: str, data_dir: Folder = None) -> list[Place]:
    """One place per file and searched folder, in order: the path found, or where the file would go.

    Empty for what needs no file. The first place of a file that is ``found`` is the one that is read.
    """
    source, places = known(name), []
    for file in (*(file.name for file in source.files), *([source.archive] if source.archive else [])):
        for root in roots(data_dir):
            path = _find_under(root, source, file)
            places.append(Place(file, path or root / source.folders[0] / file, path is not None))
    return places


def is_present(name: str, data_dir: Folder = None) -> bool:
    """Whether a data set can be loaded without a network."""
    found = {place.file for place in where(name, data_dir) if place.found}
    source = known(name)
    return source.archive in found or found >= {file.name for file in source.files}


def available(data_dir: Folder = None) -> list[Entry]:
    """Every data set by name, what it is, and whether it is here already."""
    return [Entry(name, source.summary, is_present(name, data_dir)) for name, source in SOURCES.items()]
