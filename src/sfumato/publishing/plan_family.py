"""The histograms of a plan as one family of tables that add up.

They become one question, ``sf.Tables``: they count the same rows, are charged once, and agree in
all totals that they share. What a histogram can be that no table of a family is, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from sfumato.answers.accuracy import Within
from sfumato.answers.captions import LONGEST
from sfumato.answers.question import AnyQuestion
from sfumato.domain.domain import Domain, Interval, named_axes
from sfumato.domain.lattice import LatticeAxis
from sfumato.errors import UsageError, printable
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.bins import AxisBins, by_axis, widths_by_axis
from sfumato.questions.tables import Tables

ASKED = "a plan that adds up"

OWN: Mapping[str, tuple[str, str]] = {
    "records": ("its bins follow from the data", "Give bins or a width"),
    "selection": ("it selects keys, and a family has none", "Leave selection out"),
    "count": ("a family counts rows", 'Leave count="persons" out, or ask it in another plan'),
    "workload": ("the family has noise of its own", "Leave workload out"),
    "noise": ("the family has noise of its own", "Leave noise out, or ask it in another plan"),
}
"""What a table of a family cannot be: the field of a histogram, why, and what to do."""


def histograms_of(questions: Sequence[AnyQuestion]) -> list[int]:
    """The places of a plan's histograms.

    Raises
    ------
    UsageError
        If there are fewer than two, or one is no table of a family.
    """
    found = [at for at, question in enumerate(questions) if isinstance(question, Histogram)]
    if len(found) < 2:
        obstacle = f"it has {len(found)} histogram{'' if found else 's'}, and tables agree in pairs"
        remedy = "Leave adds_up out, or add a histogram"
        raise UsageError(ASKED, obstacle, remedy)
    for at in found:
        question = questions[at]
        for field, (obstacle, remedy) in OWN.items():
            if getattr(question, field) != getattr(_PLAIN, field):
                raise UsageError(f"{ASKED}, {question.title} with {field}", obstacle, remedy)
    return found


_PLAIN = Histogram("x")
"""A histogram of which nothing but an axis is said."""


def family_of(
    histograms: Sequence[Histogram], domain: Domain, weights: Sequence[float] | None
) -> Tables:
    """The histograms as one question.

    Parameters
    ----------
    histograms : sequence of Histogram
    domain : Domain
    weights : sequence of float, or None
        How much the errors of each matter.

    Raises
    ------
    UsageError
        If an axis is one of keys, is divided differently in two of them, or they share no axis.
    """
    bins: dict[str, AxisBins] = {}
    width: dict[str, float] = {}
    axes: dict[str, LatticeAxis] = {}
    for histogram in histograms:
        for axis in histogram.shown_lattice(domain).axes:
            if axis.has_keys:
                raise UsageError(
                    f"{ASKED}, {histogram.title}",
                    f"which keys of {axis.name!r} there are is not known beforehand",
                    "Declare it as Categories with a public list, or ask it in another plan",
                )
            if axes.setdefault(axis.name, axis) != axis:
                raise UsageError(
                    f"{ASKED}, {histogram.title}",
                    f"{printable(axis.name)} has other bins in another histogram",
                    "Give an axis the same bins in all of them",
                )
        names = domain.select(histogram.axes)
        intervals = [name for name in names if name in domain.of_kind(Interval)]
        by_name = by_axis(histogram.bins, intervals)
        bins |= {name: each for name, each in by_name.items() if each is not None}
        widths = widths_by_axis(histogram.width, intervals)
        width |= {name: each for name, each in widths.items() if each is not None}
    # The same axis may be given bins in one histogram and a width in another.
    width = {name: each for name, each in width.items() if name not in bins}
    return Tables(
        [list(named_axes(histogram.axes)) for histogram in histograms],
        bins=bins or None,
        width=width or None,
        weights=None if weights is None or len(set(weights)) == 1 else list(weights),
        heading=_heading(histograms),
        measured_in=_units(histograms, domain) or UNSET,
        label_names=_label_names(histograms) or UNSET,
    )


def one_accuracy(accuracies: Sequence[Within | None]) -> Within | None:
    """How accurate all tables of the family must be.

    Raises
    ------
    UsageError
        If two histograms ask for different accuracies.
    """
    if len(set(accuracies)) > 1:
        raise UsageError(
            f"{ASKED}, an accuracy for some histograms",
            "the tables of a family have their noise together",
            "Give all histograms the same accuracy, or ask sf.Tables(..., accuracy=[...])",
        )
    return accuracies[0]


# --- words for people -----------------------------------------------------------------------------


def _heading(histograms: Sequence[Histogram]) -> str | UnsetType:
    """The headings of all histograms; none unless each has one, or they would be too long."""
    headings = [histogram.heading or "" for histogram in histograms]
    joined = "; ".join(dict.fromkeys(headings))
    return joined if all(headings) and len(joined) <= LONGEST else UNSET


def _units(histograms: Sequence[Histogram], domain: Domain) -> dict[str, str]:
    """Units of measure by axis; one that names no axis is that of a histogram's Interval axes."""
    found: dict[str, str] = {}
    for histogram in histograms:
        given = histogram.measured_in or {}
        if isinstance(given, str):
            intervals = domain.of_kind(Interval)
            names = [name for name in domain.select(histogram.axes) if name in intervals]
            given = dict.fromkeys(names, given)
        found |= given
    return found


def _label_names(histograms: Sequence[Histogram]) -> dict[str, str]:
    found: dict[str, str] = {}
    for histogram in histograms:
        found |= histogram.label_names or {}
    return found
