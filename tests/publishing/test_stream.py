"""Streams as users hold them: paid once, counted once, resumed, refused.

What they publish, and what they keep to themselves.
"""

from __future__ import annotations

import datetime as dt
import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import msgspec
import numpy as np
import pytest

import sfumato as sf
from publishing.visits import source
from sfumato.audit.runs import Scripted
from sfumato.ledger import open_ledger
from sfumato.publishing.stream import Stream
from sfumato.questions.counters.mechanism import Total
from sfumato.random.bits import override
from sfumato.testing import deterministic
from support.canary import overheard, sightings


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[sf.Publisher]:
    with sf.Publisher(source(), ledger=tmp_path / "b.db", account="a", budget="3") as opened:
        yield opened


def exact(
    publisher: sf.Publisher, counter: sf.Counter, increments: list[object], **words: object
) -> list[Total]:
    """Push increments under noise that is nothing."""
    with (
        override(Scripted()),
        publisher.open(
            counter, epsilon="0.01", key=repr(increments)[:900] + repr(counter)[:900]
        ) as stream,
    ):
        return [
            stream.push(increment, **{name: each[i] for name, each in words.items()})
            for i, increment in enumerate(increments)
        ]  # type: ignore[index]


def test_paid_once_resumed_and_the_same(publisher: sf.Publisher, tmp_path: Path) -> None:
    counter = sf.Counter(horizon=10)
    with publisher.open(counter, epsilon="1", key="visits") as stream:
        assert publisher.remaining == 2
        totals = [stream.push(5, event=dt.date(2026, 11, day)) for day in (1, 2, 3)]
    with publisher.open(counter, epsilon="1", key="visits") as again:
        assert publisher.remaining == 2
        assert (again.step, again.remaining, len(again)) == (3, 7, 3)
        assert list(again) == totals
        assert again.push(99, event="2026-11-02") == totals[1]
        assert again.step == 3
        assert again.push(5, event="2026-11-04").step == 4
        release = again.history()
    assert release.values.tolist()[:3] == [total.value for total in totals]
    assert release.events == ("2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04")
    assert release.receipt is not None
    assert release.receipt.charged == "epsilon = 1"
    assert release.receipt.budget == "epsilon = 3"
    release.save(tmp_path / "r.json")
    assert sf.load(tmp_path / "r.json") == release
    assert release.to_frame().column_names == ["step", "event", "total", "low", "high"]
    assert publisher.ledger.verify().ok


def test_two_holders_take_steps_one_after_another(publisher: sf.Publisher, tmp_path: Path) -> None:
    counter = sf.Counter(horizon=20)
    with (
        publisher.open(counter, epsilon="1", key="k") as one,
        sf.Publisher(source(), ledger=tmp_path / "b.db", account="a") as other,
    ):
        two = other.open(counter, epsilon="1", key="k")
        steps = [holder.push(1).step for holder in (one, two, two, one, two, one)]
        assert steps == [1, 2, 3, 4, 5, 6]
        assert one.history() == two.history()


@pytest.mark.parametrize(
    ("counter", "increments", "expected"),
    [
        (sf.Counter(9), [3, 0, np.int64(4)], [3, 3, 7]),
        (
            sf.Counter(9, by="kind"),
            [{"a": 2, "b": 1}, ["a", "x", None, "b"], "b"],
            [[2, 1, 0], [3, 2, 1], [3, 3, 1]],
        ),
        (
            sf.Counter(9, by=sf.Categories(["a", "b"])),
            [{"a": 2, "x": 1}, ["x", "b"]],
            [[2, 0], [2, 1]],
        ),
        (
            sf.Counter(9, value=sf.Interval(0, 10, step=1)),
            [7.4, [20, -3, 2.6], float("inf"), []],
            [7, 20, 30, 30],
        ),
        (
            sf.Counter(9, value=sf.Interval(-2, 2, step=0.5)),
            [np.array([-9.0, 0.7]), 2],
            [-1.5, 0.5],
        ),
        (
            sf.Counter(9, value=sf.Interval(0, 5, step=1), by="kind"),
            [{"a": [1, 9], "b": 2}, [("a", 1), ("z", 4)]],
            [[6, 2, 0], [7, 2, 4]],
        ),
        (sf.Counter(None), [1] * 40, list(range(1, 41))),
    ],
    ids=lambda x: repr(x)[:40],
)
def test_without_noise_totals_are_what_was_pushed(
    publisher: sf.Publisher, counter: sf.Counter, increments: list[object], expected: list[object]
) -> None:
    values = [total.value for total in exact(publisher, counter, increments)]
    assert np.allclose(np.array(values, float), np.array(expected, float))


