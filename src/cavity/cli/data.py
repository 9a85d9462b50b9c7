"""Data sets: which there are, how to get them, where they lie.

    cavity data list
    cavity data get fashion-mnist
    cavity data where mnist

In Python: cavity.data.available(), cavity.data.fetch("fashion-mnist"), cavity.data.where("mnist")
"""

from __future__ import annotations

import argparse

from cavity.cli.parser import UsageError

ACTIONS = ("list", "get", "where")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument("names", metavar="NAME", nargs="*", help="data sets, for get and where")
    parser.add_argument("--data-dir", metavar="DIR", help="folder searched first, and where downloads go")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        if args.names:
            raise UsageError(f"list takes no name; try: cavity data where {args.names[0]}")
        return _list(args.data_dir)
    if not args.names:
        raise UsageError(f"{args.action} needs the name of a data set; cavity data list shows them")
    return (_get if args.action == "get" else _where)(args.names, args.data_dir)


def _list(data_dir: str | None) -> int:
    from cavity.data import available

    entries = available(data_dir)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        print(f"{entry.name:<{width}}  {'here' if entry.present else 'to get':<6}  {entry.description}")
    print("\nEach can have the prefix permuted-. A .npz, .csv or .parquet file or a folder of PNG images also works.")
    return 0


def _get(names: list[str], data_dir: str | None) -> int:
    from cavity.data import fetch

    for name in names:
        paths = fetch(name, data_dir)
        print("\n".join(str(path) for path in paths) if paths else f"{name} needs no file")
    return 0


def _where(names: list[str], data_dir: str | None) -> int:
    from cavity.data import where

    for name in names:
        places = where(name, data_dir)
        for place in places:
            print(f"{'found  ' if place.found else 'missing'}  {place.path}")
        if not places:
            print(f"{name} needs no file")
    return 0
