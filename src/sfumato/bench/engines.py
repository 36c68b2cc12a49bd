"""Engines that count by themselves, beside the same query as one would write it by hand.

Both run on the same connection of DuckDB, in turns. By hand: a ``GROUP BY`` of the same cells; and,
where each person keeps four rows, windows that number equal rows and keep those of least hash.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sfumato.answers.counts import Needs
from sfumato.bench.measuring import Chart, Row, seconds
from sfumato.data import count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.lattice import LabelAxis, Lattice

if TYPE_CHECKING:
    import duckdb

CHART = Chart("cpu s", ("who", "what"), others=("by hand",))
CELLS = 64
WARDS = ("a", "b", "c")
ROWS_PER_PERSON = 4
DOMAIN = Domain(age=Interval(0, 120), ward=Categories(WARDS))

_TABLE = """
    CREATE TABLE visits AS SELECT hash(range) % 1000003 / 1000003.0 * 120e0 AS age,
        chr(97 + (hash(range + 5) % 3)::INTEGER) AS ward,
        (hash(range * 7 + 1) % {persons})::BIGINT AS patient FROM range({rows})
"""
_AGE = f"CAST(floor(age * {CELLS} / 120) AS BIGINT)"
_PERSONS = f"""
    SELECT cell, count(*) FROM (
        SELECT cell, row_number() OVER (PARTITION BY patient ORDER BY priority) AS place FROM (
            SELECT patient, cell, md5_number(concat('secret', hash(patient, age, copy))) AS priority
            FROM (
                SELECT patient, age, {_AGE} AS cell,
                    row_number() OVER (PARTITION BY patient, age) AS copy FROM visits
            )
        )
    ) WHERE place <= {ROWS_PER_PERSON} GROUP BY cell
"""


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^7 rows of 2 * 10^6 persons, or a tenth of them."""
    import duckdb

    n_rows = 10**6 if quick else 10**7
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(_TABLE.format(rows=n_rows, persons=n_rows // 5))
    relation = connection.table("visits")
    age = grid_axis("age", Interval(0, 120), CELLS)
    ward = LabelAxis("ward", WARDS)
    ages, wards, both = (Lattice(axes) for axes in ((age,), (ward,), (age, ward)))
    by_hand = {
        "one axis of numbers": (
            ages,
            None,
            f"SELECT {_AGE} AS cell, count(*) FROM visits GROUP BY cell",
        ),
        "one axis of labels": (wards, None, "SELECT ward, count(*) FROM visits GROUP BY ward"),
        "two axes": (
            both,
            None,
            f"SELECT {_AGE} AS cell, ward, count(*) FROM visits GROUP BY cell, ward",
        ),
        "persons bounded": (ages, "patient", _PERSONS),
    }
    found: list[Row] = []
    for what, (lattice, person, query) in by_hand.items():
        src = source(relation, DOMAIN, person, ROWS_PER_PERSON if person else None)
        needs = [Needs(lattice, lattice.size)]
        runs = 1 if person else 5
        tasks: dict[str, Callable[[], object]] = {
            "sfumato": partial(count, src, needs),
            "by hand": partial(_fetched, connection, query),
        }
        found += _in_turns(what, n_rows, tasks, runs)
    return found


def _fetched(connection: duckdb.DuckDBPyConnection, query: str) -> object:
    return connection.sql(query).fetchall()


def _in_turns(
    what: str, n_rows: int, tasks: dict[str, Callable[[], object]], runs: int
) -> list[Row]:
    times: dict[str, list[tuple[float, float]]] = {who: [] for who in tasks}
    for _ in range(runs):
        for who, task in tasks.items():
            times[who].append(seconds(task))
    return [
        {
            "who": who,
            "what": what,
            "rows": n_rows,
            "wall s": statistics.median(wall for wall, _ in measured),
            "cpu s": statistics.median(process for _, process in measured),
        }
        for who, measured in times.items()
    ]
