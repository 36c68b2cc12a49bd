"""The epsilon for a disclosure risk, with what a reader must know before quoting it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from sfumato.answers import drawn, drawn_panels
from sfumato.basics import Array, Exactly, ExplainedStruct, card, facts, line, positive, rounded
from sfumato.errors import Infeasible, UsageError, explained, explained_methods, nearest
from sfumato.privacy import LARGE
from sfumato.risk.bounds import Prior, loose_curve, loose_parts, risk_at, tight_parts
from sfumato.risk.distinct_answers import (
    Answers,
    checked_prior,
    loose_epsilon,
    read_risk,
    tight_epsilon,
)
from sfumato.risk.membership import Laplace, advantage
from sfumato.risk.sensitivity import least_sensitivity, unbounded
from sfumato.risk.universe import (
    Column,
    Pick,
    Query,
    QueryName,
    Universe,
    at_least_zero,
    by_column,
    log_choose,
    parse,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Epsilons: TypeAlias = "Exactly | Sequence[Exactly] | Array | None"

# The number of points of the curve, by the largest number of answers for which it holds.
MOST_EPSILONS = 10_000
POINTS = ((20_000, 121), (1_000_000, 25), (10**12, 9))


class WorstWorld(ExplainedStruct, frozen=True):
    """The world of which the adversary can be surest, named by its rank and never by its value.

    Attributes
    ----------
    rank, answers : int
        Its answer is the ``rank``-th of ``answers`` distinct ones, from the lowest.
    lacks : int or None
        For sums and means of all records but one: the rank of the record it lacks, from the lowest.

    >>> import sfumato as sf
    >>> sf.choose([1, 2, 3, 4], size=3, query="mean", risk="1/3").worst
    WorstWorld(rank=1, answers=4, lacks=4)
    """

    rank: int
    answers: int
    lacks: int | None = None

    def __str__(self) -> str:
        ends = {1: "the lowest", self.answers: "the highest"}
        rank = ends.get(self.rank, f"number {self.rank:,} from the lowest")
        text = f"the one whose answer is {rank} of {self.answers:,}"
        if self.lacks is None:
            return text
        return f"{text}; it lacks record {self.lacks:,} in ascending order"


@explained_methods
class Choice(ExplainedStruct, frozen=True, kw_only=True, tag="choice"):
    """The largest epsilon within a disclosure risk.

    Attributes
    ----------
    column : str or None
    query : str
    records, size : int
        The number of records in the universe, and in the published set.
    risk : float
    tight, loose : float or None
        Epsilon by either bound. None: there is no limit; ``tight`` is None also if ``exact`` is
        false.
    exact : bool
        False: there were too many worlds for the tight bound, and ``epsilon`` is by the loose one,
        which errs on the safe side.
    worst : WorstWorld or None
    epsilons, tight_curve, loose_curve : tuples of float
        The bounds along epsilon, for the picture. ``tight_curve`` is empty if ``exact`` is false.
    one_sided : bool
        True: the sensitivity over the universe could not be computed, and epsilon is for a lower
        bound of it.

    >>> import sfumato as sf
    >>> choice = sf.choose([1, 2, 3, 4], size=3, query="mean", risk="1/3")
    >>> round(choice.epsilon, 4), choice.exact
    (0.5251, True)
    >>> choice.worst
    WorstWorld(rank=1, answers=4, lacks=4)
    """

    column: str | None
    query: str
    records: int
    size: int
    risk: float
    tight: float | None
    loose: float | None
    exact: bool
    worst: WorstWorld | None
    epsilons: tuple[float, ...]
    tight_curve: tuple[float, ...]
    loose_curve: tuple[float, ...]
    one_sided: bool = False
    largest_prior: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def has_prior(self) -> bool:
        """Whether the worlds were given unequal beliefs beforehand."""
        return self.largest_prior is not msgspec.UNSET

    @property
    def subject(self) -> str:
        """What is published, in words."""
        subject = f"{self.query} of {self.column}" if self.column else self.query
        return f"{subject}, with the prior given" if self.has_prior else subject

    @property
    def epsilon(self) -> float:
        """The largest epsilon within the risk; infinity, if an exact answer would be."""
        chosen = self.tight if self.exact else self.loose
        return math.inf if chosen is None else chosen

    @property
    def upper_bound(self) -> float:
        """Epsilon by the loose bound, which is never above ``epsilon``."""
        return math.inf if self.loose is None else self.loose

    @property
    def quoted(self) -> str:
        """``epsilon`` in six digits, rounded down so that it satisfies the requirement, too."""
        return _down(self.epsilon)

    @property
    def quoted_loose(self) -> str:
        """``upper_bound`` in six digits, rounded down."""
        return _down(self.upper_bound)

    @property
    def advantage(self) -> float:
        """The membership advantage against Laplace noise at this epsilon."""
        if self.epsilon in (0, math.inf):
            return float(self.epsilon > 0)
        return advantage(Laplace(1 / self.epsilon))

    @property
    def worlds(self) -> int | float:
        """The number of possible data sets; infinity if it has more than 10,000 digits."""
        if log_choose(self.records, self.size) < 10_000 * math.log(10):
            return math.comb(self.records, self.size)
        return math.inf

    @property
    def caveats(self) -> tuple[str, ...]:
        """What must be said beside the number."""
        caveats = [_smallness(self)]
        if not self.exact:
            caveats.append(_LOOSE)
        if self.one_sided:
            caveats.append(_LEAST)
        return (*caveats, _AGAINST_PRIOR if self.has_prior else _AGAINST_ANY, _DEPENDS)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both bounds against epsilon on a matplotlib Axes, and return the Axes."""
        return drawn("risk.draw", self, ax)

    def __str__(self) -> str:
        lines = [self.decision, f"  {self.rests_on}"]
        if self.worst is not None:
            lines.append(f"  Worst world: {self.worst}.")
        lines += [f"  Note: {note}" for note in self.caveats]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            ("Epsilon", self.quoted),
            ("By the loose bound", self.quoted_loose),
            ("Limit on the belief", f"{self.risk:.6g}"),
            ("Records", f"{self.size:,} of {self.records:,} are published"),
        ]
        if self.worst is not None:
            rows.append(("Worst world", str(self.worst)))
        rows += [("Note", note) for note in self.caveats]
        return card(f"Choice of epsilon: {self.subject}", facts(rows), line(self.decision))

    @property
    def decision(self) -> str:
        """What to do with the number, in a sentence; an epsilon above 10 is not to be used."""
        within = f"the adversary's belief in each world within {self.risk:.6g}"
        start = f"Decision for one {self.subject}"
        if self.epsilon > LARGE:
            would_allow = f"would allow epsilon = {self.quoted}"
            limit = "allows any epsilon" if self.epsilon == math.inf else would_allow
            return (
                f"{start}: no epsilon from this method. It {limit}, and above {LARGE} epsilon "
                "protects hardly anyone: ask sf.window."
            )
        loose = (
            f" (by the loose bound {self.quoted_loose})" if self.exact else " by the loose bound"
        )
        return f"{start}: epsilon = {self.quoted} is the largest that keeps {within}{loose}."

    @property
    def rests_on(self) -> str:
        """What the number rests on, in a sentence."""
        return (
            f"It rests on: {self.size:,} of {self.records:,} records are published, which makes "
            f"{_worlds(self)} possible worlds; a belief of at most {self.risk:.6g} in each is "
            "safe; and the notes."
        )


