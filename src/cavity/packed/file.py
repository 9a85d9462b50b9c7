"""The file format of a packed network.

    8 bytes   magic
    4 + 4     version and length of the header, unsigned, little-endian
    header    JSON: input code, shapes, which layers have a mask and a bias, output, classes
    body      mean and std of real inputs (float64), offsets (int32 or int64), and for each layer its sign bits, mask
              bits and biases; rows of bits end on a byte, bit i of a row is bit i mod 8 of its byte i div 8
    32 bytes  SHA-256 of everything before it

In version 1, biases are −1, 0 or +1 (int8). Version 2, written where a layer has thresholds, has int32, and a shift.
Version 3, written where there is a confidence, fixed-point inputs or 8-bit weights, is version 2 with the first in the
header, bits, centres and multipliers (int32) in the place of mean and std, and int8 in that of bits.
Version 4, written where a layer sees windows, is version 3 with their geometry in the header (``conv`` or ``pool``);
rows of bits are filters then, and a pool has nothing in the body.
Nothing is unpickled, and nothing is allocated beyond a small multiple of the file's own size.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cavity.packed.confidence import Confidence
from cavity.packed.description import Description, InputCode, Layer, Weights
from cavity.packed.fixed import Fixed
from cavity.packed.network import PackedNetwork
from cavity.packed.windows import Convolution, MaxPool, Windows
from cavity.util.plain import from_json
from cavity.util.regular import open_regular

MAGIC = b"\x89CAVITY\n"
VERSIONS = (1, 2, 3, 4)
PREAMBLE = struct.Struct("<8sII")
DIGEST_BYTES = 32
#: Far more than any header needs, even with a group for every pixel.
MAX_HEADER = 1 << 24
#: Each takes kilobytes, however small it is.
MAX_LAYERS = 1000
LARGEST_PIXEL = 255
LARGEST_SHIFT = 32


class PackedError(ValueError):
    """A packed network is of another kind or version, truncated or altered; the message says which."""


def dumps(description: Description) -> bytes:
    """The content of the file."""
    inputs, offsets = description.inputs, description.offsets
    held = [(layer, _held(layer)) for layer in description.layers]
    version = _least_version(description)
    narrow = bool((np.abs(offsets) < 1 << 31).all())
    header = {
        "input": {"kind": inputs.kind, "groups": inputs.groups, "white": inputs.white},
        "statistics": len(inputs.mean if inputs.mean is not None else inputs.fixed.bits if inputs.fixed else ()),
        "offset_bytes": 4 if narrow else 8,
        "shift": description.shift,
        "layers": [
            {"shape": layer.shape, "mask": stored.mask is not None, "bias": stored.bias is not None}
            | ({} if version == 1 else {"shift": layer.shift})
            | ({} if stored.values is None else {"int8": True})
            | _geometry(layer)
            for layer, stored in held
        ],
        "output": description.output,
        "classes": description.classes,
    }
    if description.confidence is not None:
        header["confidence"] = asdict(description.confidence)
    text = json.dumps(header, separators=(",", ":")).encode()
    arrays = [each.astype("<f8") for each in (inputs.mean, inputs.std) if each is not None]
    if inputs.fixed is not None:
        arrays += [each.astype("<i4") for each in (inputs.fixed.bits, inputs.fixed.centre, inputs.fixed.multiplier)]
    arrays.append(offsets.astype("<i4" if narrow else "<i8"))
    for _, stored in held:
        bits = [each for each in (stored.sign, stored.mask) if each is not None and stored.values is None]
        arrays += [np.packbits(each, axis=1, bitorder="little") for each in bits]
        arrays += [] if stored.values is None else [stored.values]
        arrays += [] if stored.bias is None else [stored.bias.astype("<i1" if version == 1 else "<i4")]
    content = PREAMBLE.pack(MAGIC, version, len(text)) + text + b"".join(array.tobytes() for array in arrays)
    return content + hashlib.sha256(content).digest()


def _least_version(description: Description) -> int:
    """The oldest version that can hold the network, so that older readers can read it."""
    layers = description.layers
    if not all(isinstance(layer, Weights) for layer in layers):
        return 4
    if description.confidence is not None or description.inputs.fixed is not None:
        return 3
    if any(isinstance(layer, Weights) and layer.values is not None for layer in layers):
        return 3
    plain = all(layer.bias is None or (np.abs(layer.bias) <= 1).all() for layer in layers)
    return 1 if plain and not any(layer.shift for layer in layers) else 2


def _held(layer: Layer) -> Weights:
    """What is in the body of a layer: its weights, or its filters; of a pool, nothing."""
    if isinstance(layer, MaxPool):
        return Weights(np.zeros((0, 0), bool))
    return layer if isinstance(layer, Weights) else Weights.of(layer.filters, layer.bias)


def _geometry(layer: Layer) -> dict[str, Any]:
    if isinstance(layer, MaxPool):
        return {"pool": {"image": layer.image, "size": layer.size}}
    return {} if isinstance(layer, Weights) else {"conv": asdict(layer.windows)}


def load(path: str | os.PathLike[str]) -> PackedNetwork:
    """The network in a file; PackedError if the file is not a valid packed network."""
    path = Path(path)
    with open_regular(path) as stream:
        preamble = stream.read(PREAMBLE.size)
        _check_preamble(preamble, str(path))
        content = preamble + stream.read()
    return PackedNetwork(loads(content, str(path)))


def loads(content: bytes, name: str = "the file") -> Description:
    """The network in the content of a file; ``name`` is what errors call it."""
    length = _check_preamble(content, name)
    end = len(content) - DIGEST_BYTES
    if PREAMBLE.size + length > end:
        raise PackedError(f"{name}: was cut short: {len(content)} bytes cannot hold its header and checksum")
    if hashlib.sha256(content[:end]).digest() != content[end:]:
        raise PackedError(f"{name}: its content does not match its SHA-256; it was cut short or altered")
    try:
        header = from_json(content[PREAMBLE.size : PREAMBLE.size + length])
        return _assembled(header, _Reader(memoryview(content)[PREAMBLE.size + length : end]), _version(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise PackedError(f"{name}: its header makes no sense: {error}") from error


def _check_preamble(content: bytes, name: str) -> int:
    """The length of the header, if the file is one of ours."""
    if content[: len(MAGIC)] != MAGIC:
        short = len(content) < len(MAGIC) and MAGIC.startswith(content)
        raise PackedError(f"{name}: {'was cut short' if short else 'is not a packed network of cavity'}")
    if len(content) < PREAMBLE.size:
        raise PackedError(f"{name}: was cut short within its first {PREAMBLE.size} bytes")
    version, (_, _, length) = _version(content), PREAMBLE.unpack_from(content)
    if version not in VERSIONS:
        raise PackedError(f"{name}: is a packed network of version {version}; this cavity reads {VERSIONS[-1]} at most")
    if length > MAX_HEADER:
        raise PackedError(f"{name}: declares a header of {length} bytes; at most {MAX_HEADER} are allowed")
    return int(length)


def _version(content: bytes) -> int:
    return int(PREAMBLE.unpack_from(content)[1])


class _Reader:
    """Reads arrays from the body, never beyond its end."""

    def __init__(self, body: memoryview) -> None:
        self.body = body

    def take(self, count: int, dtype: str) -> NDArray[Any]:
        size = count * np.dtype(dtype).itemsize
        if size > len(self.body):
            raise ValueError(f"it needs {size} bytes but only {len(self.body)} are left")
        taken, self.body = self.body[:size], self.body[size:]
        return np.frombuffer(taken, dtype)

    def bits(self, rows: int, columns: int) -> NDArray[np.bool_]:
        octets = self.take(rows * ((columns + 7) // 8), "u1").reshape(rows, -1)
        bits = np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)
        if bits[:, columns:].any():
            raise ValueError("bits are set beyond the end of a row")
        return bits[:, :columns]


def _whole(value: object, what: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{what} is {value!r}, expected an integer from {low} to {high}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


def _assembled(header: dict[str, Any], body: _Reader, version: int) -> Description:
    """The network that a header describes; its arrays are taken from the body in the order of ``dumps``."""
    inputs = _inputs(header, body)
    _whole(len(header["layers"]), "the number of layers", 1, MAX_LAYERS)
    shapes = [_shape(layer["shape"]) for layer in header["layers"]]
    sizes = [inputs.features, *(outputs for outputs, _ in shapes)]
    if [columns for _, columns in shapes] != sizes[:-1]:
        raise ValueError(f"layers of shapes {shapes} do not fit {inputs.features} inputs")
    wide = _whole(header["offset_bytes"], "offset_bytes", 4, 8)
    offsets = body.take(sizes[1], f"<i{wide}").astype(np.int64)
    layers = tuple(_layer(layer, *shape, body, version) for layer, shape in zip(header["layers"], shapes, strict=True))
    output, classes = header["output"], tuple(map(str, header["classes"]))
    if output not in ("argmax", "label") or (output == "label" and sizes[-1] != 1):
        raise ValueError(f"{sizes[-1]} outputs do not go with output {output!r}")
    if len(body.body):
        raise ValueError(f"{len(body.body)} bytes are left over")
    shift = _whole(header["shift"], "shift", 0, LARGEST_SHIFT)
    confidence = Confidence(**header["confidence"]) if version >= 3 and "confidence" in header else None
    return Description(inputs, layers, offsets, shift, output, classes, confidence)


def _inputs(header: dict[str, Any], body: _Reader) -> InputCode:
    code = header["input"]
    groups = tuple(
        (_whole(width, "width", 1, 1 << 31), _whole(factor, "factor", 1, 1 << 31)) for width, factor in code["groups"]
    )
    if code["kind"] == "pixels":
        return InputCode("pixels", groups, white=_whole(code["white"], "white", 1, LARGEST_PIXEL))
    if code["kind"] not in ("real", "fixed"):
        raise ValueError(f"there is no input of kind {code['kind']!r}")
    features = sum(width for width, _ in groups)
    count = _whole(header["statistics"], "statistics", 1, features)
    if count not in (1, features):
        raise ValueError(f"statistics are of {count} features, there are {features}")
    if code["kind"] == "fixed":
        return InputCode("fixed", groups, fixed=Fixed(*(body.take(count, "<i4").astype(np.int64) for _ in range(3))))
    mean, std = (body.take(count, "<f8").astype(np.float64) for _ in range(2))
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()):
        raise ValueError("mean and std of the inputs are not usable")
    return InputCode("real", groups, mean=mean, std=std)


def _shape(shape: Any) -> tuple[int, int]:
    outputs, inputs = (_whole(size, "size", 1, 1 << 31) for size in shape)
    return outputs, inputs


def _sizes(values: Any, count: int, least: int = 1) -> tuple[int, ...]:
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{values!r} is not a list of {count} sizes")
    return tuple(_whole(size, "size", least, 1 << 31) for size in values)


def _layer(about: dict[str, Any], outputs: int, inputs: int, body: _Reader, version: int) -> Layer:
    """A layer of that shape; what it takes from the body is never less than a small part of it."""
    if version >= 4 and "pool" in about:
        pool = MaxPool(_three(about["pool"]["image"]), _two(about["pool"]["size"]))
        return _fitting(pool, outputs, inputs)
    if version < 4 or "conv" not in about:
        return _weights(about, outputs, inputs, outputs, body, version)
    conv = about["conv"]
    windows = Windows(_three(conv["shape"]), _two(conv["kernel"]), _two(conv["stride"]), _two(conv["padding"], 0))
    if outputs % windows.positions:
        raise ValueError(f"{outputs} units are not {windows.positions} of each channel")
    held = _weights(about, outputs // windows.positions, windows.columns, outputs, body, version)
    return _fitting(Convolution(held.small, windows, held.bias, held.shift), outputs, inputs)


def _fitting(layer: Convolution | MaxPool, outputs: int, inputs: int) -> Layer:
    if layer.shape != (outputs, inputs):
        raise ValueError(f"windows of {layer.shape[1]} inputs and {layer.shape[0]} units are no {(outputs, inputs)}")
    return layer


def _two(values: Any, least: int = 1) -> tuple[int, int]:
    height, width = _sizes(values, 2, least)
    return height, width


def _three(values: Any) -> tuple[int, int, int]:
    channels, height, width = _sizes(values, 3)
    return channels, height, width


def _weights(about: dict[str, Any], outputs: int, inputs: int, units: int, body: _Reader, version: int) -> Weights:
    if version >= 3 and _flag(about.get("int8", False)):
        values = body.take(outputs * inputs, "i1").reshape(outputs, inputs)
        sign, mask = values > 0, values != 0 if _flag(about["mask"]) else None
    else:
        values, sign = None, body.bits(outputs, inputs)
        mask = body.bits(outputs, inputs) if _flag(about["mask"]) else None
    bias = body.take(units, "<i1" if version == 1 else "<i4").astype(np.int64) if _flag(about["bias"]) else None
    if version == 1 and bias is not None and not (np.abs(bias) <= 1).all():
        raise ValueError("a bias is not -1, 0 or 1")
    shift = 0 if version == 1 else _whole(about["shift"], "shift", 0, LARGEST_SHIFT)
    return Weights(sign, mask, bias, shift, values)