@pytest.mark.parametrize(
    ("method", "horizon"), [("tree", 300), ("toeplitz", 300), ("blt", 300), ("blt", 5000)]
)
def test_gaussian_mechanisms_read_totals_back(tmp_path: Path, method: str, horizon: int) -> None:
    """Without noise the estimates are the totals, up to the rounding of C and of the buffers."""
    counter = sf.Counter(horizon, method=method, by="kind")  # type: ignore[arg-type]
    with (
        sf.Publisher(source(), budget=sf.ZCDP("1")) as publisher,
        override(Scripted()),
        publisher.open(counter, rho="0.1", key="k") as stream,
    ):
        found = np.array([stream.push({"a": i % 7, "b": 1}).value for i in range(200)])
    truth = np.stack([np.cumsum(np.arange(200) % 7), np.arange(1, 201), np.zeros(200)], axis=1)
    assert np.allclose(found, truth, atol=1e-3)


def test_the_horizon_and_the_order_of_events(publisher: sf.Publisher) -> None:
    with publisher.open(sf.Counter(3), epsilon="1", key="k") as stream:
        stream.push(1, event=9)
        stream.push(1, event=10)
        with pytest.raises(sf.UsageError, match='late="count"'):
            stream.push(1, event=8)
        last = stream.push(1, event=11)
        with pytest.raises(sf.UsageError, match="another key"):
            stream.push(1, event=12)
        assert stream.push(1, event=11) == last
        assert stream.remaining == 0
    with pytest.raises(sf.UsageError, match="closed"):
        stream.push(1)
    with publisher.open(sf.Counter(3, late="count"), epsilon="1", key="late") as stream:
        assert [stream.push(1, event=event).step for event in ("b", "a", "b")] == [1, 2, 1]


def test_refusals_spend_nothing(publisher: sf.Publisher) -> None:
    counter = sf.Counter(5)
    with pytest.raises(sf.BudgetExceeded):
        publisher.open(counter, epsilon="4", key="k")
    for method in ("toeplitz", "blt"):
        with pytest.raises(sf.Infeasible):
            publisher.open(sf.Counter(5, method=method), epsilon="1", key="k")  # type: ignore[arg-type]
    with pytest.raises(sf.Infeasible):
        publisher.open(sf.Counter(None, method="blt"), epsilon="1", delta="1e-6")
    with pytest.raises(sf.UsageError, match="no axis of labels"):
        publisher.open(sf.Counter(5, by="day"), epsilon="1")
    with pytest.raises(sf.UsageError, match=r"publisher\.open"):
        publisher.release(counter, epsilon="1")  # type: ignore[call-overload]
    with pytest.raises(sf.UsageError, match="only a Counter"):
        publisher.open(sf.Histogram("day"), epsilon="1")  # type: ignore[arg-type]
    assert publisher.remaining == 3
    publisher.open(counter, epsilon="1", key="k")
    with pytest.raises(sf.UsageError, match="another question"):
        publisher.open(counter, epsilon="0.5", key="k")
    with pytest.raises(sf.UsageError, match="another question"):
        publisher.open(sf.Counter(6), epsilon="1", key="k")
    assert publisher.remaining == 2


