"""The comparison notices a leak in every kind of artefact.

Here are libraries that leak, one fact in one place each.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

import sfumato as sf
from sfumato.charts import style
from sfumato.cli import publishing as answer_files
from sfumato.cli import publishing as commands
from sfumato.data.source import Source
from sfumato.domain.cube import Cube
from sfumato.publishing import answering as publishing
from sfumato.publishing.plan import Plan
from sfumato.publishing.stream import Stream
from sfumato.questions.histogram import keys
from sfumato.questions.histogram.release import CountsTable
from sfumato.questions.partition.release import Partition
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.reports import page
from support.artefacts import World, both, differences
from support.replay import DivergedError
from trust.tables import DOMAIN, Row, laid, parquet

Patch = pytest.MonkeyPatch
Twin = Callable[[Patch, "Facts"], None]


WHO = ("--person", "who", "--rows-per-person", 3)
OWN: tuple[Row, Row] = ("p99", 3.0, 4.0, "a", "shop0"), ("p99", 3.0, 4.0, "a", "shop2")
PAIR: tuple[list[Row], list[Row]] = (
    [OWN[0]] * 2,
    [OWN[1]] * 3,
)  # other numbers of rows, and other keys in front


class Facts:
    """What only the custodian knows: the rows of the last table that was counted."""

    rows = 0


def wrapped(patch: Patch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Let a function of the library return something else; of a property, likewise."""
    original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
    if isinstance(original, property):
        patch.setattr(owner, name, property(lambda self: change(original.fget(self))))  # type: ignore[misc]
    else:
        patch.setattr(owner, name, lambda *given, **more: change(original(*given, **more)))


def a_file_size_in_the_receipt(patch: Patch, facts: Facts) -> None:
    title = Source.title.fget  # type: ignore[attr-defined]
    patch.setattr(
        Source,
        "title",
        property(lambda self: f"{title(self)}, {Path(self._data).stat().st_size} bytes"),
    )


def a_receipt_dated_after_the_scan(patch: Patch, facts: Facts) -> None:
    from sfumato.ledger import journal, store

    wrapped(
        patch,
        publishing,
        "receipt_of",
        lambda receipt: msgspec.structs.replace(
            receipt, time=journal.stamp(store.datetime.now(UTC))
        ),
    )


def a_page_with_the_number_of_rows(patch: Patch, facts: Facts) -> None:
    wrapped(patch, page, "render", lambda text: f"{text}<!-- {facts.rows} rows -->")


def a_picture_that_says_when_it_was_drawn(patch: Patch, facts: Facts) -> None:
    patch.setattr(style, "save", lambda figure, path: figure.savefig(path))


def a_file_name(patch: Patch, facts: Facts) -> None:
    wrapped(patch, answer_files, "file_name", lambda slug: f"{slug}-{facts.rows}")


def an_exit_code(patch: Patch, facts: Facts) -> None:
    from sfumato import cli

    wrapped(patch, cli, "run", lambda code: code + facts.rows % 2)


def an_error(patch: Patch, facts: Facts) -> None:
    def refuse(*given: Any, **more: Any) -> None:
        if facts.rows:
            raise sf.DataError("a table", f"row {facts.rows} is damaged", "Mend it")

    wrapped(patch, publishing, "to_bytes", lambda written: refuse() or written)


def a_warning(patch: Patch, facts: Facts) -> None:
    wrapped(
        patch,
        publishing,
        "to_bytes",
        lambda written: warnings.warn(f"{facts.rows} rows", stacklevel=1) or written,
    )


def a_line_of_log(patch: Patch, facts: Facts) -> None:
    wrapped(
        patch,
        publishing,
        "to_bytes",
        lambda written: logging.getLogger("sfumato").debug("%d rows", facts.rows) or written,
    )


def a_line_on_stdout(patch: Patch, facts: Facts) -> None:
    wrapped(patch, commands, "show_releases", lambda _: click.echo(f"{facts.rows} rows"))


def a_line_on_stderr(patch: Patch, facts: Facts) -> None:
    wrapped(
        patch, publishing, "to_bytes", lambda written: print(facts.rows, file=sys.stderr) or written
    )


def a_note_in_the_ledger(patch: Patch, facts: Facts) -> None:
    wrapped(patch, Plan, "title", lambda title: f"{title}, {'even' if facts.rows % 2 else 'odd'}")


def keys_by_their_true_counts(patch: Patch, facts: Facts) -> None:
    released = keys.released

    def by_size(counts: Any, *rest: Any) -> Any:
        places, values = released(counts, *rest)
        order = (-counts[places]).argsort(kind="stable")
        return places[order], values[order]

    patch.setattr(keys, "released", by_size)


def a_grid_by_the_true_number_of_rows(patch: Patch, facts: Facts) -> None:
    per_axis = UniformPartitioner._per_axis
    patch.setattr(
        UniformPartitioner,
        "_per_axis",
        lambda self, lattice, n, law: per_axis(self, lattice, 100 * (facts.rows % 2), law),
    )


