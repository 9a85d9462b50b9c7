"""The surroundings of the trained weights: local entropy beside local energy, where ``cavity entropy`` has been run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.report.content import Figure, Line, Lines, Section
from cavity.report.summary import RunSummary
from cavity.report.wording import fixed
from cavity.util.files import write_whole

if TYPE_CHECKING:
    from cavity.runs.entropy import Entropies

AXIS = "distance"


def surroundings(runs: Sequence[RunSummary]) -> Section:
    """Both against the distance; nothing where no run has them."""
    known = [(place, run.name, run.entropies) for place, run in enumerate(runs) if run.entropies is not None]
    text = (
        "How many networks around the trained one get right what it gets right, and how fast the error rises when "
        "weights are flipped at random: a wide minimum has a high local entropy and a low local energy."
    )
    shown = [(place, name, found) for place, name, found in known if found.distances]
    return Section("surroundings", "Surroundings", text, tuple(_figures(shown)) if shown else ())


def _figures(shown: Sequence[tuple[int, str, Entropies]]) -> list[Figure]:
    alone = len(shown) == 1
    entropy = [Line(name, found.distances, _share(found), place, run=place) for place, name, found in shown]
    energy = [Line(name, found.distances, found.local_energy, place, run=place) for place, name, found in shown]
    counts = [f"{found.constraints} of {found.samples}" for _, _, found in shown]
    caption = (
        "log of the share of networks at that distance that are solutions, per weight: the local entropy less that of "
        f"all networks. At 0 all are. Constraints: {', '.join(counts)} training samples. Gaps are distances at which "
        "message passing did not converge."
    )
    caption += "".join(
        f" Log-evidence per training sample{'' if alone else f' of {name}'}: {fixed(found.evidence, 3)}."
        for _, name, found in shown
        if found.evidence is not None
    )
    rise = "Mean rise of the error on the same samples, in percentage points."
    return [
        Figure(
            "local-entropy",
            "Local entropy, less that of all networks",
            caption,
            Lines("nats per weight", tuple(entropy), None, AXIS),
        ),
        Figure("local-energy", "Local energy", rise, Lines("rise of the error (%)", tuple(energy), None, AXIS)),
    ]


def _share(found: Entropies) -> tuple[float | None, ...]:
    """Local entropy less that of all networks: both by themselves are one curve to the eye."""
    pairs = zip(found.local_entropy, found.unconstrained, strict=True)
    return tuple(None if one is None else one - most for one, most in pairs)


def save_picture(found: Entropies, folder: Path) -> list[Path]:
    """Local entropy and local energy as entropy.png in ``folder``; nothing where there are no distances."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    from cavity.report.plots import DOTS_PER_INCH, draw_lines, rendered, styled

    if not found.distances:
        return []
    path = folder / "entropy.png"
    with styled():
        sheet = Sheet(figsize=(8.4, 3.2))
        FigureCanvasAgg(sheet)
        for place, figure in enumerate(_figures([(0, "", found)]), start=1):
            panel = sheet.add_subplot(1, 2, place)
            assert isinstance(figure.content, Lines)
            draw_lines(panel, figure.content)
            panel.set_title(figure.title)
        sheet.set_layout_engine("constrained")
        write_whole(path, rendered(sheet, "png", dpi=DOTS_PER_INCH))
    return [path]
