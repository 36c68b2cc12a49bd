"""What runs on a person's device: one value in, one report out, and the same report ever after.

A second report of the same person would cost epsilon again, even of the same value. So the report
is remembered, on disk before it is handed out, and whatever is asked later gets the remembered one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import as_floats
from sfumato.domain import Interval
from sfumato.errors import BoundsRequired, DataError, UsageError
from sfumato.local.bpm import BPM
from sfumato.local.constants import Floats
from sfumato.local.mechanism import MultivariateLaplace
from sfumato.random.bits import Bits, current

Bounds: TypeAlias = "Mapping[str, Interval] | Sequence[tuple[float, float]]"

LONGEST_LABEL = 1_000
NOT_PRIVATE = ",not private"


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One person's report, as it travels: a line of JSON.

    Attributes
    ----------
    to : str
        The mechanism and its parameters, and whether the report is for tests only; see ``label``.
    id : str
        Random; tells copies of one report from reports of two persons.
    cells : tuple of int
        Where it lies on the mechanism's lattice.
    """

    to: str
    id: str
    cells: tuple[int, ...]


def label(mechanism: BPM | MultivariateLaplace, private: bool = True) -> str:
    """A mechanism in one word, which reports carry.

    A report whose noise came from a public seed says so in it, and no real collection takes it.

    >>> label(BPM(epsilon=2, L="0.3", dimension=2))
    'bpm,epsilon=2,L=3/10,dimension=2'
    >>> label(MultivariateLaplace(epsilon=2, dimension=2), private=False)
    'laplace,epsilon=2,dimension=2,not private'
    """
    match mechanism:
        case BPM(epsilon=epsilon, L=radius, dimension=dimension):
            name = f"bpm,epsilon={epsilon},L={radius},dimension={dimension}"
        case MultivariateLaplace(epsilon=epsilon, dimension=dimension):
            name = f"laplace,epsilon={epsilon},dimension={dimension}"
    return name if private else name + NOT_PRIVATE


def mechanism_of(text: str) -> BPM | MultivariateLaplace:
    """Read a label.

    Raises
    ------
    DataError
        If it names no mechanism that is known here.
    UsageError
        If the mechanism's numbers are out of range.
    """
    # A stranger may have sent it: nothing long or unusual is taken apart.
    if len(text) <= LONGEST_LABEL and text.isascii():
        kind, *pairs = text.removesuffix(NOT_PRIVATE).split(",")
        numbers = dict(pair.partition("=")[::2] for pair in pairs)
        digits = numbers.pop("dimension", "")
        if digits.isdecimal() and len(digits) < 7:
            match kind, *sorted(numbers):
                # No label says "auto": it holds the reach itself.
                case "bpm", "L", "epsilon" if numbers["L"] != "auto":
                    return BPM(numbers["epsilon"], numbers["L"], int(digits))
                case "laplace", "epsilon":
                    return MultivariateLaplace(numbers["epsilon"], int(digits))
    raise DataError(
        "a report's mechanism",
        "its label names none that is known here",
        "Collect reports of BPM or MultivariateLaplace",
    )


def read_bounds(bounds: Bounds, dimension: int) -> Floats:
    """Public bounds as an array of shape (d, 2): lower, upper."""
    axes = bounds.values() if isinstance(bounds, Mapping) else bounds
    pairs = [axis.numbers if isinstance(axis, Interval) else axis for axis in axes]
    ends = as_floats(pairs)
    if ends.shape != (dimension, 2):
        raise BoundsRequired(
            f"bounds of {dimension} axes",
            "each axis needs a public lower and upper bound",
            "Give one Interval an axis",
        )
    if not (np.isfinite(ends).all() and (ends[:, 0] < ends[:, 1]).all()):
        raise UsageError(
            f"bounds of {dimension} axes",
            "they are not finite, or lower is not below upper",
            "Give lower before upper",
        )
    return ends


def to_unit(values: Floats, bounds: Floats) -> Floats:
    """Scale values to the unit cube by public bounds; what lies outside is clamped."""
    lower = bounds[:, 0]
    with np.errstate(invalid="ignore"):
        return np.clip((values - lower) / (bounds[:, 1] - lower), 0, 1)


def from_unit(values: Floats, bounds: Floats) -> Floats:
    """Scale points of the unit cube back to public bounds."""
    return bounds[:, 0] + values * (bounds[:, 1] - bounds[:, 0])


