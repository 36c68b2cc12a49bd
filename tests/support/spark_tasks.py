"""The tasks of Spark, run in this process: what they count is added up here instead of by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.data.reader import Columns
from sfumato.data.readers.spark import SparkTable, unpacked
from sfumato.data.readers.spark_tasks import (
    BUCKET,
    CountedColumns,
    ScanTask,
    SelectionTask,
    cubes_of,
)
from sfumato.data.scan import Scan
from sfumato.domain.cube import Cube
from sfumato.mechanisms.thresholds import KEY, ROWS_OF_KEY, KeyRule
from sfumato.privacy.unit import Unit


class TableInTasks(SparkTable):
    """A table that is counted in several tasks.

    Parameters
    ----------
    table : pyarrow.Table
    tasks : int
    batch_rows : int
        How many groups of keys a rule is applied to at a time.

    Attributes
    ----------
    jobs : int
        How many there were.
    """

    name = "table in tasks"

    def __init__(self, table: pa.Table, tasks: int = 3, batch_rows: int = 64) -> None:
        self.table = table
        self.tasks = tasks
        self.batch_rows = batch_rows
        self.jobs = 0

    def names(self) -> list[str]:
        return list(self.table.schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        return pa.schema([self.table.schema.field(name) for name in columns])

    def require(self, needs: Any, unit: Unit) -> None:
        pass

    def count(self, scan: Scan) -> list[Cube]:
        return cubes_of(scan, self._groups(scan), self._key_types(scan))

    def select(self, scan: Scan, rule: KeyRule) -> Iterator[pa.RecordBatch]:
        (need,) = scan.needs
        (key_type,) = self._key_types(scan).values()
        groups = self._groups(scan)
        groups = groups.filter(pa.array(groups["need"].to_numpy() >= 0))
        batches = _with_rows_of_keys(need, groups).to_batches(max_chunksize=self.batch_rows)
        shown = list(SelectionTask(rule, key_type)(batches))
        return unpacked(need.lattice, pa.Table.from_batches(shown), key_type)

    def _groups(self, scan: Scan) -> pa.Table:
        self.jobs += 1
        columns = CountedColumns.of(scan.needs)
        task = ScanTask(scan, tuple(scan.columns))
        parts = [part for rows in self._parts(scan) for part in task(iter(rows.to_batches()))]
        table = pa.Table.from_batches(parts)
        sums = [(name, "sum") for name in columns.numbers]
        groups = table.group_by(list(columns.cells)).aggregate(sums)
        return groups.rename_columns([*columns.cells, *columns.numbers])

    def _parts(self, scan: Scan) -> Iterator[pa.Table]:
        """The rows of each task: all rows of a person are in one, by the text of the id."""
        rows = self.table.select(list(scan.columns))
        if scan.unit.person is None:
            step = max(1, -(-len(rows) // self.tasks))
            yield from (rows.slice(start, step) for start in range(0, max(1, len(rows)), step))
            return
        ids = rows[scan.unit.person].to_pylist()
        buckets = np.array([sum(str(one).encode()) % 97 for one in ids], np.int32)
        rows = rows.append_column(BUCKET, pa.array(buckets))
        for task in range(self.tasks):
            yield rows.filter(pa.array(buckets % self.tasks == task))


def _with_rows_of_keys(need: Needs, groups: pa.Table) -> pa.Table:
    keys = groups["k0"]
    of_key = groups.group_by("k0").aggregate([("n", "sum")])
    totals = dict(zip(of_key["k0"].to_pylist(), of_key["n_sum"].to_pylist(), strict=True))
    columns = {KEY: keys, ROWS_OF_KEY: pa.array([totals[key] for key in keys.to_pylist()])}
    if len(need.lattice.axes) > 1:
        packed = [name for name in groups.schema.names if name.startswith("g")]
        columns |= {"rows": groups["n"], **{name: groups[name] for name in packed}}
    return pa.table(columns).combine_chunks()
