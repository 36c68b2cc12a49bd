"""Docstrings as Sphinx wants them.

Ours are written for `help()`. A paragraph at the margin ends a section, examples have no heading,
and `|x|` is an absolute value. Sphinx needs a heading at each of these places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FIELDS = {"Parameters", "Attributes", "Raises", "Returns", "Yields", "Warns"}
UNDERLINE = re.compile(r"-{4,}")
GUARANTEE = "Guarantee: "
ITEM = re.compile(r" +\*\w")
LABEL = re.compile(r"(Sensitivity|Holds because|Not covered|Source): |(Holds because)$")


def with_headings(lines: list[str]) -> list[str]:
    """Give every part of a docstring a heading.

    >>> text = ["Ask.", "", "Raises", "------", "UsageError", "    Always.", "", ">>> 1", "1"]
    >>> with_headings(text)[7:]
    ['Examples', '--------', '', '>>> 1', '1']
    """
    found: list[str] = []
    section = ""
    for place, line in enumerate(lines):
        under = lines[place + 1] if place + 1 < len(lines) else ""
        starts = not found or not found[-1].strip()
        if UNDERLINE.fullmatch(under):
            section = line
        elif starts and line.startswith(">>>"):
            found += _heading("Examples", section)
            section = "Examples"
        elif starts and line.startswith(GUARANTEE):
            found += _heading("Guarantee", section)
            section = "Guarantee"
            text = line.removeprefix(GUARANTEE)
            found.append(text[:1].upper() + text[1:])
            continue
        elif starts and section in FIELDS and _is_prose(line, under):
            found += _heading("Notes", section)
            section = "Notes"
        found += _labelled(line)
    return found


def _labelled(line: str) -> list[str]:
    """Let each part of a guarantee be a paragraph that begins with its name in bold.

    >>> _labelled("Not covered: the time a query takes.")
    ['', '**Not covered:** the time a query takes.']
    """
    label = LABEL.match(line)
    return ["", f"**{label[1] or label[2]}:** {line[label.end() :]}"] if label else [line]


def _heading(title: str, section: str) -> list[str]:
    return [] if section == title else [title, "-" * len(title), ""]


def _is_prose(line: str, under: str) -> bool:
    """Whether a line begins a paragraph, and not a field with its text indented under it."""
    return bool(line.strip()) and not line.startswith(" ") and not under.startswith("  ")


def with_blank_lines(lines: list[str]) -> list[str]:
    """Let each indented part of the head of a module be a block of its own.

    >>> with_blank_lines(["Holds because", "    *One*: so", "    so.", "    *Two*: thus.", "End."])
    ['Holds because', '', '    *One*: so', '    so.', '', '    *Two*: thus.', '', 'End.']
    """
    found: list[str] = []
    for line in lines:
        before = found[-1] if found else ""
        listed = before.lstrip().startswith(("* ", ">>>")) or line.lstrip().startswith("* ")
        begins = _indent(line) != _indent(before) or (ITEM.match(line) and before.endswith("."))
        if before.strip() and line.strip() and begins and not listed:
            found.append("")
        found.append(line)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def without_markup(lines: list[str]) -> Iterator[str]:
    """Escape the bars of absolute values, except in examples.

    >>> list(without_markup(["at most |x - v|", ">>> a | b"]))
    ['at most \\\\|x - v\\\\|', '>>> a | b']
    """
    for line in lines:
        code = line.lstrip().startswith((">>>", "..."))
        yield line if code else line.replace("|", r"\|")
