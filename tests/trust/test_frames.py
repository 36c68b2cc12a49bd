"""What fails after a charge carries neither rows nor true counts.

They are not in its words, not in its frames, and not in what is behind it.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import cli
from sfumato.domain.cube import Cube
from sfumato.random.bits import current
from support.frames import Escaped, Fault, escaped
from trust.test_same_bytes import KEYED, PURE

LEFT, RIGHT = 20_947, 11_026
ROWS = LEFT + RIGHT
VALUE, NAME = 7.6543217, "zebracanary"
CANARIES = {str(ROWS), str(LEFT), str(RIGHT), f"{ROWS:,}", str(VALUE), NAME, "87654321"}
PUSHED, PERSONS = [VALUE, 87654321.0, float(ROWS)], [NAME, f"{NAME}2", f"{NAME}3"]
DOMAIN = sf.Domain(
    x=sf.Interval(0, 16, step=1),
    y=sf.Interval(0, 16, step=1),
    kind=sf.Categories(["a", "b"]),
    shop=sf.Keys(),
)

KINDS: dict[str, Callable[[], BaseException]] = {
    "ordinary": lambda: ValueError(f"cannot read {VALUE} of {NAME}", ROWS),
    "engine": lambda: pa.ArrowInvalid(f"Could not convert {NAME} with type str"),
    "plain": lambda: ValueError("of no value"),
    "ours": lambda: sf.DataError("a table", "it is damaged", "Mend it"),
    "memory": lambda: MemoryError(f"Unable to allocate an array with shape ({ROWS},)"),
    "key press": KeyboardInterrupt,
    "end": lambda: SystemExit(ROWS),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of which every fact is a canary.

    The facts are a value, a name, the number of rows, and the rows of each of two labels.
    """
    path = tmp_path_factory.mktemp("canary") / "table.parquet"
    who = np.arange(ROWS).astype(str).astype(object)
    who[::2] = NAME
    kinds = np.array(["a"] * LEFT + ["b"] * RIGHT)
    values = np.full(ROWS, VALUE)
    pq.write_table(
        pa.table({"who": who, "x": values, "y": values, "kind": kinds, "shop": [NAME] * ROWS}), path
    )
    return path


def publisher(table: Any, folder: Path, **unit: Any) -> sf.Publisher:
    return sf.Publisher(
        sf.source(table, DOMAIN, **unit),
        ledger=folder / "b.db",
        account="test",
        budget=sf.ApproxDP(10**6, "0.9"),
    )


CHARGED, STORED = (
    "stored_answers",
    "store",
)  # what is entered when the charge is on disk, and when the answer is made


def tried(
    act: Callable[[], object], kind: str, points: int, after: str = "", before: str = ""
) -> Iterator[Escaped]:
    """Run an act again and again, each time with a fault at another depth."""
    with Fault(0, RuntimeError, after, before) as fault:
        act()
    for at in np.unique(np.linspace(1, fault.entries, points).astype(int)).tolist():
        with Fault(at, KINDS[kind], after, before):
            found = escaped(act)
        yield found


def clean(found: Escaped) -> bool:
    """Whether nothing of the data came out, and no frame but that of the public call itself."""
    assert not found.seen(CANARIES), found.texts[0][-3000:]
    assert len(found.frames) <= len(found.errors) <= 1, [
        frame.f_code.co_qualname for frame in found.frames
    ]
    return bool(found.errors)


def test_the_search_finds_what_is_there(table: Path) -> None:
    """A library that lets frames out shows every kind of canary."""

    def leaky() -> None:
        cube = {"counts": np.array([LEFT, RIGHT]), "rows": ROWS, "first": VALUE}
        try:
            raise KeyError(NAME)
        except KeyError:
            raise ValueError(len(cube)) from None

    assert escaped(leaky).seen(CANARIES) >= {str(LEFT), str(RIGHT), str(ROWS), str(VALUE), NAME}
    question, domain = sf.Histogram("kind"), DOMAIN
    cube = Cube.of_cells(question.needs(domain).lattice, np.array([[0]] * LEFT + [[1]] * RIGHT))
    with Fault(2, KINDS["key press"], "add_noise"):
        found = escaped(lambda: question.answer(cube, sf.Unit(), sf.PureDP(1), current()))
    assert found.seen(CANARIES) >= {str(LEFT), str(RIGHT)}
    assert len(found.frames) > 1


def test_what_threads_leave_is_found() -> None:
    def leaky() -> None:
        def run(name: str) -> None:
            raise ValueError("of a thread")

        thread = threading.Thread(target=run, args=(NAME,))
        thread.start()
        thread.join()

    assert escaped(leaky).seen(CANARIES) == {NAME}


