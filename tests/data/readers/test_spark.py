"""Spark counts as a scan does. What is quick is one test, so that it shares one session."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from conformance import reader_contract
from conformance.kinds import people, table
from data import random_tables
from sfumato.answers.counts import Needs, Summed
from sfumato.data import count, select_in_engine, selects, source
from sfumato.data import packed_counts as cell_counts
from sfumato.data.priorities import Purpose, secret_for
from sfumato.data.readers.spark import SparkTable
from sfumato.data.readers.spark_package import NEEDED, require_package
from sfumato.data.readers.spark_tasks import BUCKETS
from sfumato.data.registry import open_reader
from sfumato.domain.lattice import GridAxis, KeyAxis, Lattice
from sfumato.errors import DataError, UsageError
from sfumato.mechanisms.thresholds import KeyRule
from support import spark, spark_jobs, spark_settings

ROWS = people(300, seed=5)
DOMAIN = random_tables.DOMAIN
CANARY = "hunter2-canary"


def opened(data: Any) -> Any:
    return open_reader(data, tuple(DOMAIN), "who")


def same(data: Any, lattices: list[Lattice], **unit: Any) -> None:
    """Spark and a scan give the same cubes, to the last bit."""
    own = count(source(data, DOMAIN, **unit), lattices)
    scan = count(source(table(ROWS), DOMAIN, **unit), lattices)
    for one, other in zip(own, scan, strict=True):
        reader_contract._same(one, other)


# --- quick clauses ------------------------------------------------------------------------------


def says_names_and_types(session: Any) -> None:
    data = spark.frame(session, ROWS)
    assert isinstance(opened(data), SparkTable)
    reader_contract.says_what_it_has(lambda: opened(data))


def counts_every_kind_of_column(session: Any) -> None:
    """In one lattice of all of them: each of its cells says one of each axis."""
    data = spark.frame(session, ROWS)
    wanted = [("x", "word"), ("n", "flag"), ("day", "code"), ("at", "yes")]
    axes = [axis for each in random_tables.LATTICES if each.names in wanted for axis in each.axes]
    same(data, [Lattice(tuple(axes[:4])), Lattice(tuple(axes[4:]))])


def counts_the_same_rows_where_persons_are_cut(session: Any) -> None:
    """Under each kind of limit, however the rows are partitioned."""
    rows = Lattice((random_tables.grid("x", 64), random_tables.labels("word")))
    needs = [Needs(rows, 1), Needs(Lattice((random_tables.grid("x", 8),)), 1)]
    for partitions, limits in enumerate(reader_contract.LIMITS[2:], 1):
        data = spark.frame(session, ROWS[::-1], partitions)
        own, scan = (
            count(source(each, DOMAIN, **limits), needs, key=bytes(range(32)))
            for each in (data, table(ROWS))
        )
        for one, other in zip(own, scan, strict=True):
            assert 0 < other.total < len(ROWS)
            reader_contract._same(one, other)


def adds_up_sums_of_any_size(session: Any, patch: pytest.MonkeyPatch) -> None:
    """Sums that 64 bits might not hold are Python's integers, just where a scan has these."""
    value = Summed(random_tables.grid("x", 2**16), squares=True)
    need = Needs(Lattice((random_tables.labels("word"),)), 9, (value,))
    rows = pa.table({"x": np.full(9, DOMAIN["x"].numbers[1]), "word": ["a"] * 9})
    domain = sf.Domain(x=DOMAIN["x"], word=DOMAIN["word"])
    frame = spark.of_table(session, rows)
    for limit in (cell_counts.MOST_IN_64_BITS, 2**32):
        patch.setattr(cell_counts, "MOST_IN_64_BITS", limit)
        own, scan = (count(source(each, domain), [need])[0] for each in (frame, rows))
        reader_contract._same(own, scan)
        assert own.sums is not None
        assert own.sums.max() == 9 * (2**16 - 1) ** 2
    assert own.sums.dtype == object


def counts_keys_of_every_type(session: Any) -> None:
    keys = {"text": ["é", "a", "a"], "whole": [-(2**60), 7, 7], "yes": [True, False, False]}
    domain = sf.Domain({name: sf.Keys() for name in keys})
    need = Needs(Lattice(tuple(KeyAxis(name) for name in keys)), 3)
    rows = pa.table(keys)
    own, scan = (
        count(source(each, domain), [need])[0] for each in (spark.of_table(session, rows), rows)
    )
    reader_contract._same(own, scan)
    assert own.counts.tolist() == [2, 1]


