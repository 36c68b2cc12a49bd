"""Everything that a run lets others see, byte by byte.

Two runs stand in one world: nothing but the table may differ between them.

In a world the ids are a sequence, the clock is the test's own, and the files lie at the same paths.
From the moment at which data are read, the clock goes as fast as the world says: so whatever reads
it afterwards shows in which of two worlds it was read.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib.util
import io
import logging
import os
import pickle
import pkgutil
import re
import secrets
import shutil
import sqlite3
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import cli, errors
from sfumato.answers.release import Release
from sfumato.basics.structs import to_bytes
from sfumato.domain.cube import Cube
from support.replay import Tape, through

Artefacts = dict[str, bytes]
START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LEDGER = "budget.db"


class Clock:
    """Time as the test wants it.

    Each public call begins at an hour of its own. Once data are read, time goes at the world's
    pace.
    """

    def __init__(self, pace: float) -> None:
        self._pace, self._now, self._calls, self._seen = pace, START, 0, False

    def begin(self) -> None:
        """A new public call, at a time that depends on no data."""
        self._calls, self._seen = self._calls + 1, False
        self._now = START + dt.timedelta(hours=self._calls)

    def data_were_read(self) -> None:
        """What is read off this clock from now on tells how long the data took."""
        self._seen = True

    def now(self) -> dt.datetime:
        """The time: it stands until data are read, and then goes on each time it is asked for."""
        self._now += dt.timedelta(seconds=self._pace if self._seen else 0)
        return self._now

    def seconds(self) -> float:
        """The same, in seconds since 1970."""
        return self.now().timestamp()


class World:
    """One run: it calls the library as a user would, and keeps what others would see."""

    def __init__(self, folder: Path, tape: Tape, clock: Clock) -> None:
        self.folder, self.artefacts = folder, Artefacts()
        self._tape, self._clock, self._steps = tape, clock, 0
        # What is said once in a process is said once in a world.
        errors._said.clear()

    @property
    def data(self) -> Path:
        """Where the table lies: nothing here is published."""
        return self._made("data")

    @property
    def out(self) -> Path:
        """Where the run writes what is published."""
        return self._made("out")

    @property
    def ledger(self) -> Path:
        """The ledger's own file."""
        return self._made("book") / LEDGER

    def _made(self, name: str) -> Path:
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        """Run one public call and keep what it returned, printed, logged, warned of or raised.

        Returns None if it raised.
        """
        self._clock.begin()
        self._steps += 1
        with _overheard() as said:
            result: Any = None
            try:
                result = action()
            except BaseException as error:
                said["raised"] = "\n".join(_told(error)).encode()
        faces = dict(_faces(result)) | said
        self.artefacts |= {
            f"{self._steps:02d} {name}: {face}": shown for face, shown in faces.items()
        }
        return result

    def command(self, *words: object) -> int | None:
        """Run one command line in this process."""
        args = [str(word) for word in words]
        code: int | None = self.call(" ".join(args[:2]), lambda: cli.run(args))
        return code

    def finish(self) -> Artefacts:
        """Add the files that were written and the public part of the ledger."""
        self.artefacts |= {
            f"file {path.relative_to(self.out)}": path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file()
        }
        self.artefacts |= public_part(self.folder / "book")
        return self.artefacts


