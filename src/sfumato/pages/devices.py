"""Clusters of reports that persons' own devices made noisy, as a section of the page.

There is no ledger and no receipt: nobody but each person ever had the true values.
"""

from __future__ import annotations

import numpy as np

from sfumato.basics.text import plain
from sfumato.charts import style
from sfumato.local.clustering import PrivateKMeans
from sfumato.pages.studies import Study, drawn

MOST_CENTRES = 12


def study(model: PrivateKMeans, anchor: str, *, technical: bool = True) -> Study:
    """Collect what the page shows of clusters that were found without a trusted curator.

    A page that is not technical leaves out the proof.

    Raises
    ------
    UsageError
        If the model has seen no reports.
    """
    guarantee = model.guarantee_
    promises = tuple(str(guarantee).splitlines())
    title = "Clusters without a trusted curator"
    sentences = _sentences(model)
    if not guarantee.private:
        sentences = [
            "NOT PRIVATE: the noise came from a public seed, for testing only.",
            *sentences,
        ]
    figures = (
        (f"{len(model.reports_):,}", "reports, one from the device of each person"),
        (f"{model.epsilon}", "epsilon of each report, per unit of distance"),
        (f"{model.n_clusters}", "clusters found in the reports"),
    )
    return Study(
        anchor,
        title,
        charts=drawn(model.plot, title, " ".join(sentences), anchor),
        figures=figures,
        sentences=(
            *((sentence, ()) for sentence in sentences),
            ("The centres, from the largest down:", _centres(model)),
            ("What each report promises:", promises if technical else promises[:1]),
        ),
        notes=(),
    )


def _sentences(model: PrivateKMeans) -> list[str]:
    found = [
        "Each person's device adds noise to that person's values before anything leaves it. "
        "Whoever collects the reports sees noise, and finds the clusters below it.",
        "The dots are reports, and the crosses are the centres found in them. "
        "Each axis is drawn from 0 to 1 between its public bounds.",
    ]
    if model.method == "naive":
        found.append("These centres are those of the reports, and have no intervals.")
    elif not model.evident_:
        found.append(
            "The reports do not show where clusters are: the centres are spread evenly over the "
            "bounds, and the intervals say how far they may be off."
        )
    elif not model.in_model_:
        found.append(
            "The points do not form round clusters, as the intervals presume, so the confidence of "
            "the intervals is not proved."
        )
    return found


def _centres(model: PrivateKMeans) -> tuple[str, ...]:
    """Each centre as a line, with a 95% interval for each coordinate where there is one."""
    centres = model.cluster_centers_
    names = _names(model, centres.shape[1])
    ends = (centres, centres) if model.method == "naive" else model.intervals()
    order = np.argsort(-model.weights_, kind="stable")
    lines = []
    for i in order[:MOST_CENTRES].tolist():
        places = []
        for name, value, low, high in zip(names, *(at[i] for at in (centres, *ends)), strict=True):
            reach = "" if low == high else f" ({_number(low)} to {_number(high)}, 95%)"
            places.append(f"{name} {_number(value)}{reach}")
        lines.append(f"{100 * model.weights_[i]:.0f}% of the persons: {', '.join(places)}")
    further = len(order) - len(lines)
    return (*lines, f"and {further:,} more") if further > 0 else tuple(lines)


def _names(model: PrivateKMeans, axes: int) -> list[str]:
    if isinstance(model.bounds, dict):
        return [plain(str(name)) for name in model.bounds]
    return [f"axis {i}" for i in range(1, axes + 1)]


def _number(value: float) -> str:
    return style.number(float(f"{value:.4g}"))
