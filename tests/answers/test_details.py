"""What a release shows of itself: few names, its table as text, and Arrow for other libraries."""

from __future__ import annotations

import copy
import pickle
import re

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers import registry
from sfumato.answers.release import Release
from support import every_kind

KINDS = [*every_kind.QUESTIONS, "counter"]
OF_EVERY_RELEASE = {
    *("values", "guarantee", "receipt", "accuracy", "interval", "to_frame", "to_pandas"),
    *("to_polars", "to_csv", "to_excel", "save", "plot", "replayed", "details", "title", "heading"),
    "scope",
}
OF_PARTITIONS = {
    *("lower", "upper", "counts", "scale", "depth", "spent", "assign", "count", "sample"),
    *("to_geojson", "consistent"),
}
OF_CLUSTERS = {"centers", "weights", "predict"}


def public_names(release: object) -> list[str]:
    return [name for name in dir(release) if not name.startswith("_")]


def test_every_kind_of_release_is_looked_at() -> None:
    assert {type(release) for release in every_kind.releases().values()} >= {*registry.releases()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_lists_at_most_thirty_names(kind: str) -> None:
    release = every_kind.releases()[kind]
    names = public_names(release)
    assert len(names) <= 30
    assert set(names) >= OF_EVERY_RELEASE
    if isinstance(release, sf.Partition):
        assert set(names) >= OF_PARTITIONS
    if isinstance(release, sf.KMeansRelease):
        assert set(names) >= OF_CLUSTERS


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_listed_is_in_the_details(kind: str) -> None:
    release = every_kind.releases()[kind]
    every = {name for name in object.__dir__(release) if not name.startswith("_")}
    assert every == {*public_names(release), *dir(release.details)}
    assert not {*public_names(release)} & {*dir(release.details)}
    for name in dir(release.details):
        assert hasattr(release.details, name)
    assert release.details.noun == release.noun
    assert repr(release.details).startswith("<Details of ")


def test_details_are_of_their_release_alone() -> None:
    details = every_kind.releases()["histogram"].details
    for name in ("values", "to_frame", "nothing", "_release_", "__wrapped__"):
        with pytest.raises(AttributeError):
            getattr(details, name)
    for copied in (copy.copy(details), pickle.loads(pickle.dumps(details))):
        assert copied.noun == details.noun


def test_a_class_from_outside_lists_what_it_adds() -> None:
    class Bare(Release, frozen=True, kw_only=True, eq=False):
        extra: int = 1

    bare = Bare(guarantee=every_kind.releases()["histogram"].guarantee)
    assert {*public_names(bare)} == OF_EVERY_RELEASE | {"extra"}


@pytest.mark.parametrize("kind", KINDS)
def test_print_shows_the_first_rows_and_repr_one_line(kind: str) -> None:
    release = every_kind.releases()[kind]
    assert "\n" not in repr(release)
    heading, header, *lines = str(release).splitlines()
    assert heading == release.heading
    frame = release.to_frame()
    shown = [name.replace("_", " ") for name in frame.column_names]
    assert set(re.split(r"\s{2,}", header.strip())) <= set(shown)
    rows = min(8, frame.num_rows)
    further = frame.num_rows - rows
    assert (f"… and {further:,} more" in lines[rows]) == (further > 0)
    said = " ".join(lines[rows:])
    assert release.guarantee.sentence() in said
    assert release.about in said
    for column in {"low", "high"} & {*frame.column_names}:
        assert f" {column}" in header


def test_print_takes_names_for_people_and_says_what_was_stored() -> None:
    question = sf.Histogram("carrier", heading="Flights", label_names={"WN": "Southwest"})
    with sf.Publisher(every_kind.source(), budget="2") as publisher:
        publisher.release(question, epsilon="1")
        release = publisher.release(question, epsilon="1")
    lines = str(release).splitlines()
    assert lines[0] == "Flights"
    assert lines[2].startswith("Southwest")
    assert "Question: Histogram of carrier." in lines
    assert "This is the stored answer; nothing was spent for it again." in lines


def test_a_label_does_not_steer_the_screen() -> None:
    domain = sf.Domain({"a\x1b[31m": sf.Categories(["x\u202ey", "two\nlines"])})
    source = sf.source(pa.table({"a\x1b[31m": ["x\u202ey"]}), domain, name="hostile")
    with sf.Publisher(source, budget="1") as publisher:
        text = str(publisher.release(sf.Histogram("a\x1b[31m"), epsilon="1"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "two lines" in text


@pytest.mark.parametrize("kind", KINDS)
def test_other_libraries_take_a_release_for_its_table(kind: str) -> None:
    release = every_kind.releases()[kind]
    table = release.to_frame()
    assert pa.table(release).equals(table)
    assert pl.DataFrame(release).equals(pl.DataFrame(table))
    pd.testing.assert_frame_equal(pd.DataFrame.from_arrow(release), pd.DataFrame.from_arrow(table))
    assert duckdb.sql("SELECT count(*) FROM release").fetchall() == [(table.num_rows,)]
    wider = pa.schema([field.with_metadata({"a": "b"}) for field in table.schema])
    assert pa.RecordBatchReader.from_stream(release, wider).read_all().num_rows == table.num_rows


def test_a_release_without_a_table_gives_no_stream() -> None:
    class Bare(Release, frozen=True, kw_only=True, eq=False):
        title = "Something else"

    bare = Bare(guarantee=every_kind.releases()["histogram"].guarantee)
    with pytest.raises(sf.UsageError, match="it has no table"):
        pa.table(bare)
    assert str(bare).splitlines()[0] == "Something else"
