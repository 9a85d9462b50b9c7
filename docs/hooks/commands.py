"""The reference of the command line comes from its parsers: ``<!-- commands -->`` becomes a section for each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from typing import Any

from cavity.cli import COMMANDS
from cavity.cli.parser import Parser

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, "\n\n".join(section(name) for name in COMMANDS)) if MARK in markdown else markdown


def section(name: str) -> str:
    """A command: what it does, how it is called, and its arguments by group."""
    home, summary = COMMANDS[name]
    module = import_module(home)
    parser = Parser(prog=f"cavity {name}", description=module.__doc__ or "")
    module.add_arguments(parser)
    groups = (part for group in parser._action_groups for part in listed(name, group))
    return "\n\n".join([f"## {name}", f"{summary[0].upper()}{summary[1:]}.", *described(parser.description), *groups])


def described(description: str) -> Iterator[str]:
    """The paragraphs of a docstring, those with lines set in as text that keeps its lines."""
    paragraphs = [part for part in description.strip().split("\n\n") if part.strip()]
    # The first says in other words what the summary says.
    for paragraph in paragraphs[1:]:
        plain = not any(line.startswith(" ") for line in paragraph.splitlines()) and "In Python:" not in paragraph
        yield escaped(paragraph) if plain else f"```text\n{dedent(paragraph)}\n```"


def listed(name: str, group: argparse._ArgumentGroup) -> Iterator[str]:
    """The arguments of a group as definitions, under the group's title unless it is argparse's own."""
    actions = [
        action for action in group._group_actions if action.help is not argparse.SUPPRESS and action.dest != "help"
    ]
    if not actions:
        return
    title = {"positional arguments": "Arguments", "options": "Options"}.get(group.title or "", group.title or "")
    yield f"### {title[0].upper()}{title[1:]} {{ #{name}-{title.replace(' ', '-').lower()} }}"
    yield "\n\n".join(definition(action) for action in actions)


def definition(action: argparse.Action) -> str:
    """``--name VALUE`` and what it does."""
    return f"`{called(action)}`\n:   {escaped(helped(action))}"


def called(action: argparse.Action) -> str:
    """The names of an option with its value, or the word for an argument; choices are listed below it."""
    if action.nargs == 0:
        value = ""
    elif action.choices and action.metavar is None and action.nargs is None:
        value = action.dest.upper()
    else:
        value = argparse.HelpFormatter(prog="")._format_args(action, action.dest.upper())
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def helped(action: argparse.Action) -> str:
    """The help text; which values there are and which is the default, where it does not say so itself."""
    text = (
        (action.help or "") % {"default": action.default, "prog": ""}
        if "%" in (action.help or "")
        else action.help or ""
    )
    if action.choices and action.metavar is None:
        text += f". One of {', '.join(map(str, action.choices))}"
    silent = action.default in (None, False, argparse.SUPPRESS) or "default" in text
    return text if silent else f"{text} (default: {action.default})"


def escaped(text: str) -> str:
    """Help is plain text: what Markdown or HTML would take for a mark of its own stays what it is."""
    for mark in ("\\", "<", "*", "[", "`", "|", "$"):
        text = text.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return text
