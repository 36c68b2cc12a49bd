"""No setting of a session changes what Spark counts, and a command reads files as a scan does."""

from __future__ import annotations

import datetime as dt
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from conformance.kinds import people, table
from data import random_tables
from sfumato.data import count, source
from sfumato.data.readers import spark as spark_session
from sfumato.data.readers.spark import SparkFiles
from support import spark
from support.spark import same

ROWS = people(200, seed=2)
KEY = bytes(range(32))

SESSIONS: dict[str, dict[str, str]] = {
    "as Spark is": {},
    "without ANSI": {"spark.sql.ansi.enabled": "false"},
    "another time zone": {"spark.sql.session.timeZone": "Pacific/Apia"},
    "names by case": {"spark.sql.caseSensitive": "true"},
    "other literals": {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    },
    "other names": {
        "spark.sql.groupByAliases": "false",
        "spark.sql.groupByOrdinal": "false",
        "spark.sql.orderByOrdinal": "false",
        "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
        "spark.sql.variable.substitute": "false",
        "spark.sql.ansi.relationPrecedence": "true",
    },
    "other plans": {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "America/New_York",
    },
}
"""Settings of sessions on which no result may depend."""


def _legacy(session: Any) -> dict[str, str]:
    """All switches back to how earlier versions were: each is set to what it is not."""
    (jar,) = (spark.installed_in() / "jars").glob("spark-catalyst_*.jar")
    names: set[str] = set()
    with zipfile.ZipFile(jar) as packed:
        for file in packed.namelist():
            if "internal/SQLConf" in file:
                names |= set(re.findall(rb"spark\.sql\.legacy\.[A-Za-z0-9.]*\w", packed.read(file)))
    found = {"spark.sql.legacy.timeParserPolicy": "LEGACY"}
    for name in sorted(each.decode() for each in names):
        # Some are of the whole process, or only old names of others.
        if session.conf.isModifiable(name):
            is_now = session.conf.get(name)
            if is_now in ("true", "false"):
                found[name] = "false" if is_now == "true" else "true"
    return found


def settings(kind: str, folder: str) -> list[str]:
    """The cubes under each of ``SESSIONS`` are those of a scan, and the same rows are kept."""
    session = spark.session(connect=kind == "connect")
    domain = sf.Domain({**random_tables.DOMAIN, "hour": sf.Hour("utc", timezone="Asia/Kolkata")})
    rows = table(ROWS).append_column("utc", table(ROWS)["at"].cast(pa.timestamp("us", "UTC")))
    # A file is read as it is; what ``createDataFrame`` makes of local times depends on settings.
    pq.write_table(rows, f"{folder}/rows.parquet")
    data = session.read.parquet(f"{folder}/rows.parquet")
    bins = {"x": 7, "price": 10, "flag": 2, "day": 62, "at": 48}
    asked = [
        sf.Histogram(axes, bins={name: bins[name] for name in axes if name in bins})
        .needs(domain)
        .lattice
        for axes in (["price", "at", "day", "code"], ["x", "word", "hour", "flag"])
    ]
    scan = count(source(rows, domain), asked)
    kept = []
    legacy = _legacy(session)
    assert len(legacy) > 50
    sessions = {**SESSIONS, "as it once was": legacy}
    for changed in sessions.values():
        for name, value in changed.items():
            session.conf.set(name, value)
        for one, other in zip(count(source(data, domain), asked), scan, strict=True):
            same(one, other)
        (bounded,) = count(source(data, domain, "who", 2), asked[-1:], key=KEY)
        kept.append(bounded.counts.tolist())
        for name in changed:
            session.conf.unset(name)
    assert all(each == kept[0] for each in kept)
    assert 0 < sum(kept[0]) < int(scan[-1].counts.sum())
    return list(sessions)


def reading(folder: str) -> dict[str, Any]:
    """A command's own session reads files as a scan does, whatever Spark's defaults are here.

    Old dates and times, of which earlier versions of Spark wrote others; times without a zone.
    """
    for file, years in (("new", (1001, 1500, 1582, 1800, 1899, 2020)), ("int96", (1800, 1899))):
        times = [dt.datetime(year, 3, 1, 5) for year in years]
        instants = pa.array(times, pa.timestamp("us", "UTC"))
        days = pa.array([time.date() for time in times])
        rows = pa.table({"at": pa.array(times, pa.timestamp("us")), "utc": instants, "day": days})
        as_int96 = file == "int96"
        pq.write_table(rows, f"{folder}/{file}.parquet", use_deprecated_int96_timestamps=as_int96)
    defaults = Path(folder) / "conf"
    defaults.mkdir()
    lines = [f"{name} {value}" for name, value in {**spark.SETTINGS, **READING}.items()]
    (defaults / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(defaults)
    domain = sf.Domain(
        local=sf.Hour("at"),
        hour=sf.Hour("utc"),
        day=sf.Interval(dt.date(1000, 1, 1), dt.date(2030, 1, 1)),
    )
    found = {}
    with spark_session.opened_session("local[2]", None) as session:
        for file in ("new", "int96"):
            lattices = [
                sf.Histogram(name, bins={"day": 1030 * 366} if name == "day" else {})
                .needs(domain)
                .lattice
                for name in domain
            ]
            path = f"{folder}/{file}.parquet"
            own = count(source(SparkFiles(path, session), domain), lattices)
            scan = count(source(path, domain), lattices)
            for one, other in zip(own, scan, strict=True):
                same(one, other)
            found[file] = int(sum(cube.counts.sum() for cube in own))
    return found


READING = {
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96TimestampConversion": "true",
}
"""Defaults of a machine by which Spark would read other dates and times from files."""
