"""Planes of longitude and latitude: how they are recognised, their areas, coastlines and scales.

Everything here follows from the names and the public bounds of axes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array

LONGITUDE = frozenset({"lon", "lng", "long", "longitude"})
LATITUDE = frozenset({"lat", "latitude"})
# Words that say how a coordinate is measured, and not which one it is.
OF_DEGREES = frozenset(
    {"deg", "degree", "degrees", "dd", "decimal", "wgs", "wgs84", "north", "east"}
)
# Units given by ``measured_in``, as the conventions for climate data (CF) spell them.
EAST = re.compile(r"\((?:decimal )?deg(?:rees?)?[ _]e(?:ast)?\)$", re.IGNORECASE)
NORTH = re.compile(r"\((?:decimal )?deg(?:rees?)?[ _]n(?:orth)?\)$", re.IGNORECASE)
LENGTHS = frozenset({"m", "metre", "metres", "meter", "meters", "km", "kilometres", "kilometers"})
UNIT = re.compile(r"\(([^()]+)\)$")

KM_PER_DEGREE = 111.195
WORLD = 360.0
SEAM_EAST = 179.985
SEAM_SOUTH = -89.5
MARGIN = 0.02  # by which coastlines are drawn beyond a map's edge, so that no cut is seen
PER_DEGREE = 100.0
FINEST = 0.02  # degrees: the tolerance of the points of rank 0; each further rank has twice as much

# Left, right, bottom and top.
Extent: TypeAlias = "tuple[float, float, float, float]"


# --- which axes they are --------------------------------------------------------------------------


def pair_of(names: tuple[str, ...]) -> tuple[int, int]:
    """Which axis runs right and which runs up.

    Longitude and latitude where there are any, else the first two.

    >>> pair_of(("age", "pickup_latitude", "pickup_longitude"))
    (2, 1)
    """
    for x, longitude in enumerate(names):
        for y, latitude in enumerate(names):
            if are_coordinates(longitude, latitude):
                return x, y
    return 0, 1


def are_coordinates(x: str, y: str) -> bool:
    """Whether these are the names of a longitude and of the latitude that goes with it.

    A name says so by a word, such as "lon" or "latitude", or by its unit of measure, "degrees east"
    and "degrees north". Where a name has further words, both names have them: a longitude of
    departure does not go with a latitude of arrival.

    >>> are_coordinates("start_lng", "start_lat"), are_coordinates("start_lng", "end_lat")
    (True, False)
    >>> are_coordinates("x (degrees east)", "y (degrees north)")
    True
    """
    if EAST.search(x) and NORTH.search(y):
        return True
    right = _words(x)
    up = _words(y)
    is_named = len(right & LONGITUDE) == len(up & LATITUDE) == 1
    return is_named and right - LONGITUDE == up - LATITUDE


def _words(name: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W_]+", spaced.lower())) - OF_DEGREES


def is_on_earth(extent: Extent) -> bool:
    """Whether bounds can be degrees: at most once around, and from pole to pole.

    >>> is_on_earth((-180, 180, -90, 90)), is_on_earth((150, 210, -50, 0))
    (True, True)
    >>> is_on_earth((0, 9, 0, 99))
    False
    """
    left, right, bottom, top = extent
    is_around = left >= -WORLD and right <= WORLD and right - left <= WORLD
    return is_around and bottom >= -90 and top <= 90


def length_unit(x: str, y: str) -> str | None:
    """The unit of length that two axes share, by their names for people; None without one.

    >>> length_unit("x (km)", "y (km)")
    'km'
    """
    right, up = (UNIT.search(name) for name in (x, y))
    if right is None or up is None or right[1] != up[1] or right[1].lower() not in LENGTHS:
        return None
    return right[1]


# --- sizes ----------------------------------------------------------------------------------------


def square_kilometres(west: Array, east: Array, south: Array, north: Array) -> Array:
    """Areas of boxes on a sphere."""
    # The area of a belt of a sphere goes with the difference of the sines of its latitudes.
    tall = np.degrees(np.sin(np.radians(north)) - np.sin(np.radians(south)))
    return np.asarray(KM_PER_DEGREE**2 * (east - west) * tall)


@dataclass(frozen=True)
class ScaleBar:
    """A length on a map: ``span`` in units of its axis, and what it says."""

    span: float
    text: str


def scale_bar(extent: Extent, unit: str | None = None) -> ScaleBar:
    """A round length of about a fifth of a map's width.

    Parameters
    ----------
    extent : four floats
    unit : str or None
        The axes' own unit of length; None: the axes are degrees, and the bar counts kilometres
        along the map's middle.

    >>> scale_bar((0, 10, -5, 5)).text
    '200 km'
    """
    latitude = (extent[2] + extent[3]) / 2
    per_unit = 1.0
    if unit is None:
        per_unit = KM_PER_DEGREE * math.cos(math.radians(latitude))
    width = (extent[1] - extent[0]) * per_unit
    length = round_length(width / 5)
    text = f"{length:,.0f}" if length >= 1 else f"{length:g}"
    where = ""
    if unit is None and extent[3] - extent[2] > 15:
        north = "N" if latitude > 0 else "S"
        where = f" at {abs(latitude):.0f}° {north}" if round(latitude) else " at the equator"
    return ScaleBar(length / per_unit, f"{text} {unit or 'km'}{where}")


def round_length(most: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is not above ``most``.

    >>> round_length(0.7), round_length(3.4), round_length(80)
    (0.5, 2.0, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(most))
    # A logarithm that is rounded up gives a power just above ``most``: one length must be left.
    return max(step * power for step in (1, 2, 5) if step * power <= most * (1 + 1e-9))


# --- coastlines -----------------------------------------------------------------------------------


def coastlines(extent: Extent, tolerance: float) -> list[Array]:
    """The coastlines of a part of the earth: float64 ndarrays of shape (points, 2), in degrees.

    Parameters
    ----------
    extent : four floats
        Degrees. East of 180 or west of -180, the lines go on around the earth.
    tolerance : float
        By how many degrees a line may be off; details below it are left out.
    """
    left, right, bottom, top = extent
    pad = MARGIN * max(right - left, top - bottom)
    frame = (left - pad, right + pad, bottom - pad, top + pad)
    rank = math.floor(math.log2(max(tolerance / FINEST, 1)))
    lines = []
    for ring in _rings(rank):
        # The bounds may run from 0 to 360, or from -360 to 0: the outlines from -180 to 180.
        for turn in (-WORLD, 0.0, WORLD):
            moved = ring + np.array((turn, 0.0))
            west, south = moved.min(axis=0)
            east, north = moved.max(axis=0)
            is_beside = west >= frame[1] or east <= frame[0]
            if not (is_beside or south >= frame[3] or north <= frame[2]):
                lines += _lines(moved, ring, frame)
    return lines


@cache
def _outlines() -> tuple[Array, Array, Array]:
    """All points in degrees, their ranks, and the ring of each."""
    stored = Path(str(files("sfumato.charts").joinpath("coastlines.npz")))
    with np.load(stored, allow_pickle=False) as parts:
        size = parts["size"]
        ring = np.repeat(np.arange(len(size)), size)
        starts = np.cumsum(size) - size
        columns = []
        for name in ("x", "y"):
            total = np.cumsum(parts[name].astype(np.int64))
            # Steps begin anew with each ring, from 0.
            before = total[starts] - parts[name][starts]
            columns.append((total - before[ring]) / PER_DEGREE)
        return np.stack(columns, axis=1), parts["rank"], ring


@cache
def _rings(rank: int) -> list[Array]:
    """Rings of the points of this rank and above; those that shrink to a line are left out."""
    points, ranks, ring = _outlines()
    kept = ranks >= min(rank, int(ranks.max()) - 1)
    cuts = np.flatnonzero(np.diff(ring[kept])) + 1
    return [part for part in np.split(points[kept], cuts) if len(part) >= 4]


def _lines(moved: Array, ring: Array, frame: Extent) -> list[Array]:
    """Return the pieces of an outline that come near a frame.

    The seams where the earth was cut open, at 180 degrees and at the south pole, are no coast.
    """
    start = moved[:-1]
    end = moved[1:]
    left, right, bottom, top = frame
    outside = np.zeros(len(start), bool)
    for column, bound, sign in ((0, left, 1), (0, right, -1), (1, bottom, 1), (1, top, -1)):
        start_beyond, end_beyond = (sign * (at[:, column] - bound) < 0 for at in (start, end))
        outside |= start_beyond & end_beyond
    at_end = np.abs(ring[:, 0]) > SEAM_EAST
    at_pole = ring[:, 1] < SEAM_SOUTH
    seam = (at_end[:-1] & at_end[1:]) | (at_pole[:-1] & at_pole[1:])
    # Some outlines go on at the other end of the earth.
    seam |= np.abs(np.diff(ring[:, 0])) > WORLD / 2
    kept = np.concatenate([[False], ~(outside | seam), [False]])
    turns = np.flatnonzero(kept[1:] != kept[:-1]).reshape(-1, 2)
    return [moved[first : last + 1] for first, last in turns]
