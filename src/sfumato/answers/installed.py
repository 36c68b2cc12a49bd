"""What installed packages declare as questions, by their metadata: nothing of theirs is imported.

``importlib.metadata`` gives the same, and its import alone would make `sfumato --help` take half as
long again.
"""

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

# The group of entry points by which packages declare their questions: name = "module:Class".
GROUP = "sfumato.questions"


class Declared(NamedTuple):
    """A question that an installed package declares.

    Attributes
    ----------
    name : str
        The name of its command.
    place : str
        "module:Class".
    package : str
        The name of the package.
    """

    name: str
    place: str
    package: str


def declared() -> list[Declared]:
    """All questions that packages on ``sys.path`` declare; the first one of a name counts."""
    packages: dict[str, str] = {}
    for package, folder in _packages():
        # The first folder on the path is the one that Python imports the package from.
        packages.setdefault(package.lower().replace("_", "-"), folder)
    by_name: dict[str, Declared] = {}
    for package, folder in packages.items():
        for name, place in _entries(folder):
            by_name.setdefault(name, Declared(name, place, package))
    return [by_name[name] for name in sorted(by_name)]


def _packages() -> Iterator[tuple[str, str]]:
    """Names of installed packages, and the folders that hold their metadata."""
    for place in sys.path:
        try:
            names = sorted(os.listdir(place or "."))
        except OSError:  # no folder, or one that may not be read
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield name.partition("-")[0].removesuffix(".egg"), os.path.join(place, name)


def _entries(folder: str) -> Iterator[tuple[str, str]]:
    """The lines "name = module:Class" of the group, without what a package may add in brackets."""
    try:
        with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    within = False
    for line in map(str.strip, lines):
        if line.startswith("["):
            within = line == f"[{GROUP}]"
        elif within and "=" in line and not line.startswith("#"):
            name, _, place = line.partition("=")
            yield name.strip(), place.partition("[")[0].strip()
