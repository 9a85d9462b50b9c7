"""A network as one page that needs nothing else: its markup is ``page.html.j2``, its integers ``network.js``.

Its content security policy allows its own script and style, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cavity.export.framing import usual
from cavity.export.integers import describe
from cavity.export.matrices import inputs_code, largest_score, packed_matrix, stages
from cavity.export.trained import ExportError, Trained
from cavity.packed.confidence import CERTAIN, TABLE
from cavity.packed.description import Description
from cavity.packed.fixed import LARGEST_RAW, SHIFT
from cavity.util.text import shown
from cavity.util.version import __version__

#: Whole numbers up to this are exact in JavaScript's own.
EXACT = 1 << 53
#: The largest shift of a confidence whose products are.
EXACT_SHIFT = 46
#: A table with more features than this has no sliders.
SLIDERS = 60
#: Pixels of the canvas along its longer side.
CANVAS = 420
STYLE, SCRIPTS = "page.css", ("network.js", "images.js", "page.js")


def page(trained: Trained, name: str) -> str:
    """The whole document."""
    net = describe(trained)
    model = _model(trained, net)
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "autoescape": True}
    loader = PackageLoader("cavity.export", "")
    environment = Environment(loader=loader, undefined=StrictUndefined, **layout)
    style, *scripts = (loader.get_source(environment, file)[0] for file in (STYLE, *SCRIPTS))
    script = "".join(scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    frame = model["frame"]
    return environment.get_template("page.html.j2").render(
        title=shown(name),
        lead=lead(trained, net),
        image=("grey" if model["channels"] == 1 else "colour") if frame else "",
        frame=frame,
        canvas=_canvas(frame["columns"], frame["rows"]) if frame else None,
        features=net.inputs.features,
        reject=f"{100 * net.confidence.reject / CERTAIN:.0f}\u00a0%" if net.confidence else "",
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'",
        style=style,
        # In a script nothing is escaped, so that no tag may begin in it.
        model=json.dumps(model, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
        version=__version__,
    )


def lead(trained: Trained, net: Description) -> str:
    """What kind of network it is, in a sentence."""
    right = "" if trained.accuracy is None else f", right on {trained.accuracy:.1f}\u00a0% of its test set"
    return f"A network of {' – '.join(map(str, net.sizes))} units{right}."


def _canvas(columns: int, rows: int) -> tuple[int, int]:
    scale = CANVAS / max(columns, rows)
    return round(columns * scale), round(rows * scale)


def _model(trained: Trained, net: Description) -> dict[str, Any]:
    """What the script has to know, in JSON."""
    code, confidence = net.inputs, net.confidence
    if net.largest_first // min(factor for _, factor in code.groups) >= EXACT:
        raise ExportError(f"the sums of {code.features} inputs are not exact in JavaScript's numbers")
    wide = largest_score(net) >= EXACT or (
        len(net.layers) == 1 and confidence is not None and confidence.shift > EXACT_SHIFT
    )
    layers = [
        # Numbers beyond 2^53 are given as text.
        {**packed_matrix(stage.weights, "64"), "windows": stage.geometry}
        | (
            {"scale": str(stage.scale), "bias": [str(b) for b in stage.bias.tolist()]}
            if wide and number == 0
            else {"scale": stage.scale, "bias": stage.bias.tolist()}
        )
        for number, stage in enumerate(stages(net))
    ]
    return {
        "inputs": inputs_code(net) | {"largest": LARGEST_RAW, "unit": 1 << SHIFT},
        "features": code.features,
        "groups": code.groups,
        "wide": wide,
        "layers": layers,
        "classes": [shown(name) for name in net.classes] or [f"class {k}" for k in range(net.n_classes)],
        "confidence": confidence
        and {
            "multiplier": confidence.multiplier,
            "shift": confidence.shift,
            "reject": confidence.reject,
            "limit": str(confidence.limit),
        },
        "table": TABLE.tolist(),
        **_front(trained, net),
    }


def _front(trained: Trained, net: Description) -> dict[str, Any]:
    """What people are shown to put numbers in: an image, or a slider for each feature."""
    shape, features = trained.image_shape, net.inputs.features
    if shape is not None and net.inputs.kind == "pixels" and shape[0] in (1, 3) and math.prod(shape) == features:
        channels, rows, columns = shape
        found = trained.framing or usual(rows, columns)
        frame = {"columns": columns, "rows": rows, "size": found.size, "centre": found.centre}
        return {"channels": channels, "frame": frame | {"dark": found.dark, "pen": found.pen}, "sliders": None}
    sliders = [_slider(trained, net, i) for i in range(features)]
    start = [slider["start"] for slider in sliders]
    return {"channels": 0, "frame": None, "sliders": sliders if features <= SLIDERS else None, "start": start}


def _slider(trained: Trained, net: Description, i: int) -> dict[str, Any]:
    """Three standard deviations to both sides of the mean, or all pixel values."""
    name = shown(trained.features[i]) if trained.features else f"x{i}"
    if net.inputs.kind == "pixels":
        return {"name": name, "low": 0, "high": net.inputs.white, "step": 1, "start": net.inputs.white // 2}
    one = len(trained.inputs.mean) == 1
    mean, std = (float(values[0 if one else i]) for values in (trained.inputs.mean, trained.inputs.std))
    low, high, start = (float(f"{value:.4g}") for value in (mean - 3 * std, mean + 3 * std, mean))
    return {"name": name, "low": low, "high": high, "step": "any", "start": start}
