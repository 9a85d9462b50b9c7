"""The verified bytes of a data set: found, or downloaded; what is slow to unpack is kept unpacked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from cavity.data.errors import DataError, DataNotFound
from cavity.data.packing import ARCHIVE_OVERHEAD, check_content, check_size, iterate_archive, read_bounded, read_known
from cavity.data.places import ENVIRONMENT, Folder, cache_folder, find
from cavity.data.registry import KnownFile, Source, known
from cavity.util.files import write_whole
from cavity.util.paths import expanded
from cavity.util.regular import read_regular


def _destination(source: Source, data_dir: Folder) -> Path:
    """Where downloads go: the given folder if it can be written to, otherwise the user's cache."""
    if data_dir is not None:
        folder = expanded(data_dir) / source.folders[0]
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return cache_folder() / source.folders[0]


def _download(
    source: Source, remote: str, target: Path, sha256: str | None, limit: int, unpack: Callable[[Path], bytes]
) -> Path:
    """The file ``remote`` from the first mirror that has it; the error of the last resort lists what each one said."""
    from cavity.data.download import download, is_local

    refused, said = False, []
    for mirror in source.mirrors:
        try:
            return download(mirror + remote, target, sha256, limit, unpack)
        except (OSError, DataError) as error:
            if is_local(error):
                raise OSError(error.errno, f"{target} could not be written ({error.strerror})") from error
            refused = refused or isinstance(error, DataError)
            said.append(f"  from {mirror + remote}\n    ({type(error).__name__}: {error})")
    advice = (
        f"{source.name}: {target.name} is missing and could not be downloaded. To put it there by hand, save\n"
        f"  {remote}\n  into {target.parent} (or into {source.folders[0]}/ below --data-dir or ${ENVIRONMENT})"
    )
    raise (DataError if refused else DataNotFound)("\n".join((advice, *said)))


def fetch(name: str, data_dir: Folder = None) -> list[Path]:
    """Make all files of a data set present, downloading what is missing; returns where they are.

    Downloads go to ``data_dir`` if given, otherwise to the user's cache. What needs no file gives [].
    """
    source = known(name)
    found = [find(source, file.name, data_dir) for file in source.files]
    if source.archive is not None and None in found:
        archive = find(source, source.archive, data_dir)
        return [archive or _download_archive(source, source.archive, _destination(source, data_dir))]
    return [
        path or _download_file(source, file, _destination(source, data_dir))
        for file, path in zip(source.files, found, strict=True)
    ]


def _download_file(source: Source, file: KnownFile, folder: Path) -> Path:
    """One file, which is packed on the mirrors and plain here: pooch verifies what is inside."""
    # Packing never makes a file much larger: gzip adds 5 bytes per 16 KiB at worst.
    limit = file.size + file.size // 1000 + 1024

    def unpack(path: Path) -> bytes:
        return check_size(path, read_bounded(path, file.size), file)

    return _download(source, file.name + ".gz", folder / file.name, file.sha256, limit, unpack)


def _download_archive(source: Source, name: str, folder: Path) -> Path:
    """The archive as it is; each file in it is verified, as the archive itself has no digest in the registry."""

    def unpack(path: Path) -> bytes:
        for _ in iterate_archive(path, source):
            pass
        return read_regular(path)

    return _download(source, name, folder / name, None, source.total_size + ARCHIVE_OVERHEAD, unpack)


def _kept(file: KnownFile) -> Path:
    """Where an unpacked copy of a file lies in the user's cache."""
    return cache_folder() / "unpacked" / file.sha256


def contents(name: str, data_dir: Folder = None) -> dict[str, bytes]:
    """File name → verified content of every file of a data set, fetched first where it is missing.

    Ten seconds of xz (CIFAR-10) are spent once: copies are kept unpacked, by digest, in the user's cache.
    """
    source = known(name)
    paths = fetch(name, data_dir)
    if paths[0].name == source.archive:
        unpacked = iterate_archive(paths[0], source)
    else:
        unpacked = ((file, read_known(path, file)) for file, path in zip(source.files, paths, strict=True))
        if not any(path.suffix == ".xz" for path in paths):
            return {file.name: content for file, content in unpacked}
    with contextlib.suppress(OSError, DataError):
        return {file.name: check_content(_kept(file), read_regular(_kept(file)), file) for file in source.files}
    found = {}
    for file, content in unpacked:
        found[file.name] = content
        # The copy is a convenience: a full disk must not stop the work.
        with contextlib.suppress(OSError):
            _kept(file).parent.mkdir(parents=True, exist_ok=True)
            write_whole(_kept(file), content)
    return found