def notices_rows_of_a_person_in_two_tasks(session: Any, patch: pytest.MonkeyPatch) -> None:
    """Otherwise a person could keep as many rows in each of them; nobody is named."""
    patch.setattr(type(spark.frame(session, ROWS)), "repartition", lambda self, *_: self)
    frame = spark.frame(session, ROWS, 3)
    data = source(frame, reader_contract.PERSONS, person="who", rows_per_person=2)
    with pytest.raises(sf.InternalError, match="the rows of one person to two tasks"):
        count(data, random_tables.LATTICES[:1])
    for lattice in (reader_contract.BY_PERSON, reader_contract.BESIDE):
        needs = Needs(lattice, lattice.public_size)
        with pytest.raises(DataError, match="message is withheld"):
            select_in_engine(data, needs, reader_contract.RULES_OF_KEYS[0], key=bytes(32))


def notices_functions_of_the_session_that_would_divide_persons(session: Any) -> None:
    """Whether they hide Spark's own of the same names is up to the version and a setting."""
    order = "spark.sql.functionResolution.sessionOrder"
    data = source(spark.frame(session, ROWS, 3), DOMAIN, person="who")
    session.conf.set(order, "first")
    for name, own in (("hash", lambda _: 7), ("pmod", lambda *_: 7)):
        session.udf.register(name, own, "int")
        with pytest.raises(DataError, match="message is withheld"):
            count(data, random_tables.LATTICES[:1])
        session.sql(f"DROP TEMPORARY FUNCTION {name}")
    session.conf.unset(order)


def one_person_is_in_one_task_in_every_type_of_id(session: Any) -> None:
    """The zeros of doubles are one person, and so are equal decimals."""
    for ids in ([-0.0, 0.0, 0.0, -0.0] * 5, [Decimal("7.00"), Decimal("7.0"), Decimal(7)] * 7):
        rows = pa.table({"who": ids, "x": np.zeros(len(ids))})
        domain = sf.Domain(x=sf.Interval(0, 1))
        data = source(spark.of_table(session, rows, 5), domain, person="who", rows_per_person=1)
        assert count(data, [Lattice((GridAxis("x", 0, 1, 1),))])[0].counts.tolist() == [1]


def tells_apart_columns_that_differ_in_case(session: Any) -> None:
    rows = pa.table({"a": [1.0, 1.0, 1.0], "A": [3.0, 3.0, 3.0], "odd `{name}`": ["p", "p", None]})
    domain = sf.Domain({"A": sf.Interval(0, 4), "odd `{name}`": sf.Categories(["p"])})
    data = source(spark.of_table(session, rows), domain)
    (cube,) = count(data, [sf.Histogram(list(domain), bins={"A": 4}).needs(domain).lattice])
    assert cube.counts.tolist() == [0, 0, 0, 2]


def fails_without_a_value(session: Any) -> None:
    """A DataFrame whose own expressions fail quotes values; the error does not."""
    words = spark.of_table(session, pa.table({"word": [CANARY]}))
    broken = words.selectExpr("CAST(raise_error(word) AS DOUBLE) AS x")
    with pytest.raises(DataError) as raised:
        count(source(broken, {"x": DOMAIN["x"]}), random_tables.LATTICES[:1])
    shown = [str(raised.value), repr(raised.value.__cause__), repr(raised.value.__context__)]
    assert CANARY not in " ".join(shown)
    assert shown[1:] == ["None", "None"]


def refuses_by_the_schema_alone(session: Any) -> None:
    data = source(spark.frame(session, ROWS), DOMAIN)
    wide = Lattice((random_tables.grid("x", 2**14), random_tables.grid("price", 2**14)))
    with pytest.raises(DataError, match="numbers could come back"):
        data.require([wide])
    with pytest.raises(DataError, match="it is a stream"):
        opened(session.readStream.format("rate").load()).names()


def selects_keys_as_a_scan_is_selected_from(session: Any) -> None:
    """The workers apply the rule: what comes back is what it shows of the scan's counts."""
    lattice, rule = reader_contract.BESIDE, reader_contract.RULES_OF_KEYS[0]
    needs = Needs(lattice, lattice.public_size)
    data = source(spark.frame(session, ROWS, 3), reader_contract.PERSONS)
    assert selects(data, needs)
    shown = select_in_engine(data, needs, rule, key=bytes(32))
    cube = count(source(table(ROWS), reader_contract.PERSONS), [needs])[0]
    assert reader_contract.laid(shown, lattice) == reader_contract.decided(cube, rule) != []


