"""Data sets: which there are, how to get them, where they lie.

    cavity data list
    cavity data get fashion-mnist
    cavity data where mnist

In Python: cavity.data.available(), cavity.data.fetch("fashion-mnist"), cavity.data.where("mnist")
"""

from __future__ import annotations

import argparse

from cavity.cli.output import say
from cavity.cli.parser import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "get", "where"), help="what to do")
    parser.add_argument("names", metavar="NAME", nargs="*", help="data sets, for get and where")
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder searched first, and where downloads go (default: $CAVITY_DATA, else a cache)",
    )


def run(args: argparse.Namespace) -> int:
    from cavity.data import available, fetch, where

    if args.action == "list":
        if args.names:
            raise UsageError(f"list takes no name; try: cavity data where {args.names[0]}")
        entries = available(args.data_dir)
        width = max(len(entry.name) for entry in entries)
        for entry in entries:
            print(f"{entry.name:<{width}}  {'here' if entry.present else 'to get':<6}  {entry.description}")
        others = "A .npz, .csv or .parquet file or a folder of PNG images also works."
        print(f"\nEach can have the prefix permuted-. {others}")
        return 0
    if not args.names:
        raise UsageError(f"{args.action} needs the name of a data set; cavity data list shows them")
    for name in args.names:
        if args.action == "get":
            lines = [str(path) for path in fetch(name, args.data_dir)]
        else:
            places = where(name, args.data_dir)
            lines = [f"{'found  ' if place.found else 'missing'}  {place.path}" for place in places]
        say("\n".join(lines) or f"{name} needs no file")
    return 0
