"""What can be asked: a frozen value that previews and answers itself."""

from __future__ import annotations

import math
import unicodedata
from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeAlias, TypeVar

import msgspec

from sfumato.answers.captions import LONGEST, Captions
from sfumato.answers.counts import Counts, Needs
from sfumato.answers.preview import Preview
from sfumato.answers.release import Release
from sfumato.basics import ExplainedStruct, from_bytes, to_bytes
from sfumato.domain import Domain, Lattice
from sfumato.errors import UsageError, shown
from sfumato.privacy import (
    EXACT,
    CentralMeasure,
    Event,
    Guarantee,
    Proof,
    Unit,
    assumptions_of,
    fill_docstring,
    worst_event,
)
from sfumato.random.bits import Bits

R_co = TypeVar("R_co", bound=Release, covariant=True)


class Captioned(ExplainedStruct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A question that carries words for people.

    Attributes
    ----------
    heading : str or None
        The title of its answer for people, such as "Age of passengers".
    measured_in : str, mapping or None
        The unit of measure of its values, such as "minutes"; or units by axis.
    label_names : mapping or None
        Names of labels for people, such as {"WN": "Southwest"}.
    """

    heading: str | msgspec.UnsetType | None = msgspec.UNSET
    measured_in: str | Mapping[str, str] | msgspec.UnsetType | None = msgspec.UNSET
    label_names: Mapping[str, str] | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        if isinstance(self.measured_in, Mapping):
            msgspec.structs.force_setattr(
                self, "measured_in", _public_texts("measured_in", self.measured_in)
            )
        elif self.measured_in:
            _public_text("measured_in", self.measured_in)
        if self.heading:
            _public_text("heading", self.heading)
        if self.label_names:
            msgspec.structs.force_setattr(
                self, "label_names", _public_texts("label_names", self.label_names)
            )

    @property
    def captions(self) -> Captions | None:
        """The words for people, if there are any."""
        if not (self.heading or self.measured_in or self.label_names):
            return None
        return Captions(self.heading or "", self.measured_in or "", self.label_names or {})

    def uncaptioned(self) -> Self:
        """The same question without words for people: what is charged, and stored."""
        bare = {"heading", "measured_in", "label_names"}
        if all(getattr(self, name) is msgspec.UNSET for name in bare):
            return self
        return msgspec.structs.replace(self, **dict.fromkeys(bare, msgspec.UNSET))


def _public_texts(option: str, given: object) -> Mapping[str, str]:
    """Check a mapping of texts; labels that are numbers are named by their digits."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{option} of type {type(given).__name__}",
            "it is no mapping",
            'Write label_names={"WN": "Southwest"}',
        )
    for name, text in given.items():
        is_label = isinstance(name, str) or (isinstance(name, int) and abs(name) < 2**64)
        if not is_label:
            raise UsageError(
                option,
                "it names what is neither a text nor an integer of 64 bits",
                "Name axes or labels of the domain",
            )
        _public_text(option, text)
    return {str(name): text for name, text in given.items()}


def _public_text(option: str, text: object) -> None:
    """Refuse what is not a short text of one line."""
    if not isinstance(text, str) or not text:
        raise UsageError(
            f"{option} = {shown(text)}",
            "it is a text that is not empty",
            "Give a text, or leave it out",
        )
    if len(text) > LONGEST:
        raise UsageError(option, f"it is longer than {LONGEST} characters", "Give a shorter text")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UsageError(
            option, "it holds a control character", "Use letters, digits, spaces and signs"
        )


