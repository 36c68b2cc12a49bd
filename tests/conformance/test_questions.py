"""Every registered question and release keeps the contract, as does one from outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count as counting
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import pytest

import sfumato as sf
from conformance import question_contract
from sfumato.answers import registry
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.answers.question import AnyQuestion, Question
from sfumato.answers.release import CountsRelease, Release
from sfumato.audit.runs import Rescanned, count
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.publishing.counting import ReleaseCounts
from sfumato.questions.counters.release import CounterRelease
from sfumato.random import Bits, PublicSeed, override

EXAMPLES = [example for kind in registry.questions() for example in kind.examples]
answered = question_contract.answered


def named(thing: object) -> str:
    return thing.__name__ if callable(thing) else type(thing).__name__


@pytest.mark.parametrize("kind", registry.questions(), ids=named)
def test_every_kind_has_examples(kind: type[AnyQuestion]) -> None:
    assert kind.examples
    assert all(type(example) is kind for example in kind.examples)


@pytest.mark.parametrize("clause", question_contract.QUESTIONS, ids=named)
@pytest.mark.parametrize("question", EXAMPLES, ids=named)
def test_a_question(question: AnyQuestion, clause: Callable[[AnyQuestion], None]) -> None:
    clause(question)


@pytest.mark.parametrize("clause", question_contract.RELEASES, ids=named)
@pytest.mark.parametrize("question", EXAMPLES, ids=named)
def test_an_answer(question: AnyQuestion, clause: Callable[[Release], None]) -> None:
    clause(answered(question))


def test_counts_are_audited_exactly() -> None:
    """The exact audit is not passed by default: these questions must be within its reach."""
    for kind in (sf.Histogram, sf.UniformPartitioner, sf.BinaryPartitioner):
        assert question_contract.is_additive(kind.examples[0])


@cache
def running_total() -> CounterRelease:
    data = sf.source(np.zeros((1, 1)), question_contract.LINE, name="contract")
    with override(PublicSeed(1)), sf.Publisher(data, budget="1") as publisher:
        stream = publisher.open(sf.Counter(4), epsilon="1", key="contract")
        stream.push(3)
        stream.push(1)
        return stream.history()


@pytest.mark.parametrize("clause", question_contract.RELEASES, ids=named)
def test_running_totals(clause: Callable[[Release], None]) -> None:
    clause(running_total())


@pytest.mark.parametrize("kind", registry.releases(), ids=named)
def test_every_kind_of_release_has_its_forms(kind: type[Release]) -> None:
    answers = (answered(example) for example in EXAMPLES)
    release = next((answer for answer in answers if isinstance(answer, kind)), running_total())
    assert type(release) is kind
    question_contract.has_forms(release)


def test_every_kind_of_release_is_among_those_asked() -> None:
    asked = {type(answered(question)) for question in EXAMPLES}
    assert asked | {CounterRelease} == set(registry.releases())


@pytest.mark.parametrize("room", ["reports", "charts", "risk", "audit", "answers"])
def test_nobody_looks_for_attributes_that_no_base_declares(room: str) -> None:
    folder = Path(inspect.getfile(sf)).parent / room
    assert folder.is_dir()
    sniffing = (
        "hasattr(release",
        "getattr(release",
        "hasattr(preview",
        "getattr(preview",
        "NotImplementedError:",
        "cast(Any",
    )
    # A disclosure looks which fields of a form a release can fill.
    for path in {*folder.rglob("*.py")} - {*folder.glob("disclosure/*.py")}:
        assert not [word for word in sniffing if word in path.read_text("utf-8")], path


# --- what a question may ask of the data ----------------------------------------------------------

FINE, COARSE = (Lattice((GridAxis("x", 0.0, 3.0, cells),)) for cells in (6, 3))


def publishers(lattice: Lattice) -> Counts:
    return ReleaseCounts(
        count(question_contract.ROWS, lattice), partial(count, question_contract.ROWS)
    )


@pytest.mark.parametrize(
    "counted",
    [
        partial(count, question_contract.ROWS),
        partial(Rescanned, question_contract.ROWS),
        publishers,
    ],
)
@pytest.mark.parametrize(("own", "other"), [(FINE, FINE), (FINE, COARSE), (COARSE, FINE)])
def test_counts_are_of_the_same_rows(
    counted: Callable[[Lattice], Counts],
    own: Lattice,
    other: Lattice,
) -> None:
    counts = counted(own)
    assert counts.lattice == own
    assert counts.serves(own)
    assert counts.serves(COARSE)
    if not counts.serves(other):
        with pytest.raises(sf.InternalError):
            counts.on(other)
        return
    found = counts.on(other)
    assert found.lattice == other
    assert found.counts.tolist() == count(question_contract.ROWS, other).counts.tolist()


# --- one from outside -----------------------------------------------------------------------------


class TotalRelease(
    CountsRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-total-release",
    forbid_unknown_fields=True,
):
    """How many rows there are: nothing but what its base asks for."""

    question: Total
    counts: np.ndarray
    law: Law

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def noise(self) -> Law:
        return self.law


class Total(Question[TotalRelease], frozen=True, tag="contract-total", forbid_unknown_fields=True):
    """How many rows are there?"""

    column: str = "x"

    proof: ClassVar[Proof] = Proof(
        sensitivity="L1 = rows_per_person.",
        because="it is a count.",
        not_covered="time.",
        source="folklore.",
    )

    @property
    def title(self) -> str:
        return "Number of rows"

    def needs(self, domain: sf.Domain) -> Needs:
        interval = domain.intervals(self.column)[self.column]
        return Needs(Lattice((grid_axis(self.column, interval, 1),)), 1)

    def preview(
        self,
        domain: sf.Domain,
        unit: Unit,
        cost: CentralMeasure,
        rows: int | None = None,
    ) -> Preview:
        return CountsPreview(self.title, cost, unit, 1, count_law(cost, unit), rows)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> TotalRelease:
        law = count_law(cost, unit)
        noisy = add_noise(counts.on(counts.lattice).counts, law, noise)
        promise = self.promise(cost, unit, str(law), noise)
        return TotalRelease(question=self, counts=noisy, law=law, guarantee=promise)


@pytest.fixture
def register(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[type[AnyQuestion]], AnyQuestion]]:
    """Registers a question for one test."""
    monkeypatch.setattr(registry, "_outside", {})

    def registered(kind: type[AnyQuestion]) -> AnyQuestion:
        return registry.register(kind)()

    yield registered
    monkeypatch.undo()
    registry._clear()


@pytest.mark.parametrize("clause", question_contract.QUESTIONS, ids=named)
def test_a_question_from_outside(clause: Callable[[AnyQuestion], None], register) -> None:
    clause(register(Total))


@pytest.mark.parametrize(
    "clause", [*question_contract.RELEASES, question_contract.has_forms], ids=named
)
def test_an_answer_from_outside(clause: Callable[[Release], None], register) -> None:
    clause(question_contract.answered(register(Total)))


class MeanRelease(TotalRelease, frozen=True, kw_only=True, eq=False, tag="contract-mean-release"):
    """Its values follow from its counts, and are no whole numbers."""

    @property
    def values(self) -> np.ndarray:
        return self.counts / 2

    numbers = Release.numbers


def test_an_answer_whose_numbers_nobody_knows_says_so() -> None:
    fields = msgspec.structs.asdict(question_contract.answered(Total()))
    with pytest.raises(sf.UsageError, match=r"numbers\(\)"):
        MeanRelease(**fields).numbers()


def test_it_is_gone_again() -> None:
    assert Total not in registry.questions()
    assert TotalRelease not in registry.releases()


# --- broken ones ----------------------------------------------------------------------------------

_calls = counting()


class Restless(Total, frozen=True, tag="contract-restless", forbid_unknown_fields=True):
    """Broken: asked twice, it needs other cells."""

    def needs(self, domain: sf.Domain) -> Needs:
        return Needs(Lattice((GridAxis("x", 0, 3, 1 + next(_calls) % 2),)), 3)


class Loud(Total, frozen=True, tag="contract-loud", forbid_unknown_fields=True):
    """Broken: it adds half the noise that its cost allows."""

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> TotalRelease:
        assert isinstance(cost, PureDP)
        release = super().answer(counts, unit, PureDP(2 * cost.epsilon), noise)
        promise = self.promise(cost, unit, "too little", noise)
        return msgspec.structs.replace(release, guarantee=promise)


class Boastful(Total, frozen=True, tag="contract-boastful", forbid_unknown_fields=True):
    """Broken: it foresees an accuracy that it does not have."""

    def preview(
        self,
        domain: sf.Domain,
        unit: Unit,
        cost: CentralMeasure,
        rows: int | None = None,
    ) -> Preview:
        assert isinstance(cost, PureDP)
        law = count_law(PureDP(3 * cost.epsilon), unit)
        return CountsPreview(self.title, cost, unit, 1, law, rows)


class Greedy(Total, frozen=True, tag="contract-greedy", forbid_unknown_fields=True):
    """Broken: it holds more numbers than it said."""

    def needs(self, domain: sf.Domain) -> Needs:
        return Needs(Lattice((GridAxis("x", 0, 3, 3),)), 1)


class OwnDice(Total, frozen=True, tag="contract-own-dice", forbid_unknown_fields=True):
    """Broken: its noise is its own, not that which it is given."""

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> TotalRelease:
        return super().answer(counts, unit, cost, PublicSeed(next(_calls)))


class NotWritten(Total, frozen=True, tag="contract-not-written", forbid_unknown_fields=True):
    """Broken: part of what is asked is not among its fields, so files lose it."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("broken_kind", "clause"),
    [
        (Restless, question_contract.needs_public_things_only),
        (Loud, question_contract.survives_the_exact_audit),
        (Loud, question_contract.previews_its_accuracy),
        (Boastful, question_contract.previews_its_accuracy),
        (Greedy, question_contract.holds_no_more_than_it_said),
        (OwnDice, question_contract.draws_from_the_noise_it_is_given),
        (NotWritten, question_contract.survives_serialization),
        (NotWritten, question_contract.is_a_value),
    ],
    ids=named,
)
def test_a_broken_question_is_caught(
    broken_kind: type[Total],
    clause: Callable[[AnyQuestion], None],
    register,
) -> None:
    with pytest.raises(AssertionError):
        clause(register(broken_kind))


