"""Export a run's network: bits for NumPy, C99 source, or ONNX.

    cavity export runs/first --format packed --out net.cavity     cavity.packed.load("net.cavity").predict(pixels)
    cavity export runs/first --format c --out net.c               net.c and net.h: int net_predict(const uint8_t *)
    cavity export runs/first --format onnx --out net.onnx         pixels in, classes out
    cavity export runs/first --format onnx --method bayes --out proba.onnx       class probabilities out

Pixels go in as they are in the image (0 to 255; 0 to 16 for digits): the standardisation is part of what is exported.
The point-wise network must have sign activations and weights -1, 0 and 1.

In Python: trained = cavity.export.Trained.of(cavity.runs.open_run("runs/first"))
           cavity.export.to_packed(trained, "net.cavity"), .to_c(trained, "net.c"), .to_onnx(trained, "net.onnx")
"""

from __future__ import annotations

import argparse

from cavity.cli.output import say
from cavity.cli.parser import UsageError

FORMATS = ("onnx", "packed", "c")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's folder")
    parser.add_argument("--format", choices=FORMATS, required=True, help="what to write")
    parser.add_argument("--out", metavar="PATH", required=True, help="the file; for c, the header is put beside it")
    parser.add_argument("--force", action="store_true", help="overwrite what is there")
    parser.add_argument("--method", choices=("point", "bayes"), help="onnx only: classes, or class probabilities")
    parser.add_argument("--prefix", metavar="NAME", help="c only: what all names start with (default: the file's name)")
    parser.add_argument(
        "--inputs", choices=("pixels", "real"), help="what samples are, where the run does not say (images in .npz)"
    )


def run(args: argparse.Namespace) -> int:
    for option, wanted in (("method", "onnx"), ("prefix", "c")):
        if getattr(args, option) is not None and args.format != wanted:
            raise UsageError(f"--{option} goes with --format {wanted} only")
    from cavity.export import Trained, to_c, to_onnx, to_packed
    from cavity.runs.folder import open_run

    trained = Trained.of(open_run(args.run), inputs=args.inputs)
    if args.format == "packed":
        written = to_packed(trained, args.out, force=args.force)
    elif args.format == "c":
        written = to_c(trained, args.out, prefix=args.prefix, force=args.force)
    else:
        written = to_onnx(trained, args.out, method=args.method or "point", force=args.force)
    say(", ".join(f"{path} ({path.stat().st_size} bytes)" for path in written))
    return 0