class Client:
    """One person's device. It keeps no value: only its report.

    Parameters
    ----------
    mechanism : BPM or MultivariateLaplace
    bounds : mapping of Interval, or sequence of (lower, upper)
        Public bounds of each axis; with unequal ranges, distance is measured in ranges.
    memory : path or None
        Where the report is kept between runs: a file that only its owner can read. None: as long as
        this object lives.

    >>> client = Client(BPM(epsilon=4, L="auto", dimension=1), [(0, 120)])
    >>> client.report([37]) == client.report([38])
    True
    """

    def __init__(
        self,
        mechanism: BPM | MultivariateLaplace,
        bounds: Bounds,
        memory: str | os.PathLike[str] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self._bounds = read_bounds(bounds, mechanism.dimension)
        self._memory = None if memory is None else Path(memory)
        self._report: Report | None = None

    def __repr__(self) -> str:
        return f"Client({label(self.mechanism)})"

    def report(self, value: np.typing.ArrayLike) -> Report:
        """Report the value, once: what was reported before is returned, whatever the value is now.

        Raises
        ------
        UsageError
            The value has the wrong shape or is missing, or the memory holds a report to another
            mechanism.
        DataError
            The memory cannot be read or written.
        """
        report = self._report or self._remembered()
        if report is None:
            point = to_unit(_single(value, self.mechanism.dimension), self._bounds)
            report = self._kept(draw(self.mechanism, point))
        collection = label(self.mechanism, current().private)
        # A remembered report may be of another collection, whose server would misread it.
        if report.to != collection:
            raise UsageError(
                f"a report to {collection}",
                f"this device has reported to {report.to}, "
                "and a second report would cost its person epsilon again",
                "Keep to the mechanism that was reported to",
            )
        self._report = report
        return report

    def _remembered(self) -> Report | None:
        # A link to nowhere exists as a link: it holds no report, and none can be put there.
        if self._memory is None or not os.path.lexists(self._memory):
            return None
        try:
            return msgspec.json.decode(self._memory.read_bytes(), type=Report)
        except (OSError, msgspec.MsgspecError, ValueError):
            pass
        # Outside the handler, so that the new error does not carry the old one.
        raise DataError(
            f"the memory {self._memory}",
            "it does not hold a report",
            "Name the file that this device wrote",
        )

    def _kept(self, report: Report) -> Report:
        """Write the report where no other stands yet, and return the one that stands there."""
        if self._memory is None:
            return report
        try:
            _write_once(report, self._memory)
        except OSError as error:
            reason = error.strerror or "the file cannot be written"
        else:
            # Another process may have been first: the report that stands on disk is the only one.
            remembered = self._remembered()
            reason = "it was removed while the report was written"
            if remembered is not None:
                return remembered
        raise DataError(f"the memory {self._memory}", reason, "Choose a path that can be written")


def _write_once(report: Report, memory: Path) -> None:
    """Put a report where no file stands, on disk before this returns; leave a file that stands
    there.
    """
    # A name of its own, so that two processes never write to the same file.
    fresh = memory.with_name(f"{memory.name}.{report.id}")
    # Only its owner can read it.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(report) + b"\n")
        file.flush()
        # On disk before it gets its name: otherwise a crash could leave a memory that holds
        # nothing.
        os.fsync(file.fileno())
    try:
        # Unlike a rename, a link fails where another process was first.
        os.link(fresh, memory)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def _single(value: np.typing.ArrayLike, dimension: int) -> Floats:
    point = as_floats(value)
    if point.shape != (dimension,) or np.isnan(point).any():
        raise UsageError(
            f"a value of {dimension} numbers",
            "it has another shape, or one is missing",
            f"Give {dimension} numbers",
        )
    return point


def draw(mechanism: BPM | MultivariateLaplace, point: Floats, bits: Bits | None = None) -> Report:
    """Draw a report for one point of the unit cube."""
    return reports(mechanism, point[None], bits)[0]


def reports(
    mechanism: BPM | MultivariateLaplace, points: Floats, bits: Bits | None = None
) -> list[Report]:
    """Draw a report for each point of the unit cube."""
    source = bits or current()
    cells = mechanism.draw_cells(points, source).tolist()
    # 128 random bits: two reports hardly ever share an id, and an id says nothing of a person.
    ids = source.words(2 * len(cells)).reshape(-1, 2).tolist()
    to = label(mechanism, source.private)
    return [
        Report(to, f"{first:016x}{second:016x}", tuple(row))
        for row, (first, second) in zip(cells, ids, strict=True)
    ]