@explained_methods
class Choices(ExplainedStruct, frozen=True, tag="choices"):
    """One choice per column, in the order of the frame; a mapping by name.

    >>> import pandas as pd
    >>> import sfumato as sf
    >>> frame = pd.DataFrame({"age": [31, 35, 64, 70], "stay": [2, 4, 9, 3]})
    >>> choices = sf.choose(frame, size=3, query="mean", risk="1/3")
    >>> list(choices), round(choices["age"].epsilon, 3)
    (['age', 'stay'], 0.604)
    """

    parts: tuple[Choice, ...]

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return [str(part.column) for part in self.parts]

    def values(self) -> list[Choice]:
        """Return the choice of each column."""
        return list(self.parts)

    def items(self) -> list[tuple[str, Choice]]:
        """Return the columns' names and choices."""
        return list(zip(self.keys(), self.parts, strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, column: str) -> Choice:
        choices = dict(self.items())
        if column not in choices:
            raise KeyError(f"column {column!r}: {nearest(str(column), choices)}")
        return choices[column]

    @property
    def epsilon(self) -> dict[str, float]:
        """The largest epsilon within the risk, by column."""
        return {name: part.epsilon for name, part in self.items()}

    @property
    def upper_bound(self) -> dict[str, float]:
        """Epsilon by the loose bound, by column."""
        return {name: part.upper_bound for name, part in self.items()}

    def plot(self, ax: Sequence[Axes] | None = None) -> Array:
        """Draw one panel per column, and return an ndarray of Axes.

        ``ax`` is a sequence of one Axes per column, or None.
        """
        return drawn_panels("risk.draw_panels", self.parts, ax)

    def __str__(self) -> str:
        return "\n".join(str(part) for part in self.parts)

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in self.parts)


