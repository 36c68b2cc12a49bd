"""Charge first, count second, publish last."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.answers import registry
from sfumato.data import Source, count
from sfumato.domain.cube import Cube
from sfumato.ledger import Hold, open_ledger
from support import pages
from support.tally import Tally

POINTS = np.random.default_rng(5).random((500, 2))
DOMAIN = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))


def table(name: str | None = "points", **unit: object) -> Source:
    return sf.source(POINTS, DOMAIN, name=name, **unit)  # type: ignore[arg-type]


def test_beyond_the_budget_nothing_is_read_and_nothing_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "sfumato.publishing.counting.count", lambda *_, **__: pytest.fail("the data were read")
    )
    with sf.Publisher(table(), budget="1") as publisher:
        with pytest.raises(sf.BudgetExceeded) as refusal:
            publisher.release(sf.Histogram("x"), epsilon="1.5")
        assert (refusal.value.requested, refusal.value.remaining, refusal.value.account) == (
            Fraction(3, 2),
            1,
            "default",
        )
        assert publisher.remaining == 1


def test_the_charge_is_durable_before_the_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_first(*args: object, **named: object) -> list[Cube]:
        with open_ledger(tmp_path / "b.db") as ledger:
            assert ledger.account("a").spent == (250_000_000, 0)
        return count(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("sfumato.publishing.counting.count", look_first)
    with sf.Publisher(table(), ledger=tmp_path / "b.db", account="a", budget="1") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="0.25")


def test_a_failure_after_the_charge_publishes_nothing_and_the_key_resumes_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = sf.Histogram("x")
    with sf.Publisher(table(), budget="1") as publisher:
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.publishing.counting.count", lambda *_, **__: 1 / 0)
            with pytest.raises(
                sf.InternalError, match=r"ZeroDivisionError in test_answering\.py"
            ) as fault:
                publisher.release(question, epsilon="0.25")
            assert fault.value.__context__ is None
        assert publisher.remaining == Fraction(3, 4)
        assert publisher.release(question, epsilon="0.25").values.shape == (10,)
        assert publisher.remaining == Fraction(3, 4)


def test_an_answer_of_another_version_is_a_ledger_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with sf.Publisher(table(), budget="1") as publisher, monkeypatch.context() as patch:
        store = Hold.store
        patch.setattr(Hold, "store", lambda hold, payload: store(hold, b'[{"type":"old"}]'))
        with pytest.raises(sf.LedgerError, match="cannot read"):
            publisher.release(sf.Histogram("x"), epsilon="0.1", key="k")


def test_what_a_question_from_elsewhere_refuses_in_its_answer_is_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer sees true counts, and its refusal may quote them."""
    source = sf.source(np.full((8641, 1), 0.5), sf.Domain(x=sf.Interval(0, 1)), name="t")

    def answer(self, counts, unit, cost, noise):
        raise sf.UsageError(f"{counts.on(self.needs(source.domain).lattice).total}", "few", "Wait")

    with pages.outside(tmp_path), sf.Publisher(source, budget=3) as publisher:
        registry.register(Tally)
        with monkeypatch.context() as patch:
            patch.setattr(Tally, "answer", answer)
            with pytest.raises(sf.UsageError, match="the text is withheld") as refused:
                publisher.release(Tally("x"), epsilon=1, key="k")
        assert "8641" not in str(refused.value)
        assert "UsageError in test_answering.py" in str(refused.value)
        assert refused.value.__context__ is None
        assert "The charge stands" in "".join(refused.value.__notes__)
        # The library's own questions say what stands in the way.
        monkeypatch.setattr(sf.Histogram, "answer", answer)
        with pytest.raises(sf.UsageError, match="few"):
            publisher.release(sf.Histogram("x"), epsilon=1)


@pytest.mark.parametrize("fault", ["another promise", "no release"])
def test_an_answer_that_is_not_what_was_charged_is_not_stored(fault, monkeypatch):
    honest = sf.Histogram.answer

    def answer(self, counts, unit, cost, noise):
        if fault == "no release":
            return None
        found = honest(self, counts, unit, cost, noise)
        more = msgspec.structs.replace(found.guarantee, measure=sf.PureDP(2 * cost.epsilon))
        return msgspec.structs.replace(found, guarantee=more)

    source = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 1)), name="t")
    with sf.Publisher(source, budget=3) as publisher:
        with monkeypatch.context() as patch:
            patch.setattr(sf.Histogram, "answer", answer)
            with pytest.raises(sf.UsageError, match="Let ") as refused:
                publisher.release(sf.Histogram("x"), epsilon=1, key="k")
        assert "The charge stands" in "".join(refused.value.__notes__)
        assert publisher.release(
            sf.Histogram("x"), epsilon=1, key="k"
        ).guarantee.measure == sf.PureDP(1)
        assert publisher.remaining == 2