class Question(Captioned, Generic[R_co], frozen=True, forbid_unknown_fields=True):
    """A frozen value that names what it needs, previews itself without data, and answers itself.

    ``Question[HistogramRelease]`` is a question whose answer is a ``HistogramRelease``.

    A subclass is a frozen msgspec Struct with a ``tag`` of its own, which names it in TOML and
    JSON, and ``forbid_unknown_fields=True``. Everything that decides its answer, data and noise
    aside, is a field. It implements what raises ``NotImplementedError`` here, and is made known by
    ``sfumato.answers.registry.register``. docs/extending.md has a worked example.

    Each question takes ``heading``, ``measured_in`` and ``label_names`` by keyword: words for
    people, which change nothing about the answer and its price.

    Attributes
    ----------
    heading : str or None
        The title of its answer for people, such as "Age of passengers".
    measured_in : str, mapping or None
        The unit of measure of its values, such as "minutes"; or units by axis.
    label_names : mapping or None
        Names of labels for people, such as {"WN": "Southwest"}.
    proof : Proof
        Why the answer keeps its promise. A line ``{proof}`` in the docstring of the subclass is
        replaced by this text, so that it is written once.
    limits_by_cell : bool
        Whether it may be asked under limits that hold on the cells of one lattice alone (see
        ``privacy.unit``): it counts on one lattice, and takes its sensitivity from the unit.
    examples : tuple of Question
        Small questions of this kind over one numeric axis named "x", with bounds 0 and 3 and step
        1: the contract tests and the audit ask them.

    >>> import sfumato as sf
    >>> question = sf.Histogram("age", bins=4, heading="Age of patients")
    >>> isinstance(question, sf.Question), question.heading
    (True, 'Age of patients')
    >>> question.needs(sf.Domain(age=sf.Interval(0, 100))).lattice.shape
    (4,)
    """

    proof: ClassVar[Proof]
    limits_by_cell: ClassVar[bool] = False
    examples: ClassVar[tuple[Question[Release], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fill_docstring(cls)

    def __hash__(self) -> int:
        # Equal questions have equal titles. A hash of the fields would refuse those that hold a
        # dict, such as bins by axis, and a plan's accuracies are given by question.
        return hash((type(self), self.title))

    @property
    def title(self) -> str:
        """The question in a few words."""
        raise NotImplementedError

    def as_in_files(self) -> Self:
        """The same question as a file gives it back.

        There 4 is 4.0 where a field is a float, and a list is a tuple. So a question and its stored
        form are equal.
        """
        if not _finite(list(msgspec.structs.asdict(self).values())):
            raise UsageError(
                self.title,
                "a number in it is not finite, and no file can hold it",
                "Give finite numbers",
            )
        return from_bytes(to_bytes(self), type(self))

    def canonical(self, domain: Domain) -> Self:
        """One form for all ways to write the same question: a field ``axes`` holds their names."""
        fields = msgspec.structs.asdict(self)
        if "axes" not in fields:
            return self
        return msgspec.structs.replace(self, axes=domain.select(fields["axes"]))

    def asks(self, domain: Domain) -> object:
        """What tells the question from others, however it is written.

        Two questions that ask the same are paid for once: the second is given the first one's
        stored answer. Unless a subclass says otherwise, it is the canonical form.
        """
        return self.canonical(domain)

    @property
    def layout(self) -> tuple[str, ...]:
        """The axes along which the answer is laid out, where their order is but a wish.

        A stored answer in another order is then given in this one (``Release.arranged``).
        """
        return ()

    def needs(self, domain: Domain) -> Needs:
        """Name what is to be counted, from public things only.

        Raises
        ------
        UsageError
            If the question does not fit the domain.
        """
        raise NotImplementedError

    def needs_at(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Needs:
        """Name what is to be counted to answer at a cost; as it stands, the same at every cost.

        A question that adds values up overrides it, if the cost decides how finely a value is
        rounded: a value is rounded before it is added up, so this has to be known before counting.
        ``needs`` then names the finest form.

        Raises
        ------
        UsageError
            If the question does not fit the domain, or cannot be answered at the cost.
        """
        del unit, cost
        return self.needs(domain)

    def counts_again(self, domain: Domain) -> bool:
        """Whether the answer may count the rows once more, as noisy counts turn out.

        As it stands, it does not. A table that can be read once is refused otherwise.
        """
        del domain
        return False

    def shown_lattice(self, domain: Domain) -> Lattice:
        """The axes of the answer, whose labels ``label_names`` may name.

        As it stands, those that are counted. A question that adds up cells to coarser ones, such as
        regions of municipalities, overrides it.
        """
        return self.needs(domain).lattice

    def require_unit(self, unit: Unit) -> None:
        """Refuse limits by cell if they would not hold for the answer; called before the charge.

        Raises
        ------
        UsageError
            If the unit has such limits, and the question counts on several lattices.
        """
        if unit.by_cell and not self.limits_by_cell:
            raise UsageError(
                f"{self.title} under limits by cell",
                "these hold on the cells of one table, and it counts on coarser or finer ones too",
                "Give the source rows_per_person alone",
            )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the answer would be at this cost, and what of the cost it would spend.

        Touches no data. ``rows`` is the custodian's own public guess of the number of rows.
        """
        raise NotImplementedError

    def event(self, domain: Domain, unit: Unit, cost: CentralMeasure) -> Event:
        """State what an answer at this cost draws: the law that an account by curves counts.

        As it stands, the worst of all that the cost allows. A question that knows the law of all
        its noise overrides it, and many such answers then cost less together. Touches no data.
        """
        return worst_event(self.preview(domain, unit, cost).cost)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> R_co:
        """Answer from counts, spending exactly ``cost``.

        Nothing about the true counts may decide anything but the distribution of the noisy numbers
        in the release. All noise is drawn from ``noise``, through ``sfumato.mechanisms``.
        """
        raise NotImplementedError

    def promise(
        self,
        cost: CentralMeasure,
        unit: Unit,
        mechanism: str,
        noise: Bits,
        *,
        proof: Proof | None = None,
        slack: str = EXACT,
    ) -> Guarantee:
        """State what an answer at this cost promises, and what it assumes.

        Noise from a public seed promises nothing.

        Parameters
        ----------
        cost : PureDP, ApproxDP or ZCDP
            What was spent.
        unit : Unit
        mechanism : str
            What adds the randomness, in words.
        noise : Bits
            Where it came from.
        proof : Proof or None
            None: that of the class.
        slack : str
            What finite arithmetic adds.
        """
        why = self.proof if proof is None else proof
        return Guarantee(cost, unit, mechanism, why, assumptions_of(unit), slack, noise.private)


def _finite(value: object) -> bool:
    """Whether a field holds finite numbers only; JSON would write others as null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_finite, value))


if TYPE_CHECKING:
    AnyQuestion: TypeAlias = Question[Release]
else:

    class AnyQuestion(ABC):  # noqa: B024 (it stands for others, and has no methods)
        """Any question that is registered: what a field that holds one declares.

        A field is decoded by what it declares, and ``Question`` itself has no fields.
        """

    AnyQuestion.register(Question)
