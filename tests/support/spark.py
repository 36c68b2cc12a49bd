"""One Spark session for all tests of a process, classic or over Connect; skipped without Java."""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conformance.kinds import Rows, table
from conformance.reader_contract import _same as same_counts
from sfumato.data.readers import spark as spark_session
from sfumato.domain.cube import Cube

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}

QUICK = {
    # A short test ends before Java's second compiler pays, and before plans are adapted.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
}
"""What shortens a test of few rows; the long tests run as Spark is."""


def require() -> None:
    """Skip a test where Spark cannot run, and say why."""
    stands = spark_session.obstacle()
    if stands is not None:
        pytest.skip(f"Spark does not run here: {stands[0]}")


def installed_in() -> Path:
    """The folder of Spark and its package for Python."""
    import pyspark

    return Path(pyspark.__file__).parent


@cache
def session(*, connect: bool = False, master: str = "local[2]", **more: str) -> Any:
    """The session of this process."""
    require()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        builder = builder.remote(master) if connect else builder.master(master)
        for name, value in {**SETTINGS, **more}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def frame(spark: Any, rows: Rows, partitions: int = 2) -> Any:
    """The rows as a DataFrame in some partitions."""
    return of_table(spark, table(rows), partitions)


def of_table(spark: Any, rows: pa.Table, partitions: int = 2) -> Any:
    """A table as a DataFrame; times without a zone are such times in Spark as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = spark.createDataFrame(rows)
    local = [
        field.name
        for field in rows.schema
        if pa.types.is_timestamp(field.type) and not field.type.tz
    ]
    for name in local:
        made = made.withColumn(name, made[name].cast("timestamp_ntz"))
    return made.repartition(partitions)


def same(one: Cube, other: Cube) -> None:
    """Two cubes are the same, to the last bit."""
    same_counts(one, other)
    assert (one.sums is None) == (other.sums is None)
    if one.sums is not None and other.sums is not None:
        assert one.sums.tolist() == other.sums.tolist()