# A session takes seconds to begin, and each clause a second or more. What the tasks do is tried
# without Spark, too: in ``conformance/test_forms``.
QUICK: tuple[Callable[[Any], None], ...] = (
    counts_the_same_rows_where_persons_are_cut,
    fails_without_a_value,
    refuses_by_the_schema_alone,
)
LONG: tuple[Callable[[Any], None], ...] = (
    says_names_and_types,
    counts_every_kind_of_column,
    counts_keys_of_every_type,
    notices_functions_of_the_session_that_would_divide_persons,
    one_person_is_in_one_task_in_every_type_of_id,
    tells_apart_columns_that_differ_in_case,
    selects_keys_as_a_scan_is_selected_from,
)


def test_spark_counts_as_a_scan_does() -> None:
    session = spark.session(**spark.QUICK)
    for clause in QUICK:
        clause(session)


@pytest.mark.deep
def test_spark_counts_all_types_and_notices_what_would_go_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = spark.session(**spark.QUICK)
    for clause in LONG:
        clause(session)
    adds_up_sums_of_any_size(session, monkeypatch)
    notices_rows_of_a_person_in_two_tasks(session, monkeypatch)


# --- long clauses, each in a process of its own ---------------------------------------------------

KINDS = ("classic", "connect")


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_spark_keeps_the_contract(kind: str) -> None:
    assert spark_jobs.run("contract", kind)["lattices"] == len(random_tables.LATTICES)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_no_setting_of_a_session_changes_a_count(kind: str, tmp_path: Path) -> None:
    assert set(spark_jobs.run("settings", kind, str(tmp_path))) > set(spark_settings.SESSIONS)


@pytest.mark.deep
def test_a_command_reads_files_as_a_scan_does(tmp_path: Path) -> None:
    assert spark_jobs.run("reading", str(tmp_path)) == {"new": 18, "int96": 6}


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_executors_select_keys(kind: str) -> None:
    assert spark_jobs.run("keys", kind) == {"on executors": True}


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_no_log_holds_the_secrets(kind: str, tmp_path: Path) -> None:
    """Event logs, all log lines and all plans are searched for the key and what follows from it."""
    assert spark_jobs.run("logs", kind, str(tmp_path), folder=tmp_path)["rows"] > 0
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"MapInArrow" in text for text in written.values()), "the plans are in no log"
    for secret in forms_of_secrets():
        assert not [path.name for path, text in written.items() if secret in text], secret


def forms_of_secrets() -> list[bytes]:
    """The key and the secrets, raw, in hexadecimal digits, in base64 and as lists."""
    purposes: tuple[Purpose, ...] = ("rows", "cells", "keys")
    secrets = [spark_jobs.KEY[:8], *(secret_for(spark_jobs.KEY, each)[:8] for each in purposes)]
    forms = []
    for secret in secrets:
        signed = [byte - 256 if byte > 127 else byte for byte in secret]
        forms += [secret, secret.hex().encode(), secret.hex().upper().encode()]
        forms += [base64.b64encode(secret)[:8]]
        forms += [
            joint.join(map(str, numbers)).encode()
            for joint in (",", ", ")
            for numbers in (list(secret), signed)
        ]
    return forms


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_gone_and_a_session_that_is_stopped(kind: str) -> None:
    vanished, stopped = spark_jobs.run("failures", kind)
    assert "no longer there" in vanished
    assert "its SparkSession was stopped" in stopped


@pytest.mark.deep
def test_what_spark_costs(evidence: Callable[[str, object], None]) -> None:
    """Our job beside one written by hand; memory with 10^8 rows."""
    figures = {
        "costs": spark_jobs.run("costs", str(10**7)),
        "memory": spark_jobs.run("memory", str(10**8)),
    }
    evidence("spark", figures)
    assert figures["costs"]["ratios"]["persons"] <= 0.8
    assert figures["costs"]["ratios"]["keys, persons"] <= 1.1
    few, many = (each["peak MiB of the driver (Python)"] for each in figures["memory"].values())
    assert many <= few + 16


@pytest.mark.deep
def test_what_spark_shuffles(evidence: Callable[[str, object], None], tmp_path: Path) -> None:
    """By the figures of Spark's tasks: a row for each of a part's cells, and each row but once."""
    figures = spark_jobs.run("shuffled", str(10**7), str(tmp_path))
    evidence("spark_shuffled", figures)
    cells = 250 * 16
    assert figures["without persons"]["rows"] <= cells
    # Each row once; then the cells of each task, and the buckets of persons that it saw.
    assert 10**7 <= figures["with persons"]["rows"] <= 10**7 + 2 * cells + BUCKETS
    # 28 bytes before compression: who, the two columns that are counted, and a bucket.
    assert figures["with persons"]["bytes"] <= 28 * (10**7 + cells)


