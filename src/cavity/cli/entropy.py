"""The evidence of a run's design, and how many networks around the trained one make no further mistake.

    cavity entropy runs/first
    cavity entropy runs/first --samples 500 --distances 0.01,0.05,0.1

Evidence: log P(labels | inputs) of training samples under the prior that training began with, by AMP in mini-batches.
Local entropy: log of the number of networks at a distance (a fraction of the weights) from the trained one which get
right what it gets right, per weight, for binary weights; beside it the local energy, the rise of the error when that
fraction is flipped at random. Writes entropy.json and entropy.png into the run's folder; cavity report shows both.

In Python: cavity.entropy.log_evidence(net, x, y), cavity.entropy.local_entropy(net, x, y, distances)
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cavity.cli.output import say, say_notes
from cavity.cli.parser import add_data_changed
from cavity.runs.entropy import DISTANCES, EVIDENCE_SAMPLES, LOCAL_SAMPLES
from cavity.runs.options import Names

if TYPE_CHECKING:
    from cavity.runs.entropy import Entropies

COUNTING = Names("cavity.analysis.entropy.local:counting")
#: The exit status where a number is missing because message passing did not converge.
NOT_CONVERGED = 1


def fractions(text: str) -> tuple[float, ...]:
    """``0.01,0.05,0.1``."""
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected fractions such as 0.01,0.05, got {text!r}") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help="run folder")
    usual = f"{EVIDENCE_SAMPLES} for the evidence, {LOCAL_SAMPLES} for the rest"
    add("--samples", type=int, metavar="N", help=f"training samples at most (default: {usual})")
    add("--distances", type=fractions, default=DISTANCES, metavar="X,X", help="fractions of flipped weights")
    add("--algorithm", choices=COUNTING, default="bp", help="for the local entropy (default: bp)")
    add_data_changed(parser)
    add("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from cavity.report.entropy import save_picture
    from cavity.runs.entropy import ENTROPY, entropies, write_entropies
    from cavity.runs.folder import open_run
    from cavity.training.display import bars
    from cavity.util.regular import read_regular

    opened = open_run(args.run)
    data = opened.find_data(args.data_changed)
    say_notes(data.notes)
    options = {"samples": args.samples, "distances": args.distances, "algorithm": args.algorithm}
    with bars(Console(stderr=True)) as shown:
        task = shown.add_task("message passing", total=1 + len(set(args.distances)), note="")
        found = entropies(opened, data.dataset, **options, tell=lambda done: shown.update(task, completed=done))
    write_entropies(opened, found)
    paths = [opened.path / ENTROPY, *save_picture(found, opened.path)]
    if args.json:
        print(read_regular(opened.path / ENTROPY).decode(), end="")
    else:
        say("\n".join([*lines(found), "written: " + ", ".join(map(str, paths))]))
    return NOT_CONVERGED if found.evidence is None or None in found.local_entropy else 0


def lines(found: Entropies) -> list[str]:
    """The numbers for people."""
    said = "not known: message passing did not converge" if found.evidence is None else f"{found.evidence:.4f}"
    text = [f"log-evidence per training sample ({found.evidence_samples} samples): {said}"]
    if not found.distances:
        return [*text, "local entropy needs binary weights"]
    text.append(f"around the trained weights, which get {found.constraints} of {found.samples} training samples right:")
    text.append("distance  local entropy  without samples  local energy")
    rows = zip(found.distances, found.local_entropy, found.unconstrained, found.local_energy, strict=True)
    for distance, entropy, most, energy in rows:
        shown = "not converged" if entropy is None else f"{entropy:.4f}"
        text.append(f"{distance:>8g}  {shown:>13}  {most:>15.4f}  {energy:>10.2f} %")
    return text
