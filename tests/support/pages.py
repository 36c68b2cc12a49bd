"""Pages as a reader follows them.

Files that they show are written, Python runs, commands are given.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.answers import registry
from sfumato.data import registry as data_registry

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
FILE = re.compile(r"# (\w+\.(?:py|toml))\n")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of code, in the order of the page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def files(page: Path) -> list[tuple[str, str]]:
    """The files that a page shows.

    They are the blocks that begin with a comment that holds a name, and nothing else.
    """
    found = [(FILE.match(text), text) for _, text in blocks(page)]
    return [(file[1], text) for file, text in found if file is not None]


def follow(page: Path, folder: Path) -> dict[str, Any]:
    """Write the files that a page shows, run its other Python, and return the names there."""
    names: dict[str, Any] = {}
    for language, text in blocks(page):
        file = FILE.match(text)
        if file is not None:
            (folder / file[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)
    return names


def commands(page: Path) -> list[list[str]]:
    """What the page types after ``$ sfumato``, as arguments."""
    texts = [text.replace("\\\n", " ") for language, text in blocks(page) if language == "console"]
    typed = [line for text in texts for line in text.splitlines()]
    return [line.split("#")[0].split()[2:] for line in typed if line.startswith("$ sfumato ")]


@contextmanager
def outside(folder: Path) -> Iterator[None]:
    """Find modules in a folder while the block runs.

    Then forget them, and the questions and readers that they registered.
    """
    known, modules = dict(registry._outside), set(sys.modules)
    readers = list(data_registry._outside)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - modules:
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == folder:
                del sys.modules[name]
        registry._outside.clear()
        registry._outside.update(known)
        registry._clear()
        data_registry._outside[:] = readers