def a_column_of_a_frame(patch: Patch, facts: Facts) -> None:
    import pyarrow as pa

    wrapped(
        patch,
        CountsTable,
        "to_frame",
        lambda frame: frame.append_column("of", pa.array([facts.rows] * len(frame))),
    )


def a_repr(patch: Patch, facts: Facts) -> None:
    wrapped(patch, sf.Release, "__repr__", lambda text: f"{text[:-1]}; {facts.rows} rows>")  # type: ignore[attr-defined]


def a_property_of_geojson(patch: Patch, facts: Facts) -> None:
    written = Partition.to_geojson

    def more(self: Partition, path: Path) -> Any:
        found = written(self, path)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"rows": facts.rows}))
        return found

    patch.setattr(Partition, "to_geojson", more)


def the_name_of_a_step(patch: Patch, facts: Facts) -> None:
    push = Stream.push
    patch.setattr(
        Stream,
        "push",
        lambda self, increment, event=None, **more: push(
            self, increment, event=f"step of {increment}", **more
        ),
    )


def release(here: World, table: Path) -> None:
    src = sf.source(table, DOMAIN, person="who", rows_per_person=3)
    with sf.Publisher(src, ledger=here.ledger, budget=sf.ApproxDP(1000, "0.5")) as pub:
        for question in (
            sf.Histogram("x", bins=4),
            sf.UniformPartitioner(["x", "y"]),
            sf.Histogram("shop"),
        ):
            here.call(
                "release", lambda question=question: pub.release(question, epsilon=16, delta="0.01")
            )
        stream = here.call("open", lambda: pub.open(sf.Counter(3), epsilon=1, key="visits"))
        size = table.stat().st_size
        here.call("push", lambda: stream.push(size, persons=["a"] * size))


def command(here: World, table: Path) -> None:
    what = (
        "--axis",
        "x=0..16/1",
        "--axis",
        "y=0..16/1",
        *WHO,
        "--epsilon",
        8,
        "--budget",
        90,
        "--ledger",
        here.ledger,
    )
    here.command("histogram", table, *what, "--bins", 2, "--out", here.out)


def picture(here: World, table: Path) -> None:
    what = ("--axis", "x=0..16/1", *WHO, "--epsilon", 8, "--budget", 90, "--ledger", here.ledger)
    here.command("histogram", table, *what, "--bins", 2, "--plot", here.out / "p.svg")


def paged(here: World, table: Path) -> None:
    command(here, table)
    here.command("report", *here.out.glob("*.json"), "--out", here.out / "report.html")


def mapped(here: World, table: Path) -> None:
    what = (
        "--axis",
        "x=0..16/1",
        "--axis",
        "y=0..16/1",
        *WHO,
        "--epsilon",
        8,
        "--budget",
        90,
        "--ledger",
        here.ledger,
    )
    here.command("partition", table, *what, "--geojson", here.out / "p.geojson")


TWINS: dict[Twin, tuple[Callable[[World, Path], None], str]] = {
    a_file_size_in_the_receipt: (release, "release: returned JSON"),
    a_receipt_dated_after_the_scan: (release, "release: returned pickle"),
    a_page_with_the_number_of_rows: (paged, "file report.html"),
    a_picture_that_says_when_it_was_drawn: (picture, "file p.svg"),
    a_property_of_geojson: (mapped, "file p.geojson"),
    a_file_name: (command, "run only"),
    an_exit_code: (command, "returned repr"),
    a_line_on_stdout: (command, "stdout"),
    a_line_on_stderr: (command, "stderr"),
    an_error: (release, "raised"),
    a_warning: (release, "warnings"),
    a_line_of_log: (release, "log"),
    a_note_in_the_ledger: (release, "ledger: dump"),
    keys_by_their_true_counts: (release, "release: returned frame"),
    a_grid_by_the_true_number_of_rows: (release, "DIVERGED"),
    a_column_of_a_frame: (release, "release: returned frame"),
    a_repr: (release, "release: returned repr"),
    the_name_of_a_step: (release, "push: returned repr"),
}


def noticed(scenario: Callable[[World, Path], None], twin: Twin | None, folder: Path) -> list[str]:
    """In which artefacts a library with this leak shows that the tables differ."""

    def run(here: World, table: Path) -> None:
        facts, made = Facts(), Cube.__init__
        with pytest.MonkeyPatch.context() as patch:

            def remembered(self: Cube, *given: Any, **more: Any) -> None:
                made(self, *given, **more)
                facts.rows = self.total

            patch.setattr(Cube, "__init__", remembered)
            if twin is not None:
                twin(patch, facts)
            scenario(here, table)

    try:
        return differences(*both(folder, laid(parquet, PAIR), run))
    except DivergedError:
        return ["DIVERGED: the mechanisms were asked for something else"]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_a_leak_is_noticed(twin: Twin, tmp_path: Path) -> None:
    scenario, where = TWINS[twin]
    found = [
        line
        for line in noticed(scenario, twin, tmp_path / "w")
        if where in re.split("b['\"]", line)[0]
    ]
    assert found