@explained
def choose(
    universe: Universe,
    size: int,
    query: QueryName,
    risk: Exactly = 1 / 3,
    *,
    prior: Prior = None,
    epsilons: Epsilons = None,
) -> Choice | Choices:
    """Which epsilon keeps the risk of disclosure within a limit?

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
        All records that the adversary knows of.
    size : int
        The number of records in the published set, 1 to n - 1.
    query : "mean", "median", "sum", "count", "var", "std" or ("percentile", q)
    risk : number in (0, 1)
        The largest belief in any one possible world that an adversary may reach.
    prior : array of shape (worlds,), or a dict of them by column, optional
        What the adversary believes beforehand, in the order of ``itertools.combinations``. None:
        every world is as likely.
    epsilons : number or increasing sequence of numbers, optional
        Of the curves: the largest one, or all of them. None: up to four times the epsilon found.

    Returns
    -------
    Choice, or Choices by column

    Raises
    ------
    Infeasible
        If the risk is below what the adversary believes beforehand.

    Source: Lee and Clifton 2011.

    >>> round(choose([1, 2, 3, 4], 3, "mean").epsilon, 9)
    0.525149687
    """
    parsed = parse(query)
    limit = read_risk(risk)
    grid = None if epsilons is None else read_epsilons(epsilons)

    def of_column(column: Column, pick: Pick) -> Choice:
        return _choice_of(column, parsed, limit, pick(prior), grid)

    choices = by_column(universe, size, of_column)
    if not isinstance(choices, dict):
        return choices
    return Choices(
        tuple(msgspec.structs.replace(part, column=name) for name, part in choices.items())
    )


def _choice_of(
    column: Column, query: Query, risk: float, prior: np.typing.ArrayLike | None, grid: Array | None
) -> Choice:
    """Choose for one column; its curves are over the epsilons of the grid, if there is one."""
    given = _one_sided(column, query)
    odds, slope = loose_parts(column, query, prior, given)
    loose = loose_epsilon(odds, slope, risk)
    answers, scale = _counted_worlds(column, query, prior, given)
    tight = math.inf if answers is None else tight_epsilon(answers, scale, risk)
    epsilons = grid
    if epsilons is None:
        known = [level for level in (tight, loose) if math.isfinite(level)]
        epsilons = np.linspace(0, 4 * max(known, default=1.25) or 1.0, _points(answers))
    curve: tuple[float, ...] = ()
    worst = None
    if answers is not None:
        curve = tuple(risk_at(answers, scale, level) for level in epsilons.tolist())
        rate = tight / scale if scale > 0 else 0.0
        worst = _worst(column, query, answers, rate)
    return Choice(
        column=None,
        query=str(query),
        records=column.n,
        size=column.size,
        risk=risk,
        tight=None if answers is None else _finite(tight),
        loose=_finite(loose),
        exact=answers is not None,
        one_sided=given is not None,
        worst=worst,
        epsilons=tuple(epsilons.tolist()),
        tight_curve=curve,
        loose_curve=tuple(loose_curve(odds, slope, epsilons).tolist()),
        largest_prior=msgspec.UNSET if prior is None else float(checked_prior(prior, column).max()),
    )


def _counted_worlds(
    column: Column, query: Query, prior: np.typing.ArrayLike | None, sensitivity: float | None
) -> tuple[Answers | None, float]:
    """Return the distinct answers, and the sensitivity; None where there are too many worlds."""
    try:
        return tight_parts(column, query, prior, sensitivity)
    except Infeasible:
        return None, 0.0