@pytest.mark.deep
def test_a_killed_executor_changes_no_count_and_no_key(
    evidence: Callable[[str, object], None], tmp_path: Path
) -> None:
    """An executor of a cluster dies amid a part, with the parts that it had done before."""
    figures = spark_jobs.run("killed", str(tmp_path))
    evidence("spark_killed", figures)
    # At most 4 rows of each of 20,000 persons; few persons have fewer.
    assert 79_000 < figures["rows"] <= 80_000
    assert 900 < figures["keys"] < 1000, "no key is near the threshold"
    for amid in figures["killed"].values():
        assert amid["same"]
        assert amid["killed"]
        assert max(amid["evaluations of parts"]) > 1


# --- without Spark --------------------------------------------------------------------------------


class OldSession:
    version = "3.5.1"


class OldFrame:
    """A DataFrame of a version of Spark that lacks functions."""

    sparkSession = OldSession()  # noqa: N815
    isStreaming = False  # noqa: N815


def test_an_old_spark_is_refused() -> None:
    with pytest.raises(DataError, match=r"Spark 3\.5\.1"):
        SparkTable(OldFrame()).names()  # type: ignore[arg-type]


def test_a_frame_of_pandas_on_spark_is_told_how_to_become_one() -> None:
    kind = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})
    with pytest.raises(UsageError, match=r"to_spark\(\)"):
        source(kind(), DOMAIN)


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("limit", [None, 2])
def test_spark_selects_keys_as_it_counts(limit: int | None) -> None:
    session = spark.session(**spark.QUICK)
    frame = spark.frame(session, ROWS, 3)
    reader_contract.selects_as_it_counts(lambda: opened(frame), limit=limit)


@pytest.mark.deep
def test_the_rule_is_in_no_plan_and_no_key_comes_back_that_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of 2,000 keys the driver is sent three; the plan names the rule's function alone."""
    session = spark.session(**spark.QUICK)
    shops = ["zoo"] * 90 + ["bar"] * 80 + ["Ärger"] * 70 + [f"shop {i}" for i in range(2000)]
    frame = spark.of_table(session, pa.table({"shop": shops}), 3)
    plans: list[Any] = []
    sent: list[int] = []
    kind = type(frame)
    map_in_arrow, to_arrow = kind.mapInArrow, kind.toArrow

    def mapped(self: Any, *asked: Any) -> Any:
        plans.append(map_in_arrow(self, *asked))
        return plans[-1]

    def arrived(self: Any) -> Any:
        table = to_arrow(self)
        sent.append(table.num_rows)
        return table

    monkeypatch.setattr(kind, "mapInArrow", mapped)
    monkeypatch.setattr(kind, "toArrow", arrived)
    rules: list[KeyRule] = []
    made = KeyRule.of
    monkeypatch.setattr(KeyRule, "of", lambda *asked: rules.append(made(*asked)) or rules[-1])
    src = source(frame, sf.Domain(shop=sf.Keys()), name="shops")
    with sf.Publisher(src, budget=sf.ApproxDP("1", "1e-6")) as publisher:
        release = publisher.release(sf.Histogram("shop"), epsilon="1", delta="1e-6")
    assert release.cell_names("shop") == ["bar", "zoo", "Ärger"]
    assert sent == [8, 3]
    plans[-1].explain("extended")
    plan = capfd.readouterr().out
    assert "SelectionTask" in plan
    secret = rules[0].secret
    assert isinstance(secret, bytes)
    for written in (secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:20]):
        assert written not in plan


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        (
            [{"sfumato": None}],
            "does not have this package. Run spark.addArtifacts(sf.spark_package()",
        ),
        ([{}, {"sfumato": "0.0.1"}], "has version 0.0.1, and this is"),
        (
            [{}, {"pyarrow": None, "msgspec": None}],
            "has no pyarrow and no msgspec. Install it where",
        ),
    ],
)
def test_workers_that_cannot_count_are_refused(
    reports: list[dict[str, str | None]], words: str
) -> None:
    """Workers of two versions, too."""
    complete = {**dict.fromkeys(NEEDED, "1.0"), "sfumato": sf.__version__}
    require_package("visits", [json.dumps(complete)])
    with pytest.raises(DataError) as refusal:
        require_package("visits", [json.dumps(complete | report) for report in reports])
    assert words in str(refusal.value)


@pytest.mark.deep
def test_the_printed_line_brings_the_package_to_the_workers(tmp_path: Path) -> None:
    """Nothing is charged before; the archive is all that the workers then have of it."""
    refused, spent, counts = spark_jobs.run("bare", str(tmp_path))
    assert "does not have this package" in refused
    assert spent == [0, 0]
    assert sum(counts) == 3 * 50
