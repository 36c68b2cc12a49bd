"""The unit of privacy: what one person can change, and how far that moves an answer."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import msgspec

from sfumato.errors import UsageError, printable, shown

Neighbours = Literal["add-remove", "replace"]
MOST_ROWS = 10**15  # of one person: more than any table has


def squared_factor(neighbours: str, signed: bool = False) -> int:
    """By how much one person's change may exceed all of the person's rows in one place, in squared length.

    Rows that come or go do not exceed it. Under replace two vectors are subtracted: of values of one
    sign, their inner product is not negative, and the squares add up; of both signs, the lengths do.

    Raises
    ------
    UsageError
        If the relation is unknown.
    """
    match neighbours:
        case "add-remove":
            return 1
        case "replace":
            return 4 if signed else 2
        case _:
            asked = f"neighbours = {shown(neighbours)}"
            raise UsageError(
                asked, "the unit relation is unknown", 'Choose "add-remove" or "replace"'
            )


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one person can change: at most ``rows_per_person`` rows, added or removed, or replaced by at most as many others.

    Under ``"replace"`` the number of persons is public; the number of rows is not, unless every person has exactly one
    row and none is dropped.

    Parameters
    ----------
    rows_per_person : int
        At least 1.
    neighbours : {"add-remove", "replace"}
    person : str or None
        The column that names the person; rows beyond ``rows_per_person`` are dropped at random. None: each row is one
        person, or, with ``rows_per_person`` above 1, the holder states that nobody has more.

    Raises
    ------
    UsageError
        If ``rows_per_person`` is not from 1 to 10^15, or ``neighbours`` is unknown.

    >>> Unit(rows_per_person=3, neighbours="replace").counts_l1
    6
    """

    rows_per_person: int = 1
    neighbours: Neighbours = "add-remove"
    person: str | None = None

    def __post_init__(self) -> None:
        rows: object = self.rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
            obstacle = "one person has at least one row, and at most 10^15"
            raise UsageError(
                f"rows_per_person = {shown(rows)}", obstacle, "Give a whole number such as 4"
            )
        squared_factor(self.neighbours)  # refuses an unknown relation

    @property
    def counts_l1(self) -> int:
        """How far one person moves a vector of counts of disjoint cells, in L1: r, or 2r under replace."""
        return self.sums_l1(1)

    @property
    def counts_l2_squared(self) -> int:
        """The same in L2, squared: all r rows in one cell, r^2; under replace they leave one cell and enter another, 2r^2."""
        return self.sums_l2_squared(1)

    @property
    def largest_cell(self) -> int:
        """How far one person moves any one count."""
        return self.rows_per_person

    @property
    def protects(self) -> str:
        """Whose presence is hidden, and how: what the charges of one account must have in common to add up.

        Limits on rows may differ where a column names the person, since they are enforced. Without one they are the
        custodian's word about the same table, and two different words cannot both be true.
        """
        if self.person is not None:
            named = self.person.isidentifier() and self.person != "row"
            # Two units must not read the same, whatever a column is called.
            who = (
                f"one {self.person}"
                if named
                else f"one person, named by the column {self.person!r}"
            )
        elif self.rows_per_person == 1:
            who = "one row"
        else:
            who = f"one person of at most {self.rows_per_person} rows"
        return f"{who}, {'replaced by another' if self.neighbours == 'replace' else 'added or removed'}"

    def sums_l1(self, row: int) -> int:
        """How far one person moves sums over disjoint cells, in L1; ``row`` is the largest norm of a row."""
        return self.rows_per_person * row * (2 if self.neighbours == "replace" else 1)

    def sums_l2_squared(self, row: int, signed: bool = False) -> int:
        """The same in L2, squared; ``signed`` where values may differ in sign or direction."""
        return (self.rows_per_person * row) ** 2 * squared_factor(self.neighbours, signed)

    def sum_sensitivity(self, lower: Fraction, upper: Fraction) -> Fraction:
        """How far one person moves a single sum of values clamped to [lower, upper]."""
        if self.neighbours == "replace":
            return self.rows_per_person * (max(Fraction(0), upper) - min(Fraction(0), lower))
        return self.rows_per_person * max(abs(lower), abs(upper))

    @property
    def counted(self) -> str:
        """The rows that an answer is about, in words: a statement of accuracy is true of these, and names them.

        >>> Unit(12, person="rider").counted
        'the rows counted (at most 12 a rider)'
        """
        limit = (
            ""
            if self.person is None
            else f" (at most {self.rows_per_person:,} a {printable(self.person)})"
        )
        return f"the rows counted{limit}"

    def __str__(self) -> str:
        rows = "one row" if self.rows_per_person == 1 else f"{self.rows_per_person:,} rows"
        who = f"any one {printable(self.person or 'person')} contributing at most {rows}"
        return (
            f"{who}, replaced by another"
            if self.neighbours == "replace"
            else f"{who}, added or removed"
        )
