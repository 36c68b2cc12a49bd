"""The facts of a window: from the least accurate enough cost to the largest safe enough one."""

from __future__ import annotations

import msgspec

from sfumato.answers.accuracy import Kind, Within, kind_of
from sfumato.basics.numbers import rounded
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan
from sfumato.risk import Risk, Worlds


class Part(msgspec.Struct, frozen=True):
    """One question of a window.

    Attributes
    ----------
    question : str
    cells : int or None
        How many numbers it releases, at the floor.
    accuracy : Within
        What is requested.
    floor : PureDP, ApproxDP or ZCDP
        What it needs for that: its share of the plan's floor.
    at_ceiling, each_at_ceiling : float or None
        The half-width at the ceiling: as requested, and number by number. None: the question
        refuses that cost.
    half_widths : tuple of float or None
        Along ``Window.costs``.
    """

    question: str
    cells: int | None
    accuracy: Within
    floor: CentralMeasure
    at_ceiling: float | None
    each_at_ceiling: float | None
    half_widths: tuple[float | None, ...]


class Span(msgspec.Struct, frozen=True):
    """What was found out about a plan; ``Window`` says what each field is."""

    plan: Plan
    parts: tuple[Part, ...]
    unit: Unit
    risk: Risk
    worlds: Worlds | int | None
    floor_cost: CentralMeasure
    ceiling_cost: CentralMeasure
    risk_at_floor: float
    costs: tuple[float, ...]
    risks: tuple[float, ...]

    @property
    def kind(self) -> Kind:
        """The measure in which costs are counted."""
        return kind_of(self.floor_cost)

    @property
    def floor(self) -> float:
        """The least epsilon, or rho, that is accurate enough; its shortest decimal is exact."""
        return float(self.kind.level(self.floor_cost))

    @property
    def ceiling(self) -> float:
        """The largest epsilon, or rho, that is safe enough."""
        return float(self.kind.level(self.ceiling_cost))

    @property
    def ends(self) -> tuple[str, str]:
        """Floor and ceiling in four digits, rounded up and down: what is quoted is inside too."""
        floor, ceiling = map(self.kind.level, (self.floor_cost, self.ceiling_cost))
        return rounded(floor, 4, up=True), rounded(ceiling, 4, up=False)

    @property
    def feasible(self) -> bool:
        """Whether some cost is accurate enough and safe enough."""
        return self.kind.level(self.floor_cost) <= self.kind.level(self.ceiling_cost)