def _one_sided(column: Column, query: Query) -> float | None:
    """Return a lower bound of a sensitivity that cannot be computed; None if it can be.

    It stands for less noise than is added, under which beliefs can only look larger.
    """
    if query.name != "std" or column.size == 1:
        return None
    try:
        unbounded(column, query, 1)
    except Infeasible:
        return least_sensitivity(column.centred, column.size, query)
    return None


def read_epsilons(given: Exactly | Sequence[Exactly] | Array) -> Array:
    """Read the epsilons of a picture.

    >>> read_epsilons([0, 0.5, 1])
    array([0. , 0.5, 1. ])
    """
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        return np.linspace(0, float(positive(listed, "epsilons")), POINTS[0][1])
    grid = np.array([at_least_zero(epsilon, "epsilons") for epsilon in listed])
    if not 2 <= len(grid) <= MOST_EPSILONS or (np.diff(grid) <= 0).any():
        raise UsageError(
            f"a picture over {len(grid):,} epsilons",
            f"they must increase, and be 2 to {MOST_EPSILONS:,}",
            "Write epsilons=numpy.linspace(0, 5, 500), or epsilons=5",
        )
    return grid


def _points(answers: Answers | None) -> int:
    size = 0 if answers is None else len(answers.values)
    return next(points for most, points in POINTS if size <= most)


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _worst(column: Column, query: Query, answers: Answers, rate: float) -> WorstWorld | None:
    if len(answers.values) == 1:
        return None
    worst = answers.worst(rate) if math.isfinite(rate) else answers.at_infinity
    index = worst.at
    lacks = None
    if answers.log_top is None and column.leaves_one_out and query.name in ("sum", "mean"):
        # Worlds are counted here, so the answers below say how many records are larger.
        lacks = column.n - round(float(np.exp(answers.log_weight[:index]).sum()))
    return WorstWorld(index + 1, len(answers.values), lacks)


_LEAST = (
    "The sensitivity over this universe cannot be computed; epsilon is for a lower bound of it, "
    "which errs on the safe side if the noise follows the true one or a larger one."
)
_LOOSE = (
    "Too many worlds for the tight bound: this is the loose one, which errs on the safe side; "
    "more may be allowed."
)
_NOISE = (
    "and Laplace noise of scale sensitivity / epsilon, with the sensitivity over this universe; a "
    "second release needs its own share."
)
_AGAINST_ANY = f"It holds for one release, an adversary to whom every world is as likely, {_NOISE}"
_AGAINST_PRIOR = f"It holds for one release, an adversary with the prior given, {_NOISE}"
_DEPENDS = (
    "Epsilon is computed from the universe: if that is not public, the chosen number tells "
    "something about it."
)


def _smallness(choice: Choice) -> str:
    start = (
        f"The bound protects small universes only: from {_worlds(choice)} worlds it lets a belief "
        f"grow from {_prior(choice)}"
    )
    end = "A membership test of one person"
    if choice.epsilon == math.inf:
        return (
            f"{start} to {choice.risk:.3g}, and here puts no limit on epsilon. {end} may then "
            "succeed always."
        )
    if choice.epsilon == 0:
        return f"{start} no further: only silence keeps the risk."
    gain = choice.advantage
    shown = f"{gain:.3g}" if gain < 0.999 else "more than 0.999"
    return f"{start} to {choice.risk:.3g}. {end} can reach an advantage of {shown} at this epsilon."


def _worlds(choice: Choice) -> str:
    logs = log_choose(choice.records, choice.size) / math.log(10)
    return f"{choice.worlds:,}" if logs < 9 else f"about 10^{logs:.0f}"


def _prior(choice: Choice) -> str:
    if choice.largest_prior is not msgspec.UNSET:
        return f"{choice.largest_prior:.3g}"
    logs = log_choose(choice.records, choice.size)
    return f"{math.exp(-logs):.3g}" if logs < 500 else f"10^-{logs / math.log(10):.0f}"


def _down(epsilon: float) -> str:
    return f"{epsilon:g}" if epsilon in (0, math.inf) else rounded(epsilon, 6, up=False)
