"""Every test draws the same noise in every run: no test passes or fails by luck.

While a test runs, what the library and the tests draw from the operating system comes from a
stream that is keyed by the test's name. The library does not notice: nothing says "not private",
as `sfumato.testing.deterministic` would. A fixture of wider scope than one test has a stream of
its own name, so that it does not depend on which test asks for it first. A forked child has a
stream of its own. Programs that are started anew draw from the system, as does a test marked
``system_entropy``.

`--entropy=SALT` changes all streams. A test that fails under one salt is a test of luck.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import sfumato
from sfumato.random import bits

system = os.urandom
TESTS = Path(__file__).parent.parent
OURS = (str(Path(sfumato.__file__).parent), str(TESTS), "<")  # examples of pages are in no file
THROUGH = {"random", "secrets"}  # they hand on what they draw


class Stream:
    """Bytes that follow from a name; those of a forked child also from its place among the forks.

    Each module that draws has numbers of its own: a name that is drawn for a file, or not because
    the file is there already, does not change the noise.
    """

    def __init__(self, name: str) -> None:
        self._rename(name)

    def _rename(self, name: str) -> None:
        self._name = name
        self._draws: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._forks = itertools.count()
        self._fork = 0

    def take(self, size: int, module: str) -> bytes:
        """The next bytes for a module. No number is drawn twice, not by two threads either."""
        drawn = f"{self._name}\0{module}\0{next(self._draws[module])}"
        return hashlib.shake_256(drawn.encode()).digest(size)

    def before_fork(self) -> None:
        """Called in the parent."""
        self._fork = next(self._forks)

    def after_fork(self) -> None:
        """Called in the child."""
        self._rename(f"{self._name}\0child {self._fork}")


_in_force: list[Stream | None] = [None]


def _before_fork() -> None:
    if _in_force[-1] is not None:
        _in_force[-1].before_fork()


def _after_fork() -> None:
    if _in_force[-1] is not None:
        _in_force[-1].after_fork()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


def _drawing(frame: FrameType) -> FrameType:
    """The frame that asks, behind those that hand on what they draw."""
    while frame.f_globals.get("__name__") in THROUGH and frame.f_back is not None:
        frame = frame.f_back
    return frame


def urandom(size: int) -> bytes:
    """Stands for `os.urandom`."""
    stream = _in_force[-1]
    frame = _drawing(sys._getframe(1))
    # Other libraries draw when they are first used, in whichever test that is.
    if stream is None or not frame.f_code.co_filename.startswith(OURS):
        return system(size)
    return stream.take(size, str(frame.f_globals.get("__name__")))


@contextmanager
def drawn_from(name: str | None) -> Iterator[None]:
    """Put the stream of a name in force, or the system's entropy (None).

    The stream before it, and what the library keeps of it, go on afterwards as if nothing had been
    drawn in between.
    """
    kept = bits._process_wide
    bits._process_wide = bits.Keystream()
    _in_force.append(None if name is None else Stream(name))
    try:
        yield
    finally:
        _in_force.pop()
        bits._process_wide = kept


def pytest_addoption(parser: pytest.Parser) -> None:
    """Another salt gives all tests other noise."""
    parser.addoption("--entropy", default="", metavar="SALT", help="draw other noise in all tests")


def pytest_configure(config: pytest.Config) -> None:
    """From here on, every draw is looked at."""
    before = os.urandom
    _replace(urandom)
    config.add_cleanup(lambda: _replace(before))


def _replace(draw: Callable[[int], bytes]) -> None:
    os.urandom = draw
    random._urandom = draw  # `secrets` draws from it


def _named(config: pytest.Config, *names: object) -> str:
    return "\0".join(map(str, (config.getoption("--entropy"), *names)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a module draws while it is imported follows from the module's name."""
    with drawn_from(_named(collector.config, collector.nodeid)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What a test draws follows from its name."""
    real = item.get_closest_marker("system_entropy") is not None
    with drawn_from(None if real else _named(item.config, item.nodeid)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What a fixture of wider scope draws follows from its own name and parameter."""
    if fixturedef.scope == "function":
        return (yield)
    parameter = getattr(request, "param_index", 0)
    name = _named(request.config, fixturedef.baseid, fixturedef.argname, parameter)
    with drawn_from(name):
        return (yield)