@contextmanager
def world(folder: Path, tape: Tape, pace: float) -> Iterator[World]:
    """A world in an empty folder, whose mechanisms pass through a tape."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    clock = Clock(pace)
    tape.heard = clock.data_were_read
    with pytest.MonkeyPatch.context() as patch, through(tape):
        _fix_ids(patch)
        _fix_clock(patch, clock)
        yield World(folder, tape, clock)


def both(
    folder: Path, lay: Callable[[World, int], Any], run: Callable[[World, Any], None]
) -> tuple[Artefacts, Artefacts]:
    """Run the same twice, on two tables, with the mechanisms' outputs forced equal.

    ``lay`` lays the first table, then the second.
    """
    tape, seen = Tape(), []
    for which, pace in enumerate((1.0, 7.0)):
        with world(folder, tape, pace) as here:
            run(here, lay(here, which))
            seen.append(here.finish() | {"mechanisms": "\n".join(tape.asked).encode()})
        if tape.fault is not None:
            raise tape.fault
        tape.rewind()
    return seen[0], seen[1]


def differences(one: Artefacts, other: Artefacts) -> list[str]:
    """In which artefacts two runs differ, with the place."""
    found = [
        f"{name}: in the {'first' if name in one else 'second'} run only"
        for name in sorted(one.keys() ^ other.keys())
    ]
    return found + [
        f"{name}: {_place(one[name], other[name])}"
        for name in sorted(one.keys() & other.keys())
        if one[name] != other[name]
    ]


def assert_same(pair: tuple[Artefacts, Artefacts]) -> Artefacts:
    """Fail with a line for each artefact in which two runs differ.

    If they differ in none, return what both have shown.
    """
    found = differences(*pair)
    if found:
        pytest.fail(
            f"{len(found)} of {len(pair[0])} artefacts differ:\n"
            + "\n".join(line[:400] for line in found),
            pytrace=False,
        )
    return pair[0]


def _place(one: bytes, other: bytes) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return " against ".join(repr(text[max(0, at - 40) : at + 40]) for text in (one, other))


def public_part(folder: Path) -> Artefacts:
    """The ledger as an auditor sees it.

    He sees the names of its files, and all of its main file, but no secret.
    """
    if not folder.exists():
        return {}
    names = sorted(
        path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))
    )  # there while it is open
    found = {"ledger: files": "\n".join(names).encode()}
    with closing(sqlite3.connect(f"file:{folder / LEDGER}?mode=ro", uri=True)) as db:
        found["ledger: dump"] = "\n".join(db.iterdump()).encode()
    return found


# --- what a call shows ----------------------------------------------------------------------------


def _faces(thing: Any, name: str = "returned") -> Iterator[tuple[str, bytes]]:
    """All that can be seen of what a call returned, and of its parts."""
    if isinstance(thing, list | tuple):
        yield f"{name} length", str(len(thing)).encode()
        for i, part in enumerate(thing):
            yield from _faces(part, f"{name}[{i}]")
        return
    yield f"{name} repr", repr(thing).encode()
    yield f"{name} str", str(thing).encode()
    if isinstance(thing, Release):
        yield f"{name} JSON", to_bytes(thing)
        yield f"{name} pickle", pickle.dumps(thing)
        yield f"{name} frame", _frame(thing)
        yield f"{name} sentence", thing.guarantee.sentence().encode()
        yield f"{name} HTML", str(thing._repr_html_()).encode()
        if thing.has_table and importlib.util.find_spec("xlsxwriter"):
            yield f"{name} workbook", _workbook(thing)


def _workbook(release: Release) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return release.to_excel(Path(folder) / "answer.xlsx").read_bytes()


def _frame(release: Release) -> bytes:
    from pyarrow import csv

    written = io.BytesIO()
    csv.write_csv(release.to_frame(), written)
    return str(release.to_frame().schema).encode() + written.getvalue()


@contextmanager
def _overheard() -> Iterator[Artefacts]:
    """Keep what is printed, logged and warned of."""
    said: Artefacts = {}
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    log, root, before = _Records(), logging.getLogger(), (sys.stdout, sys.stderr)
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    logging.getLogger("matplotlib.font_manager").setLevel(
        logging.INFO
    )  # a hundred lines on the fonts of this machine
    sys.stdout, sys.stderr = out, err
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield said
    finally:
        sys.stdout, sys.stderr = before
        root.removeHandler(log)
        root.setLevel(level)
        said["stdout"], said["stderr"] = out.buffer.getvalue(), err.buffer.getvalue()  # type: ignore[attr-defined]
        said["log"] = "\n".join(log.lines).encode()
        said["warnings"] = "\n".join(
            f"{one.category.__name__}: {one.message}" for one in warned
        ).encode()


class _Records(logging.Handler):
    """What is logged, at any level and by anyone but matplotlib's search for fonts.

    Addresses in memory say nothing.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(
            re.sub(
                "0x[0-9a-f]{6,}", "0x", f"{record.levelname} {record.name}: {record.getMessage()}"
            )
        )


def _told(error: BaseException | None) -> Iterator[str]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield f"{type(error).__name__}: {error} {error.args!r} {vars(error)!r}"
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__


# --- what is fixed --------------------------------------------------------------------------------


def _fix_ids(patch: pytest.MonkeyPatch) -> None:
    """Random names become a sequence.

    The noise's own bits stay random: no artefact may depend on them but by a mechanism.
    """
    modules = _modules()  # before any name of `secrets` is replaced: some modules bind it
    number = iter(range(10**9))

    def some(size: int | None = None) -> bytes:
        seed = next(number)
        return b"".join(
            hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(1 + (size or 32) // 32)
        )[: size or 32]

    patch.setattr(secrets, "token_bytes", some)
    patch.setattr(secrets, "token_hex", lambda size=None: some(size).hex())
    patch.setattr(secrets, "token_urlsafe", lambda size=None: some(size).hex())
    patch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=some(16)))
    for module in modules:
        if callable(vars(module).get("new_key")):  # of signatures
            patch.setattr(module, "new_key", some)


def _fix_clock(patch: pytest.MonkeyPatch, clock: Clock) -> None:
    """All that tells the time in the library asks the test's clock.

    Where data are counted, the clock hears of it.
    """

    class Like(type):
        def __instancecheck__(cls, thing: object) -> bool:
            return isinstance(thing, dt.datetime)

    class Now(dt.datetime, metaclass=Like):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            found = clock.now()
            return found if tz is not None else found.replace(tzinfo=None)

        today = utcnow = now

    for module in _modules():
        if vars(module).get("datetime") is dt.datetime:
            patch.setattr(module, "datetime", Now)
        if vars(module).get("dt") is dt:
            patch.setattr(module, "dt", _Shim(Now))
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        patch.setattr(time, name, clock.seconds)
        patch.setattr(time, f"{name}_ns", lambda: int(clock.seconds() * 1e9))
    made = Cube.__init__

    def counted(self: Cube, *given: Any, **more: Any) -> None:
        clock.data_were_read()
        made(self, *given, **more)

    patch.setattr(Cube, "__init__", counted)


class _Shim:
    """The module ``datetime`` with another clock."""

    def __init__(self, now: Any) -> None:
        self.datetime = now

    def __getattr__(self, name: str) -> Any:
        return getattr(dt, name)


def _modules() -> Iterable[Any]:
    """All modules of the library.

    Those that are imported late are among them, since they would bind the wrong clock.
    """
    for found in pkgutil.walk_packages(sf.__path__, "sfumato."):
        if not found.name.startswith(("sfumato.__main__", "sfumato.sklearn")):
            importlib.import_module(found.name)
    return [module for name, module in sys.modules.items() if name.split(".")[0] == sf.__name__]


def touched(path: Path, seconds: int) -> Path:
    """Give a file a time of modification."""
    os.utime(path, ns=(seconds * 10**9, seconds * 10**9 + 123_456_789))
    return path
