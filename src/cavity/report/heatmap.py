"""A confusion matrix as SVG: agreement in one colour, each kind of mistake in another."""

from __future__ import annotations

import math

import numpy as np

from cavity.report.axes import WIDTH, label, svg
from cavity.report.content import Matrix
from cavity.report.markup import element, number, text
from cavity.report.summary import Floats
from cavity.report.wording import share

#: Letters of a class name that fit beside the matrix.
LONGEST_NAME = 12
#: Width of a letter of the names, and the smallest cell that has room for a number.
LETTER, ROOM = 7.2, 17.0
#: A share of a row at which a mistake has its full colour, unless there is a larger one.
GRAVE = 0.05


def row_shares(matrix: Matrix) -> Floats:
    """Each count divided by the sum of its row; 0 in empty rows."""
    totals = matrix.counts.sum(axis=1, keepdims=True)
    shares: Floats = matrix.counts / np.maximum(totals, 1)
    return shares


def opacities(matrix: Matrix) -> Floats:
    """How strong each colour is, 0 to 1: the share on the diagonal; off it, the root of the share of the largest."""
    shares = row_shares(matrix)
    wrong = shares * (1 - np.eye(len(shares)))
    mistakes = np.sqrt(wrong / max(GRAVE, float(wrong.max())))
    result: Floats = np.where(np.eye(len(shares), dtype=bool), shares, mistakes)
    return result


def shortened(name: str) -> str:
    """The name, cut with an ellipsis where it is too long to stand beside the matrix."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def heat_map(content: Matrix, description: str) -> str:
    """Counts in coloured cells, truth in rows; numbers where they fit, and all of it when pointed at."""
    names = [shortened(name) for name in content.names]
    margin = 28 + LETTER * max(map(len, names))
    cell = (WIDTH - margin - 4) / len(names)
    upright = max(map(len, names)) * LETTER < cell
    top = 40.0 if upright else margin
    every = math.ceil(13 / cell)
    shares, strength = row_shares(content), opacities(content)
    cells = [
        _cell(content, row, column, margin, top, cell, float(strength[row, column]), float(shares[row, column]))
        for row, column in np.ndindex(content.counts.shape)
    ]
    middle = [place * cell + cell / 2 for place in range(len(names))]
    row_names = [label(names[n], margin - 7, top + middle[n] + 4, "end") for n in range(0, len(names), every)]
    column_names = [
        label(names[n], margin + middle[n], top - 8)
        if upright
        else label(names[n], margin + middle[n] + 4, top - 7, "start", rotate=-90)
        for n in range(0, len(names), every)
    ]
    side = cell * len(names)
    return svg(
        top + side + 4,
        description,
        *cells,
        *row_names,
        *column_names,
        label(f"{content.column_label} →", margin + side / 2, 13, kind="name"),
        label(f"← {content.row_label}", 12, top + side / 2, kind="name", rotate=-90),
    )


def _cell(
    content: Matrix, row: int, column: int, margin: float, top: float, cell: float, strength: float, part: float
) -> str:
    count = int(content.counts[row, column])
    x, y = margin + column * cell, top + row * cell
    words = (
        f"{content.names[row]} taken for {content.names[column]}" if row != column else f"{content.names[row]}, right"
    )
    kind = "agree" if row == column else "differ"
    square = element(
        "rect",
        {
            "class": "cell",
            "x": x + 0.75,
            "y": y + 0.75,
            "width": cell - 1.5,
            "height": cell - 1.5,
            "rx": min(3.0, cell / 8),
        },
    )
    colour = element(
        "rect",
        {
            "class": kind,
            "x": x + 0.75,
            "y": y + 0.75,
            "width": cell - 1.5,
            "height": cell - 1.5,
            "rx": min(3.0, cell / 8),
            "fill-opacity": strength,
        },
        element("title", {}, text(f"{words}: {count} ({share(part)} of the row)")),
    )
    if count == 0 or cell < ROOM:
        return square + (colour if count else "")
    size = min(13.0, 1.35 * cell / max(2, len(str(count))), 0.5 * cell)
    written = element(
        "text",
        {
            "class": "count strong" if strength > 0.6 else "count",
            "x": x + cell / 2,
            "y": y + cell / 2 + 0.36 * size,
            "text-anchor": "middle",
            "style": f"font-size:{number(size)}px",
        },
        text(str(count)),
    )
    return square + colour + written
