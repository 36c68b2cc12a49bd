"""Which options of a histogram there are, and which of them exclude each other."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from sfumato.errors import UsageError, is_one_of, nearest, shown
from sfumato.histogram import workloads
from sfumato.mechanisms.thresholds import RULES
from sfumato.privacy.unit import Unit

CountedThings: TypeAlias = Literal["rows", "persons"]
"""What a histogram counts in its cells."""

Workload: TypeAlias = Literal["ranges"]
"""What the noise is made for, if not for single cells."""

NoiseKind: TypeAlias = Literal["bounded"]
"""What the noise is like, if it is not the one that the cost takes by itself."""


def check_bins(*, records: int | None, rows: int | None, is_divided: bool) -> None:
    """Refuse bins that are given in two ways.

    Parameters
    ----------
    records, rows : int or None
    is_divided : bool
        Whether bins or a width are given.
    """
    if records is not None and is_divided:
        obstacle = "each of them says where the bins lie"
        raise UsageError("records with bins or width", obstacle, "Leave the others out")
    if rows is not None and records is None:
        obstacle = "a stated number of rows is used only with records"
        raise UsageError(f"rows = {rows}", obstacle, "Give records, or leave rows out")


def check_count(count: object, records: int | None) -> None:
    """Refuse what cannot be counted, and persons in bins that numbers of rows decide."""
    if not is_one_of(count, get_args(CountedThings)):
        asked = f"count = {shown(count)}"
        raise UsageError(asked, "rows or persons are counted", 'Write count="persons"')
    if count == "persons" and records is not None:
        obstacle = "bins of equal size are chosen by numbers of rows"
        raise UsageError("records with count = 'persons'", obstacle, "Give bins or a width")


def check_noise(noise: object, workload: object, records: int | None) -> None:
    """Refuse what is no workload and no noise, and those that do not go together."""
    workloads.check_workload(workload, records)
    if noise not in (None, "bounded"):
        obstacle = "noise is bounded, or it is the one that the cost takes by itself"
        raise UsageError(f"noise = {shown(noise)}", obstacle, 'Write noise="bounded"')
    if noise is None:
        return
    if workload is not None:
        obstacle = "counts then follow from several noisy sums, and their errors add up"
        raise UsageError(
            "noise = 'bounded' with a workload",
            obstacle,
            "Leave out one of them, noise or workload",
        )
    if records is not None:
        obstacle = "the edges of its bins are chosen with noise that has no bound"
        raise UsageError("records with noise = 'bounded'", obstacle, "Give bins or a width")


def check_selection(selection: object) -> None:
    """Refuse a rule for keys that does not exist."""
    if not is_one_of(selection, RULES):
        asked = f"selection = {shown(selection)}"
        obstacle = f"there is no rule of that name; {nearest(selection, RULES)}"
        raise UsageError(asked, obstacle, "Name one of them")


def unit_of_persons(title: str, unit: Unit) -> Unit:
    """The unit of counts of persons.

    Raises
    ------
    UsageError
        If no column names the persons.
    """
    if unit.person is None:
        obstacle = "no column names the persons"
        raise UsageError(title, obstacle, 'Give the source person="rider"')
    return unit.counting_persons(unit.cells_of_person)
