"""The data sets known by name: their files, digests, sizes and mirrors. Standard library only.

Digests are of the *uncompressed* content, so that a file may be kept plain or packed again by any tool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cavity.data.errors import DataNotFound
from cavity.data.readers import read_cifar, read_digits, read_generated, read_idx

if TYPE_CHECKING:
    from cavity.data.raw import Raw
    from cavity.data.readers import Request

DIGITS = tuple(str(digit) for digit in range(10))
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


@dataclass(frozen=True)
class KnownFile:
    """One file of a data set: its name without a packing suffix, and the content it must have."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Source:
    """A data set known by name: what it is in a line, what it needs, and how it is read.

    What needs files has them in ``folders``: the first is ours, the others are common habits. Each mirror is an
    address that ends in ``/``. What is fetched from it is ``archive`` where there is one, otherwise every file with
    ``.gz`` appended. What needs no files comes with scikit-learn or is ``generated``, which can have options.
    """

    name: str
    summary: str
    folders: tuple[str, ...] = ()
    files: tuple[KnownFile, ...] = ()
    mirrors: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    archive: str | None = None
    read: Callable[[Source, Request], Raw] = read_idx
    generated: bool = False

    @property
    def needs(self) -> str:
        """What must be there before it can be read, in words."""
        return f"{self.total_size / 1e6:.0f} MB of files" if self.files else "nothing"

    @property
    def total_size(self) -> int:
        """Bytes of all files, uncompressed."""
        return sum(file.size for file in self.files)


def _idx_files(*digests: str) -> tuple[KnownFile, ...]:
    names_and_sizes = (
        ("train-images-idx3-ubyte", 47_040_016),
        ("train-labels-idx1-ubyte", 60_008),
        ("t10k-images-idx3-ubyte", 7_840_016),
        ("t10k-labels-idx1-ubyte", 10_008),
    )
    return tuple(KnownFile(n, s, d) for (n, s), d in zip(names_and_sizes, digests, strict=True))


def _generated(name: str, summary: str) -> Source:
    return Source(name, summary, read=read_generated, generated=True)


MNIST = Source(
    name="mnist",
    summary="70,000 handwritten digits, 28×28 grey, 10 classes",
    folders=("mnist", "MNIST/raw"),
    files=_idx_files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    classes=DIGITS,
)

FASHION_MNIST = Source(
    name="fashion-mnist",
    summary="70,000 pieces of clothing, 28×28 grey, 10 classes",
    folders=("fashion-mnist", "FashionMNIST/raw"),
    files=_idx_files(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    # The bucket's website endpoint speaks no https; the digests above make up for it.
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    classes=CLOTHES,
)

CIFAR_10 = Source(
    name="cifar-10",
    summary="60,000 photographs, 32×32 colour, 10 classes",
    folders=("cifar-10", "cifar-10-batches-bin"),
    files=tuple(
        KnownFile(f"{stem}.bin", 30_730_000, digest)
        for stem, digest in (
            ("data_batch_1", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            ("data_batch_2", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            ("data_batch_3", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            ("data_batch_4", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            ("data_batch_5", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ("test_batch", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        )
    ),
    mirrors=("https://www.cs.toronto.edu/~kriz/",),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    archive="cifar-10-binary.tar.gz",
    read=read_cifar,
)

BUILT_IN = (
    Source(
        "digits",
        "1,797 handwritten digits, 8×8 grey, 10 classes; comes with scikit-learn, never a download",
        classes=DIGITS,
        read=read_digits,
    ),
    _generated("teacher-student", "random inputs labelled by a random teacher network (generated)"),
    _generated("random-labels", "random inputs with random labels, to measure capacity (generated)"),
    _generated("hidden-manifold", "inputs on a low-dimensional manifold, labelled in its coordinates (generated)"),
)
#: One entry per data set.
SOURCES = {source.name: source for source in (*BUILT_IN, MNIST, FASHION_MNIST, CIFAR_10)}

DEFAULT = "digits"
PERMUTED = "permuted-"


def names() -> tuple[str, ...]:
    """All names that need no path; each can be prefixed with ``permuted-``."""
    return tuple(SOURCES)


def split_name(name: str) -> tuple[str, bool]:
    """``permuted-mnist`` → (``mnist``, True); any other name comes back as it is, with False."""
    base = name.removeprefix(PERMUTED)
    return (base, True) if base != name and base in SOURCES else (name, False)


def known(name: str) -> Source:
    """The data set of that name, with or without ``permuted-``, or an error that lists the names there are."""
    base, _ = split_name(name)
    if base not in SOURCES:
        raise DataNotFound(f"no data set is called {name!r}; there are {', '.join(names())}")
    return SOURCES[base]
