"""``noise="bounded"``: counts that are never farther from the truth than a stated bound."""

from __future__ import annotations

from sfumato.answers.preview import CountsPreview
from sfumato.domain.lattice import Lattice
from sfumato.errors import UsageError
from sfumato.mechanisms.bounded_noise import TruncatedLaplace, bounded_law
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit

PROOF = Proof(
    sensitivity="L1 = rows_per_person (twice that under replace), of which all may be in one cell, "
    "unless rows per cell are limited. Where persons are counted, c: one in each of c cells.",
    because="an output that is possible with and without the person is at most e^epsilon times as "
    "likely with as without. All others, where the noise of some cell is among its largest values, "
    "have a probability of at most delta, however the person's rows lie in cells: the noise is "
    "log-concave, so all rows together in as few cells as possible are the worst "
    "(mechanisms/bounded_noise). The cells are disjoint and fixed by the public domain, and the "
    "noise is exact on the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes, in which draws "
    "beyond the bound are drawn again; persons who appear under several ids.",
    source="Geng, Ding, Guo, Kumar, AISTATS 2020; on the integers: Ghosh, Roughgarden, "
    "Sundararajan 2009; several cells: mechanisms/bounded_noise.",
)


def require_known_cells(title: str, lattice: Lattice) -> None:
    """Refuse an axis of keys, whose own noise decides which of them are shown.

    Raises
    ------
    UsageError
        If there is one.
    """
    if lattice.keyed or any(axis.has_keys for axis in lattice.axes):
        raise UsageError(
            f"{title} with noise = 'bounded'",
            "keys that are not known beforehand are selected by noise of their own",
            "Leave noise out, or declare the keys as Categories",
        )


class BoundedPreview(CountsPreview, frozen=True):
    """The preview of counts with noise that never exceeds a bound, ``law.bound``.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> question = sf.Histogram("age", bins=4, noise="bounded")
    >>> found = sf.preview(question, domain=domain, unit=sf.Unit(), epsilon="1", delta="1e-6")
    >>> found.law.bound, found.accuracy(confidence="0.95"), found.accuracy(confidence="0.999999999")
    (14, 3, 14)
    """

    def lines(self) -> list[str]:
        """What is added to which counts, how accurate they would be, and how far off at most."""
        assert isinstance(self.law, TruncatedLaplace)
        noise, *accuracies = super().lines()
        usual = self.law.without_bound.half_width(0.05)
        return [
            noise,
            f"of {self.unit.counted}, each count is never more than {self.law.bound:,} off",
            *accuracies,
            f"the bound costs the delta: noise without one needs no delta, and each count is "
            f"within +-{usual:,} with 95% confidence at the same epsilon",
        ]


def preview(
    title: str, cost: CentralMeasure, unit: Unit, lattice: Lattice, rows: int | None
) -> BoundedPreview:
    """Say how accurate counts with bounded noise would be."""
    return BoundedPreview(title, cost, unit, lattice.size, bounded_law(cost, unit), rows)
