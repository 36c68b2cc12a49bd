"""Names and modules that are imported when they are first used.

The stub of a package is the one list of its names, for type checkers and here.
"""

import ast
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from sfumato.errors import NameUnknown, nearest


@cache
def listed(package: str) -> Mapping[str, str]:
    """Where each name of a package's stub is: "module:attribute", or "module:" for a module.

    Nothing is imported. Every line of a stub is ``from .module import name as name``, or
    ``from .other import *`` for all names of the stub of another package.

    >>> listed("sfumato.questions")["MedianPartitioner"]
    'sfumato.questions.partition.fixed_depth:MedianPartitioner'
    """
    places: dict[str, str] = {}
    for line in ast.parse(_text_of(package)).body:
        if not isinstance(line, ast.ImportFrom):
            continue
        for alias in line.names:
            if alias.name == "*":
                places |= listed(f"{package}.{line.module}")
            elif line.module is None:
                places[alias.name] = f"{package}.{alias.name}:"
            else:
                places[alias.name] = f"{package}.{line.module}:{alias.name}"
    return places


@cache
def described(package: str) -> Mapping[str, str]:
    """What a package's stub says of its names, in the comments behind them.

    >>> described("sfumato.questions")["Mean"]
    'Publish the mean of a value, by group.'
    """
    comments = re.compile(r"^from \S+ import (\w+) as \w+ +# (.+)$", re.MULTILINE)
    return dict(comments.findall(_text_of(package)))


def imported(place: str) -> object:
    """Import what "module:attribute" names."""
    module, _, attribute = place.partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


class Deferred:
    """A module under its own name, which is imported when something of it is first needed.

    What is slow to import, or an extra that may be missing, then costs nothing where it is not
    used.

    >>> Deferred("math").floor(2.5)
    2
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self._module), name)


class DeferredClass:
    """A class of a module that ``isinstance`` does not import.

    Before somebody has imported the module, nothing is of its class.

    >>> isinstance("0.5", DeferredClass("fractions", "Fraction"))
    False
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __instancecheck__(self, instance: object) -> bool:
        # A module that is being imported has not all of its names yet.
        kind = getattr(sys.modules.get(self._module), self._name, ())
        return isinstance(instance, kind)


def attached(
    package: str, instead: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names its stub lists.

    ``instead`` has what to write in place of names that people look for.
    """
    places = listed(package)
    names = sorted(places)

    def attribute(wanted: str) -> object:
        if wanted in places:
            return imported(places[wanted])
        if wanted.startswith("__"):  # Python itself and notebooks look for such names
            raise AttributeError(f"module {package!r} has no attribute {wanted!r}")
        if wanted in instead:
            raise NameUnknown(f"{package}.{wanted}", "there is no such name", instead[wanted])
        if importlib.util.find_spec(f"{package}.{wanted}") is not None:
            # Python asks for a module of the package before it imports it: no search for likenesses
            raise NameUnknown(
                f"{package}.{wanted}", "it is a module", f"Write import {package}.{wanted}"
            )
        raise NameUnknown(
            f"{package}.{wanted}",
            f"there is no such name; {nearest(wanted, names)}",
            f"dir({package}) lists all names",
        )

    return attribute, lambda: list(names), names


def _text_of(package: str) -> str:
    # Read by the package's loader: on the executors of Spark, the package lies in an archive.
    loader = globals()["__loader__"]
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return str(loader.get_data(os.path.join(root, *package.split("."), "__init__.pyi")), "utf-8")
