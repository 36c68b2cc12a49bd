"""The fields of a disclosure document: what is filled in, and what is left to a person.

The second part gathers what releases say in words, so that two hundred answers still make a short
document. The last says in sentences what an audit of the mechanisms found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.answers import Release, accuracy_sentence, tag_of
from sfumato.domain import BinsAndMissing, EdgesAxis, GridAxis, KeyAxis, LabelAxis, LatticeAxis
from sfumato.errors import printable
from sfumato.privacy import Guarantee
from sfumato.reports.disclosure.evidence import Evidence, shortened
from sfumato.reports.tables import Finding

# --- fields ---------------------------------------------------------------------------------------

Value: TypeAlias = str | int | float | list[str]

# How a field begins that only a person can fill in.
TODO = "TODO: "


@dataclass(frozen=True)
class Field:
    """One value of the document.

    Attributes
    ----------
    value : str, int, float or list of str
    constant : bool
        Whether it is the same in every document of this library.
    by_hand : bool
        Whether a person wrote it, or must.
    """

    value: Value
    constant: bool = False
    by_hand: bool = False

    @property
    def missing(self) -> bool:
        """Whether a person still has to fill it in."""
        texts = self.value if isinstance(self.value, list) else [self.value]
        return any(TODO in text for text in texts if isinstance(text, str))


Tree: TypeAlias = Mapping[str, "Field | Tree"]


def todo(what: str) -> Field:
    """A field that only a person can fill in.

    Parameters
    ----------
    what : str
        What to write there, as a phrase.
    """
    return Field(TODO + what, by_hand=True)


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Field]]:
    """All fields with their places, such as "deployment.product.name", in order."""
    for name, node in tree.items():
        place = f"{path}.{name}" if path else name
        if isinstance(node, Field):
            yield place, node
        else:
            yield from leaves(node, place)


def plain(tree: Tree) -> dict[str, object]:
    """The values alone, as dicts and lists."""
    return {
        name: node.value if isinstance(node, Field) else plain(node) for name, node in tree.items()
    }


# --- words of releases ----------------------------------------------------------------------------

# Titles, charges and columns that are listed; of more, the number is said.
MOST_LISTED = 12

# What is computed from the output of the mechanisms, by the tag of a release.
AFTERWARDS = {
    "histogram-release": "the counts are published as the noise left them, also negative ones",
    "mean-release": "means and their intervals are computed from the noisy sums",
    "sum-release": "sums and their intervals are computed from the noisy sums",
    "variance-release": "variances and their intervals are computed from the noisy sums",
    "tables-release": "tables that agree in common margins, and their intervals, are computed from "
    "the noisy numbers by least squares",
    "persons-release": "the number of persons and the shares by number of rows are computed from "
    "the noisy counts",
    "quantiles-release": "quantiles and their intervals follow from what the mechanism selected or "
    "counted",
    "kmeans-release": "centres and sizes of clusters are computed from noisy counts and sums",
    "counter-release": "running totals follow from the noisy outputs of the steps",
}

# The same of a partition, by what its counts are.
SHOWN = {
    "noisy": "the counts of cells are published as the mechanism drew them",
    "consistent": "the counts of cells were made to add up (constrained inference)",
    "whole": "the counts of cells were made to add up (constrained inference), in whole numbers",
}


def joined(texts: Iterable[str], most: int = MOST_LISTED) -> str:
    """A list in one line; of a long one the first, and how many more there are.

    >>> joined(["a", "b", "c"], 2)
    'a; b; and 1 more'
    """
    distinct = list(dict.fromkeys(texts))
    more = [f"and {len(distinct) - most:,} more"] if len(distinct) > most else []
    return "; ".join([*distinct[:most], *more])


def bullets(lines: Iterable[str]) -> str:
    """Lines of a list; one alone stands as it is.

    >>> bullets(["one", "one"])
    'one'
    """
    distinct = list(dict.fromkeys(line for line in lines if line))
    return distinct[0] if len(distinct) == 1 else "\n".join(f"- {line}" for line in distinct)


def titles(releases: Iterable[Release]) -> str:
    """The headings of releases, folded."""
    return joined(shortened(release.heading) for release in releases)


def by_text(pairs: Iterable[tuple[str, Release]]) -> list[str]:
    """Texts with the releases that they are true of: one line a text.

    Where one text is true of all releases, it stands alone.
    """
    groups: dict[str, list[Release]] = {}
    for text, release in pairs:
        groups.setdefault(text, []).append(release)
    if len(groups) == 1:
        return list(groups)
    return [f"{titles(group)}: {text}" for text, group in groups.items()]


def promises(evidence: Evidence, said: Callable[[Guarantee], str]) -> list[str]:
    """Texts on the guarantees of the releases, each with those that it is true of."""
    return by_text((said(release.guarantee), release) for release in evidence.releases)


def columns(evidence: Evidence) -> list[str]:
    """The columns that the answers are about, with their public bounds or labels."""
    axes: dict[str, list[LatticeAxis]] = {}
    selected: set[str] = set()
    for release in evidence.releases:
        # A release shows the keys that were selected as labels, and they are no public list.
        keyed = getattr(release, "selection", None) is not None
        for axis in getattr(getattr(release, "lattice", None), "axes", ()):
            axes.setdefault(axis.name, []).append(axis)
            if keyed and isinstance(axis, LabelAxis):
                selected.add(axis.name)
    return [
        f"{shortened(name)} ({_declared(laid, name in selected)})" for name, laid in axes.items()
    ]


def _declared(laid: Sequence[LatticeAxis], selected: bool) -> str:
    """Return what is publicly known of a column, from the axes that the answers laid over it."""
    plain = [axis.bins if isinstance(axis, BinsAndMissing) else axis for axis in laid]
    numeric = [axis for axis in plain if isinstance(axis, GridAxis | EdgesAxis)]
    if numeric:
        ends = np.array([axis.ends for axis in numeric])
        first, last = numeric[0].scale.text(np.array([ends.min(), ends.max()]))
        return f"from {first} to {last}"
    if selected or isinstance(plain[0], KeyAxis):
        return "labels that are shown if they were selected with noise"
    size = max(axis.size for axis in plain)
    return f"{size:,} listed labels" if size > 1 else "one listed label"


def afterwards(release: Release) -> str | None:
    """What was computed from the mechanism's output; None of a kind that is not known here."""
    tag = tag_of(type(release))
    if tag == "partition":
        return SHOWN.get(str(getattr(release, "shown", "noisy")))
    return AFTERWARDS.get(tag)


