"""What is asked of a family of tables, brought into one form, and refused where it cannot be.

At the end stands why families of tables are private, as their docstrings and receipts print it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from sfumato.basics import positive
from sfumato.domain import Domain, Lattice, named_axes
from sfumato.errors import UsageError, printable, shown
from sfumato.privacy import Limits, Proof, Unit
from sfumato.questions.histogram.bins import Bins, Width, binned_lattice
from sfumato.questions.tables.levels import Chains

# --- what is asked --------------------------------------------------------------------------------

MOST_TABLES = 1024
# Of a family: what is measured of each is computed beforehand.
MOST_MARGINS = 4096

# Of weights and accuracies, and one over it is the least.
LARGEST = 10**12

# The column that names the table, where the counts of several stand below one another.
TABLE = "table"


def named(table: Sequence[str], total: str = "total") -> str:
    """Name a table by its axes; ``total`` is what the one without axes is called.

    >>> named(["carrier", "hour"]), named([])
    ('carrier x hour', 'total')
    """
    return " x ".join(map(printable, table)) if table else total


def checked_tables(tables: object) -> tuple[tuple[str, ...], ...]:
    """Return the axes of each table.

    Raises
    ------
    UsageError
        If they are no list of tables, a table names an axis twice, two have the same axes, or none
        has an axis.
    """
    if isinstance(tables, str) or not isinstance(tables, Sequence) or not tables:
        raise UsageError(
            f"tables = {shown(tables)}" if isinstance(tables, str) else "tables",
            "it must be a list of tables, each of them an axis or a list of axes",
            'Write sf.Tables([["carrier", "hour"], "origin"])',
        )
    axes_of_tables = tuple(map(named_axes, tables))
    if len(axes_of_tables) > MOST_TABLES:
        raise UsageError(
            f"{len(axes_of_tables):,} tables",
            f"the limit is {MOST_TABLES:,} tables",
            "Ask for fewer tables",
        )
    seen = set()
    for table in axes_of_tables:
        axes = frozenset(table)
        if len(axes) < len(table):
            raise UsageError(
                f"the table {named(table)}", "it names an axis twice", "Name each axis once"
            )
        if axes in seen:
            raise UsageError(
                f"the table {named(table)}", "it is asked for twice", "Leave one of the two out"
            )
        seen.add(axes)
    if not any(axes_of_tables):
        # Without a column that is read, rows are not even counted.
        raise UsageError(
            "a total alone",
            "it has no axis, so nothing says which rows are counted",
            "Add a table with an axis",
        )
    _require_few_margins(axes_of_tables)
    return axes_of_tables


def _require_few_margins(tables: Sequence[Sequence[str]]) -> None:
    """Refuse families with too many margins; those of one table alone are counted first."""
    margins: set[frozenset[str]] = set()
    numbers = [2 ** min(len(table), 30) for table in tables]
    if sum(numbers) <= 16 * MOST_MARGINS and max(numbers) <= MOST_MARGINS:
        for table in tables:
            for n_axes in range(len(table) + 1):
                margins.update(map(frozenset, combinations(table, n_axes)))
        if len(margins) <= MOST_MARGINS:
            return
    raise UsageError(
        "a family of tables",
        f"its tables have more than {MOST_MARGINS:,} sums over some of their axes",
        "Ask for tables of fewer axes",
    )


def require_connected(tables: Sequence[Sequence[str]], chains: Chains) -> None:
    """Refuse tables that share no axis with the others. Levels of one tree count as one axis.

    Raises
    ------
    UsageError
        If the tables fall into groups that have no axis in common. The total belongs to all.
    """
    pairs = [(table, set(chains.order(table))) for table in tables if table]
    if not pairs:
        return
    (_, first), *others = sorted(pairs, key=lambda pair: len(pair[1]), reverse=True)
    while joined := [axes for _, axes in others if axes & first]:
        # Tables that are reached by way of others are connected, too.
        first = first.union(*joined)
        others = [(table, axes) for table, axes in others if axes not in joined]
    if others:
        raise UsageError(
            f"the tables {', '.join(map(named, tables))}",
            f"{named(others[0][0])} has no axis in common with the others",
            "Ask for it by itself, or add a table with axes of both",
        )


def checked_numbers(
    tables: int, weights: object, accuracy: object
) -> tuple[tuple[float, ...] | None, float | tuple[float, ...] | None]:
    """Return weights and accuracies as floats.

    Raises
    ------
    UsageError
        If both are given, there is not one for each table, or one is not above 0.
    """
    if weights is not None and accuracy is not None:
        raise UsageError(
            "weights with accuracy",
            "each of them says which tables are to be accurate",
            "Leave one of them out",
        )
    if isinstance(accuracy, int | float | str) and not isinstance(accuracy, bool):
        return None, _number(accuracy, "accuracy")
    return _numbers(tables, weights, "weights"), _numbers(tables, accuracy, "accuracy")


def _numbers(tables: int, given: object, name: str) -> tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(
            f"{name} = {shown(given)}",
            "it must be a list with a number for each table",
            "Give such a list",
        )
    if len(given) != tables:
        raise UsageError(
            f"{name} of {len(given)} numbers",
            f"there are {tables} tables",
            "Give a number for each table, in their order",
        )
    return tuple(_number(entry, name) for entry in given)


def _number(given: object, name: str) -> float:
    if not isinstance(given, str | int | float) or isinstance(given, bool):
        raise UsageError(f"{name} of {shown(given)}", "it is not a number", "Give a number above 0")
    number = float(positive(given, name))
    if not 1 / LARGEST <= number <= LARGEST:
        raise UsageError(
            f"{name} of {shown(given)}", "it must lie from 10^-12 to 10^12", "Give such a number"
        )
    return number


def axes_lattice(
    title: str, domain: Domain, tables: Sequence[Sequence[str]], bins: Bins, width: Width
) -> Lattice:
    """Return all axes of a family, in the order of the domain.

    Raises
    ------
    UsageError
        If an axis is unknown, one of keys, or has the name of a column of the answer.
    """
    used = {name for table in tables for name in table}
    if used:
        domain.select(sorted(used))
    names = [name for name in domain if name in used]
    lattice = binned_lattice(domain, names, bins, width)
    for axis in lattice.axes:
        if axis.has_keys:
            raise UsageError(
                f"{title}, over the keys of {axis.name!r}",
                "which keys there are is not known beforehand, so tables cannot add up",
                "Declare it as Categories with a public list, or ask a Histogram over it",
            )
        if axis.name == TABLE:
            raise UsageError(
                f"axis {TABLE!r}",
                "the answer has a column of that name",
                "Rename the column before asking",
            )
    return lattice


# The largest limit on the norm of a person's counts in several tables: beyond it the whole numbers
# by which it is kept (see ``stacked_norm``) would be too coarse.
MOST_NORM = 2**20


def require_flat_limits(title: str, unit: Unit) -> None:
    """Refuse limits by cell, but for one on the norm.

    Raises
    ------
    UsageError
        If the unit has others, or that one is too large.
    """
    if not unit.by_cell:
        return
    given = {} if unit.limits is msgspec.UNSET else unit.limits.given
    if given.keys() != {"norm_per_person"}:
        raise UsageError(
            f"{title} under limits by cell",
            "these hold on the cells of one table, and a family has several",
            "Give the source rows_per_person alone, or with norm_per_person",
        )
    norm = min(given["norm_per_person"], unit.rows_counted)
    if norm > MOST_NORM:
        raise UsageError(
            f"{title} cut to a norm of {norm:,}",
            f"in several tables the largest limit on a norm is {MOST_NORM:,}",
            "Give the source a smaller one, or rows_per_person alone",
        )


def unit_of_tables(unit: Unit) -> Unit:
    """The unit as a family states it: a limit on the norm holds in all of its tables together."""
    if unit.limits is msgspec.UNSET:
        return unit
    return msgspec.structs.replace(unit, limits=Limits(norm_in_tables=unit.limits.norm_per_person))


# --- why they are private -------------------------------------------------------------------------

PROOF = Proof(
    sensitivity="of each table that is measured, L1 = rows_per_person (twice that under replace).",
    because="the cells of a table are disjoint and fixed by the public domain, the noise is exact "
    "on the integers, and the shares of the tables, which public sizes decide, add up to epsilon. "
    "All tables count the same rows. The tables that are shown follow from the noisy ones by least "
    "squares.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Dwork, McSherry, Nissim, Smith 2006, Thm 1; least squares: Xiao, He, Zhang, Kifer, "
    "NeurIPS 2023.",
)

RESIDUALS = Proof(
    sensitivity="of the residual of a table with d cells along each axis, L2 squared = the squared "
    "rows_per_person times the product of 1 - 1/d over the axes; under replace the worst case of "
    "all residuals together, by where the rows were and where they are.",
    because="of a table with exact discrete Gaussian noise only integer differences between cells "
    "are kept: such noise is a discrete Gaussian on the lattice of these differences, but for a "
    "slack that is charged. A sum of squares is convex, so a person moves it most with all rows in "
    "one cell. The rho of all residuals add up. All tables count the same rows, and follow from "
    "the residuals.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Xiao, He, Zhang, Kifer, NeurIPS 2023; Canonne, Kamath, Steinke 2020, Thm 4; the proof "
    "for integers: docs/proofs.md.",
)

IN_NORM = Proof(
    sensitivity="of all residuals together, each in units of its noise, L2 = norm_per_person times "
    "what one row adds; under replace, sqrt 2 to 2 times that, by the public inner products of "
    "rows.",
    because="of each person, rows are counted up to the first with which this norm would exceed "
    "the limit: computed in whole numbers of the person's counts in all tables, rounded against "
    "the rows. Of a table with exact discrete Gaussian noise only integer differences between "
    "cells are kept: such noise is a discrete Gaussian on the lattice of these differences, but "
    "for a slack that is charged. All tables count the same rows, and follow from the residuals.",
    not_covered="the choice of tables, bins, weights and bounds; the time the query takes.",
    source="Xiao, He, Zhang, Kifer, NeurIPS 2023; Canonne, Kamath, Steinke 2020, Thm 4; the proof "
    "for integers and for the norm: docs/proofs.md.",
)
