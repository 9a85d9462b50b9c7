"""Learning on the device as C99: a header and a source beside those of the network (``learn.h.j2``, ``learn.c.j2``).

They need of the network's own files only its type of input and its sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from cavity.export.c import checked_file_name, checked_prefix
from cavity.packed.gaussian import LIMIT, REACH, TABLES
from cavity.packed.learning import (
    DIRECTION,
    HIDDEN_FLOOR,
    LARGEST_INPUT,
    LARGEST_MESSAGE,
    LARGEST_STEP,
    OUTPUT_FLOOR,
    Learning,
)
from cavity.util.version import __version__

#: Registers and numbers of ``learn`` and what it calls, beyond their arrays.
FRAMES = 232


def generate_learning(learning: Learning, prefix: str, net_header: str, header_name: str) -> tuple[str, str]:
    """Header and source; they include ``net_header`` and ``header_name``."""
    loader = PackageLoader("cavity.export", "")
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=loader, undefined=StrictUndefined, **layout)
    names = {"p": checked_prefix(prefix), "P": prefix.upper(), "version": __version__}
    files = {"net_header": checked_file_name(net_header), "header_name": checked_file_name(header_name)}
    values = {**names, **files, **_values(learning)}
    header, source = (environment.get_template(f"learn.{kind}.j2").render(values) for kind in "hc")
    return header, source


def _values(learning: Learning) -> dict[str, Any]:
    """What the templates write down."""
    features, hidden, classes = learning.sizes
    signs = np.packbits(learning.start[0].ravel() >= 0, bitorder="little")
    narrow = bool(np.abs(learning.thresholds).max() < 1 << 15)
    of_classes = 2 * hidden * classes + 4 * classes
    directions = sum(each.size for each in learning.directions)
    tables = 2 * sum(len(table) for table in TABLES.values())
    return {
        "hidden": hidden,
        "classes": classes,
        "bits": learning.bits,
        "slope": learning.slope,
        "centre": learning.centre,
        "shift": learning.shift,
        "rate": learning.rate,
        "class_rates": learning.class_rates.tolist(),
        "margin": learning.margin,
        "directions": [each.ravel().tolist() for each in learning.directions if len(each)],
        "direction_counts": [len(each) for each in learning.directions],
        "direction_bits": DIRECTION,
        "tables": {name: table.tolist() for name, table in TABLES.items()},
        "thresholds": learning.thresholds.tolist(),
        "threshold_type": "int16_t" if narrow else "int32_t",
        "start_signs": signs.tolist(),
        "start_readout": learning.start[1].ravel().tolist(),
        "limit": LIMIT,
        "reach": REACH,
        "largest_input": LARGEST_INPUT,
        "largest_message": LARGEST_MESSAGE,
        "largest_step": LARGEST_STEP,
        "hidden_floor": HIDDEN_FLOOR,
        "output_floor": OUTPUT_FLOOR,
        "ram": 2 * hidden * (features + classes),
        "stack": 4 * features + 8 * hidden + 12 * classes + FRAMES,
        "flash": tables + (2 if narrow else 4) * (features + 1) + len(signs) + of_classes + directions,
    }