def person(evidence: Evidence) -> str:
    """Whom the answers protect, such as "rider" or "device in one day"; "row" without a column."""
    unit = evidence.unit
    if unit.person is None and unit.rows_per_person == 1:
        return "row"
    return unit.who


def level(evidence: Evidence) -> str:
    """The privacy unit as the registry names it, such as "Device-day-level"."""
    unit = evidence.unit
    if unit.person is None:
        return "Row-level" if unit.rows_per_person == 1 else "Person-level"
    named = "-".join(map(printable, unit.person_columns))
    return f"{named[:1].upper()}{named[1:]}-level"


def accuracies(evidence: Evidence) -> list[str]:
    """How accurate the answers are, one line an answer; of many the first."""
    said = []
    for release in evidence.releases[:MOST_LISTED]:
        sentence = accuracy_sentence(release) or "it states no accuracy."
        said.append(f"{shortened(release.heading)}: {sentence}")
    more = len(evidence.releases) - len(said)
    return said if more <= 0 else [*said, f"{more:,} more answers: each states its own."]


# --- an audit -------------------------------------------------------------------------------------


def figures(findings: Sequence[Finding]) -> str:
    """The figures of an audit: how many claims were kept, and which were not.

    A claim that the audit had no power to judge is counted apart: it is no pass.
    """
    failed = [finding for finding in findings if finding.failed]
    ok = sum(finding.ok for finding in findings)
    weak = len(findings) - len(failed) - ok
    said = [
        f"sfumato audit measured the privacy loss behind {len(findings):,} claims of mechanisms "
        f"and questions. {ok:,} kept within their claim, in runs that would have shown a fault."
    ]
    if weak:
        said.append(f"For {weak:,} the run had no power to show one.")
    if failed:
        names = joined(finding.subject for finding in failed)
        said.append(f"{len(failed):,} exceeded their claim or could not be judged: {names}.")
    else:
        said.append("None exceeded its claim.")
    return " ".join(said)