def test_there_is_no_stream_before_its_charge(
    publisher: sf.Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream comes from the ledger only; the transaction that charges stores its state."""
    ledger = publisher.ledger

    def fails(*_: object, **__: object) -> None:
        raise sf.LedgerError("a charge", "the disk is gone", "Mend it")

    monkeypatch.setattr(ledger, "stream", fails)
    with pytest.raises(sf.LedgerError):
        publisher.open(sf.Counter(5), epsilon="1", key="k")
    with pytest.raises(TypeError):
        Stream()  # type: ignore[call-arg]


def test_a_step_that_fails_takes_nothing_and_says_nothing(
    publisher: sf.Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publisher.open(sf.Counter(5), epsilon="1", key="k") as stream:

        def fails(*_: object) -> None:
            raise ValueError("918273645")

        monkeypatch.setattr(type(stream._mechanism), "step", fails)
        assert not overheard(918273645, lambda: stream.push(918273645))
        with pytest.raises(sf.InternalError, match="Please report this line") as fault:
            stream.push(1)
        assert fault.value.__context__ is None
        monkeypatch.undo()
        assert stream.push(1).step == 1


def test_nothing_true_is_to_be_seen(publisher: sf.Publisher) -> None:
    canary = 918_273_645
    with publisher.open(
        sf.Counter(5, value=sf.Interval(0, 10**9, step=1)), epsilon="0.001", key="k"
    ) as stream:
        total = stream.push(float(canary), event="one")
        assert not sightings(canary, total, stream, stream.history(), stream._steps)


def test_noise_from_a_public_seed_is_stamped(publisher: sf.Publisher) -> None:
    with deterministic(3), publisher.open(sf.Counter(5), epsilon="1", key="k") as stream:
        stream.push(1)
        assert not stream.history().guarantee.private
    with pytest.raises(sf.UsageError, match="another question"):
        publisher.open(sf.Counter(5), epsilon="1", key="k")


def test_measures(tmp_path: Path) -> None:
    counter = sf.Counter(365)
    with sf.Publisher(source(), budget=sf.ApproxDP("2", "1e-5")) as publisher:
        with publisher.open(counter, epsilon="0.1", delta="1e-12", key="small delta") as stream:
            release = stream.history()
            assert isinstance(release.guarantee.measure, sf.PureDP), (
                "there a Laplace tree is better, and needs no delta"
            )
        assert publisher.remaining == (Fraction(19, 10), Fraction(1, 10**5))
        with publisher.open(counter, epsilon="1", delta="1e-6", key="delta") as stream:
            assert isinstance(stream.history().guarantee.measure, sf.ApproxDP)
        assert publisher.remaining == (Fraction(9, 10), Fraction(9, 10**6))
    with sf.Publisher(source(), budget=sf.ZCDP("1")) as publisher:
        publisher.open(sf.Counter(None), rho="0.5", key="rho without a horizon")
        assert publisher.remaining == Fraction(1, 2)
        publisher.open(sf.Counter(9), epsilon="0.5", key="epsilon")
        assert publisher.remaining == Fraction(3, 8)


def test_a_state_that_was_put_back_or_edited_is_refused(
    publisher: sf.Publisher, tmp_path: Path
) -> None:
    with publisher.open(sf.Counter(9), epsilon="1", key="k") as stream:
        stream.push(1)
        before = (
            sqlite3.connect(tmp_path / "b.db.secrets")
            .execute("SELECT state FROM streams")
            .fetchone()[0]
        )
        stream.push(1)
    with sqlite3.connect(tmp_path / "b.db.secrets") as db:
        db.execute("DROP TRIGGER streams_forward")
        db.execute("UPDATE streams SET state = ?", (before,))
    db.close()
    with (
        publisher.open(sf.Counter(9), epsilon="1", key="k") as stream,
        pytest.raises(sf.LedgerError, match="was edited"),
    ):
        stream.push(1)


def test_the_state_holds_the_total_and_belongs_to_its_owner(
    publisher: sf.Publisher, tmp_path: Path
) -> None:
    """What the documents say of the state at rest.

    It is secret, so the file is its owner's only.
    """
    with publisher.open(sf.Counter(9), epsilon="1", key="k") as stream:
        stream.push(918_273)
    secrets = tmp_path / "b.db.secrets"
    assert secrets.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(secrets)) as db:
        _, state = msgspec.json.decode(db.execute("SELECT state FROM streams").fetchone()[0])
    assert state["totals"] == [918_273]
    with open_ledger(tmp_path / "b.db") as ledger:
        assert not sightings(918_273, *ledger.log())


def test_no_object_keeps_what_was_pushed(publisher: sf.Publisher) -> None:
    """Between two pushes the true total rests in the ledger only."""
    with publisher.open(sf.Counter(9), epsilon="0.000001", key="k") as stream:
        stream.push(918_273_645)
        gc.collect()
        seen: set[int] = set()
        waiting: list[object] = [stream]
        while waiting:
            one = waiting.pop()
            if id(one) in seen or isinstance(
                one, type | ModuleType | FunctionType | FrameType | CodeType
            ):
                continue
            seen.add(id(one))
            assert not (isinstance(one, int) and one == 918_273_645)
            assert not (isinstance(one, bytes | str) and "918273645" in str(one))
            waiting += gc.get_referents(one)
    assert len(seen) > 100


YEAR = sf.Calendar("2013-01-01", "2013-01-06")


def test_every_step_of_a_calendar_is_published(publisher: sf.Publisher, tmp_path: Path) -> None:
    with override(Scripted()), publisher.open(sf.Counter(YEAR), epsilon="0.01", key="k") as stream:
        assert stream.push(2, event="2013-01-01T07:30").step == 1
        total = stream.push(5, event=dt.date(2013, 1, 4))
        assert (total.step, total.event, total.value) == (4, "2013-01-04", 7)
        assert stream.push(99, event="2013-01-02") == list(stream)[1], (
            "a step that is published takes no more rows"
        )
        assert stream.push(1).event == "2013-01-05"
        for outside in ("2012-12-31", "2013-01-07", "rubbish", 3):
            with pytest.raises(sf.UsageError, match="none of the 6 steps"):
                stream.push(1, event=outside)
        assert [total.event for total in stream.advance()] == ["2013-01-06"]
        assert stream.advance() == []
        with pytest.raises(sf.UsageError, match="none of the 6 steps"):
            stream.push(1)
        release = stream.history()
    assert release.values.tolist() == [2, 2, 2, 7, 8, 8]
    assert release.events == tuple(YEAR.name(place) for place in range(6))
    assert sf.load(release.save(tmp_path / "r.json")) == release
    assert publisher.ledger.verify().ok
    with (
        publisher.open(sf.Counter(6), epsilon="0.01", key="none") as stream,
        pytest.raises(sf.UsageError, match="no calendar"),
    ):
        stream.advance()


def test_a_calendar_shows_the_same_steps_whoever_is_in_the_data(publisher: sf.Publisher) -> None:
    """Two neighbours, one with a row on a day that has no other.

    The published steps are the same, and so is every name.
    """
    shown = []
    for name, days in (("without", [1, 6]), ("with", [1, 3, 6])):
        with publisher.open(sf.Counter(YEAR), epsilon="0.01", key=name) as stream:
            for day in days:
                stream.push(1, event=dt.date(2013, 1, day))
            stream.advance()
            shown.append(stream.history().events)
    assert shown[0] == shown[1]


def test_two_holders_of_a_calendar(publisher: sf.Publisher, tmp_path: Path) -> None:
    with (
        sf.Publisher(source(), ledger=tmp_path / "b.db", account="a") as other,
        override(Scripted()),
    ):
        one = publisher.open(sf.Counter(YEAR), epsilon="0.01", key="k")
        two = other.open(sf.Counter(YEAR), epsilon="0.01", key="k")
        one.push(1, event="2013-01-03")
        assert two.push(2, event="2013-01-02").value == 0, "it was published by the other"
        assert two.push(2, event="2013-01-05").value == 3
        assert one.push(4).event == "2013-01-06"
        assert one.history().values.tolist() == [0, 0, 1, 1, 3, 7]
        assert two.advance() == []


def test_two_sources_do_not_share_a_stream_unseen(tmp_path: Path) -> None:
    """Rows of both would be added up, and the receipt would name the first."""
    named = {
        name: sf.source(np.empty((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name=name)
        for name in ("north", "south")
    }
    with open_ledger(tmp_path / "b.db") as ledger:
        ledger.open_account("a", "pure", (10**9, 0))
        with sf.Publisher(named["north"], ledger=ledger, account="a").open(
            sf.Counter(9), epsilon="0.5", key="k"
        ) as stream:
            stream.push(1)
        ledger.open_account("b", "pure", (10**9, 0))
        with pytest.raises(sf.UsageError, match="data set 'north'"):
            sf.Publisher(named["south"], ledger=ledger, account="a")
    unnamed = [tmp_path / name for name in ("north.csv", "south.csv")]
    for path in unnamed:
        path.write_text("x\n")
    north, south = (sf.source(path, sf.Domain(x=sf.Interval(0, 1))) for path in unnamed)
    with sf.Publisher(north, ledger=tmp_path / "c.db", account="a", budget="1") as publisher:
        publisher.open(sf.Counter(9), epsilon="0.5", key="k")
    with sf.Publisher(south, ledger=tmp_path / "c.db", account="a") as publisher:
        with pytest.raises(sf.UsageError, match="another question, cost, unit or source"):
            publisher.open(sf.Counter(9), epsilon="0.5", key="k")
        assert publisher.remaining == Fraction(1, 2)