def release(
    table: Path, folder: Path, question: Any, person: str | None = None, delta: Any = 0
) -> None:
    """One release by a publisher of its own, which has counted nothing yet."""
    with publisher(table, folder, person=person) as pub:
        pub.release(question, epsilon=1, delta=delta, fresh=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("person", ["who", None])
def test_a_release(table: Path, tmp_path: Path, person: str | None, kind: str) -> None:
    """Faults at many depths: in batches, in bounding, in the scan, in mechanisms."""
    act = partial(release, table, tmp_path, [PURE["known"], PURE["quantiles, joint"]], person)
    points = 12 if kind in ("ordinary", "key press") else 4
    assert sum(map(clean, tried(act, kind, points, CHARGED, STORED))) >= points // 2


@pytest.mark.parametrize("name", [*PURE, *KEYED])
def test_every_question(table: Path, tmp_path: Path, name: str) -> None:
    question = (PURE | KEYED)[name]
    of_persons = isinstance(question, sf.Persons) or getattr(question, "per", "row") == "person"
    person = "who" if of_persons else None
    act = partial(release, table, tmp_path, question, person, "0.01" if name in KEYED else 0)
    assert sum(map(clean, tried(act, "ordinary", 3, CHARGED, STORED))) > 1


@pytest.mark.parametrize("kind", ["plain", "key press"])
def test_before_the_charge_and_while_storing(table: Path, tmp_path: Path, kind: str) -> None:
    """Frames are left behind from the first to the last.

    A file is looked at before the charge, too.
    """
    act = partial(release, table, tmp_path, PURE["known"], "who")
    assert sum(map(clean, tried(act, kind, 12, "release", "close"))) > 6


@pytest.mark.parametrize("kind", ["ordinary", "key press"])
@pytest.mark.parametrize("method", ["tree", "toeplitz"])
def test_a_stream(tmp_path: Path, method: Any, kind: str) -> None:
    """Opening, pushing, advancing and reading a stream of persons."""
    empty = pa.table({"who": pa.array([], pa.string()), "x": pa.array([], pa.float64())})
    days = sf.Calendar("2026-01-01", "2026-12-31")
    src = sf.source(empty, {"x": sf.Interval(0, 16, step=1)}, person="who", name="visits")
    with sf.Publisher(src, ledger=tmp_path / "b.db", budget=sf.ZCDP(9000)) as pub:
        numbers = iter(range(10**6))
        further = iter([days.name(place) for place in range(8, 365)])
        counter = sf.Counter(days, value=sf.Interval(0, 10**8), method=method)
        stream = pub.open(counter, rho=1, key="visits")
        acts: dict[Callable[[], object], str] = {
            lambda: pub.open(counter, rho=1, key=f"visits {next(numbers)}"): "plain",
            lambda: stream.push(PUSHED, persons=PERSONS): kind,
            lambda: stream.advance(next(further)): kind,
            stream.history: "plain",
            lambda: pub.open(counter, rho=1, key="visits").history(): "plain",
        }
        for act, fault in acts.items():
            act()  # what the first call has more to do than others is done
            assert sum(map(clean, tried(act, "key press" if kind == "key press" else fault, 6))) > 2
        for found in tried(lambda: list(stream), "key press", 6):  # what it reads was published
            assert not found.seen(CANARIES)


def test_progress_that_raises(table: Path, tmp_path: Path) -> None:
    """The user's own function may raise.

    Its own frame is the user's, and what is below it is not to be seen.
    """

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with publisher(table, tmp_path) as pub:
        assert clean(escaped(lambda: pub.release(PURE["known"], epsilon=1, progress=stop)))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "end"])
def test_the_command_line(table: Path, tmp_path: Path, kind: str) -> None:
    """In one process: what is printed, and what comes out of ``cli.run``."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"[source]\npath = {str(table)!r}\n"
        '[domain]\nx = { type = "interval", lower = 0, upper = 16, step = 1 }\n'
        '[budget]\naccount = "plan"\nepsilon = "1000"\n'
        '[release]\nepsilon = "1"\n'
        '[[questions]]\ntype = "histogram"\naxes = ["x"]\n',
        encoding="utf-8",
    )

    def act() -> None:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            try:
                cli.run(["release", str(plan), "--ledger", str(tmp_path / "b.db"), "--fresh"])
            finally:
                texts.append(said.getvalue())

    texts: list[str] = []
    for found in tried(act, kind, 6, CHARGED, STORED):
        assert not found.errors
    assert not Escaped(texts=texts).seen(CANARIES)


def test_nothing_is_left_for_the_post_mortem(table: Path, tmp_path: Path) -> None:
    """What ``pdb.pm()`` and error reporters read of a session's last exception."""
    with publisher(table, tmp_path) as pub, Fault(40, KINDS["ordinary"], CHARGED):
        found = escaped(lambda: pub.release(PURE["known"], epsilon=1))
    clean(found)
    assert sys.exc_info() == (None, None, None)
