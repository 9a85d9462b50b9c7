"""Docstrings are text for a terminal; two of their layouts are not Markdown and are turned into it for the site,
tuples are given the list of their fields, and defaults that are names in the source are shown as what they are.

- ``====`` tables of two or three columns become Markdown tables;
- a heading underlined by dashes with ``name : text`` lines becomes a list of definitions.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

RULE = re.compile(r"^=+( =+)+$")
DASHES = re.compile(r"^-{3,}$")
ENTRY = re.compile(r"^(\S+) : (.*)$")


class Markdown(griffe.Extension):
    """Rewrites every docstring when it has been read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = headings(tables(obj.docstring.value))

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """The fields of a tuple are its signature, which a reader of the source sees and one of the site does not."""
        if cls.docstring is not None and any(str(base).startswith("NamedTuple") for base in cls.bases):
            fields = [f"`{name}: {it.annotation}`" for name, it in cls.attributes.items() if it.annotation is not None]
            cls.docstring.value += "\n\nFields: " + ", ".join(fields) + "."

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """``epochs: int = epochs`` says nothing to a reader of the site; ``epochs: int = 40`` does."""
        for function in functions(pkg):
            named = [one for one in function.parameters if one.default is not None and not literal(str(one.default))]
            values = defaults(function) if named else {}
            for parameter in named:
                if isinstance(values.get(parameter.name), (bool, int, float, str, tuple, type(None))):
                    parameter.default = repr(values[parameter.name])


def functions(parent: griffe.Module | griffe.Class) -> Iterator[griffe.Function]:
    """All functions and methods below a module or class that are defined there."""
    for member in parent.members.values():
        if isinstance(member, griffe.Function):
            yield member
        elif isinstance(member, (griffe.Module, griffe.Class)):
            yield from functions(member)


def literal(default: str) -> bool:
    try:
        ast.literal_eval(default)
    except (ValueError, SyntaxError):
        return False
    return True


def defaults(function: griffe.Function) -> dict[str, Any]:
    """The defaults that Python knows, of a class those of its constructor; none where it shows no signature."""
    home = function.parent if function.name == "__init__" else function
    try:
        parameters = inspect.signature(griffe.dynamic_import(home.path)).parameters
    except (ImportError, TypeError, ValueError):
        return {}
    return {name: one.default for name, one in parameters.items()}


def tables(text: str) -> str:
    """Each table between two rules as a Markdown table; a row without a first cell continues the one before."""
    out: list[str] = []
    rows: list[list[str]] | None = None
    spans: list[tuple[int, int | None]] = []
    for line in text.splitlines():
        if RULE.match(line):
            if rows is None:
                starts = [match.start() for match in re.finditer("=+", line)]
                spans = list(zip(starts, [*starts[1:], None], strict=True))
                rows = []
            else:
                out += ["", *_markdown_table(rows), ""]
                rows = None
        elif rows is not None:
            cells = [line[slice(*span)].strip() for span in spans]
            if cells[0]:
                rows.append(cells)
            else:
                rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        else:
            out.append(line)
    return "\n".join(out)


def _markdown_table(rows: list[list[str]]) -> list[str]:
    columns = len(rows[0])
    body = [[f"`{row[0]}`", *row[1:]] for row in rows]
    return ["|" + " |" * columns, "|" + "---|" * columns, *("| " + " | ".join(row) + " |" for row in body)]


def headings(text: str) -> str:
    """A heading over dashes in bold, and its ``name : text`` lines as definitions."""
    lines = text.splitlines()
    out: list[str] = []
    for number, line in enumerate(lines):
        entry = ENTRY.match(line)
        if number + 1 < len(lines) and line.strip() and DASHES.match(lines[number + 1]):
            out += [f"**{line.strip()}**", ""]
        elif DASHES.match(line) and number and lines[number - 1].strip():
            continue
        elif entry is not None:
            out += ["", f"`{entry[1]}`", f":   {entry[2]}"]
        else:
            out.append(line)
    return "\n".join(out)
