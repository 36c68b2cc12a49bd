"""Names that a stub lists, imported when they are first used.

The stub is the one list, for type checkers and here.
"""

import ast
import importlib
import os
import re
from collections.abc import Callable, Mapping
from functools import cache


@cache
def listed(stub: str) -> Mapping[str, str]:
    """Where each name of a stub of the package is: "module:attribute", or "module:" for a module.

    Nothing is imported. Every line of a stub is ``from .module import name as name``, or
    ``from .other import *`` for all names of another stub.

    >>> listed("questions")["MedianPartitioner"]
    'sfumato.partition.median:MedianPartitioner'
    """
    lines = ast.parse(_text_of(stub)).body
    places: dict[str, str] = {}
    for line in lines:
        if not isinstance(line, ast.ImportFrom):
            continue
        for alias in line.names:
            if alias.name == "*":
                places |= listed(str(line.module))
            elif line.module is None:
                places[alias.name] = f"sfumato.{alias.name}:"
            else:
                places[alias.name] = f"sfumato.{line.module}:{alias.name}"
    return places


@cache
def described(stub: str) -> Mapping[str, str]:
    """What a stub says of its names, in the comments behind them.

    >>> described("questions")["Mean"]
    'Publish the mean of a value, by group.'
    """
    comment = r"^from \S+ import (\w+) as \w+ +# (.+)$"
    return dict(re.findall(comment, _text_of(stub), re.MULTILINE))


def imported(place: str) -> object:
    """Import what "module:attribute" names."""
    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def attached(
    name: str,
    stub: str,
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module whose names a stub lists."""
    places = listed(stub)
    names = sorted(places)

    def attribute(wanted: str) -> object:
        if wanted not in places:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        return imported(places[wanted])

    return attribute, lambda: list(names), names


def _text_of(stub: str) -> str:
    # Read by the package's loader: on the executors of Spark, the package lies in an archive.
    path = os.path.join(os.path.dirname(__file__), "..", f"{stub}.pyi")
    return str(globals()["__loader__"].get_data(path), "utf-8")