class Crooked(
    TotalRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-crooked",
    forbid_unknown_fields=True,
):
    """Broken: its intervals have another shape than its values."""

    def interval(
        self,
        confidence: object = "0.95",
        simultaneous: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(2), np.ones(2)


class Upside(
    TotalRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-upside",
    forbid_unknown_fields=True,
):
    """Broken: its intervals end before they begin."""

    def interval(
        self,
        confidence: object = "0.95",
        simultaneous: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.values + 1, self.values - 1


class Narrower(
    TotalRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-narrower",
    forbid_unknown_fields=True,
):
    """Broken: all at once is narrower than each."""

    def accuracy(self, confidence: object = "0.95", simultaneous: bool = False) -> np.ndarray:
        return np.full(1, 1 if simultaneous else 2)


class Restamped(
    TotalRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-restamped",
    forbid_unknown_fields=True,
):
    """Broken: it is written otherwise whenever it is made anew."""

    stamp: int = 0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "stamp", next(_calls))


class Restamping(
    Question[Restamped],
    frozen=True,
    tag="contract-restamping",
    forbid_unknown_fields=True,
):
    """The question that has such answers."""

    column: str = "x"

    proof: ClassVar[Proof] = Total.proof
    title = Total.title
    needs = Total.needs
    preview = Total.preview
    answer = Total.answer


class Torn(
    TotalRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="contract-torn",
    forbid_unknown_fields=True,
):
    """Broken: its numbers are not its counts."""

    def numbers(self) -> tuple[int, ...]:
        return (0,)


@pytest.mark.parametrize(
    ("broken_kind", "clause"),
    [
        (Crooked, question_contract.means_what_its_intervals_say),
        (Upside, question_contract.means_what_its_intervals_say),
        (Narrower, question_contract.means_what_its_intervals_say),
        (Restamped, question_contract.comes_back_bit_for_bit),
        (Torn, question_contract.shows_its_numbers),
    ],
    ids=named,
)
def test_a_broken_release_is_caught(
    broken_kind: type[TotalRelease],
    clause: Callable[[Release], None],
    register,
) -> None:
    register(Total)
    register(Restamping)
    whole = question_contract.answered(Total())
    assert isinstance(whole, TotalRelease)
    promise = whole.guarantee
    broken = broken_kind(
        question=Total(), counts=whole.counts + 5, law=whole.law, guarantee=promise
    )
    with pytest.raises(AssertionError):
        clause(broken)
