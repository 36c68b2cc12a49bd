"""Lines that fit: what people read keeps to the width of their terminal.

Sentences are broken between words, on a terminal and, at 80 characters, where prose is piped to a
pager or a file. What programs read is never broken: tables in a pipe, JSON, plans, paths, SQL, and
messages on a stderr that is no terminal, where each stays one line.
"""

from __future__ import annotations

import os
import textwrap
from typing import TextIO

WIDTH = 80
"""Of prose in a pipe or file, and of a terminal that does not say how wide it is."""

HANGING = 4
"""By how much the further lines of a broken one are indented."""


def width_of(stream: TextIO) -> int | None:
    """How many characters a line of a terminal has; None where the stream is no terminal."""
    if not stream.isatty():
        return None
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and int(stated) > 0:
        return int(stated)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError, AttributeError):
        return WIDTH


def fitted(text: str, width: int | None, hanging: int = HANGING) -> str:
    """Text whose long lines are broken between words; unchanged without a width.

    A word that is longer than a line, such as a path, stays whole.

    >>> print(fitted("One idea a sentence.\\n  A second line of it.", 14, hanging=2))
    One idea a
      sentence.
      A second
        line of
        it.
    """
    if width is None:
        return text
    lines = text.split("\n")
    return "\n".join(
        line if len(line) <= width else _broken(line, width, hanging) for line in lines
    )


def _broken(line: str, width: int, hanging: int) -> str:
    """A long line as several; those after the first are indented further."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent + " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
