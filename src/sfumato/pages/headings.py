"""What an answer is called on a page: the heading it was given, or else its question in words."""

from __future__ import annotations

from sfumato.answers.release import Release
from sfumato.basics.text import plain
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.partition.release import Partition

LONGEST = 200


def heading_of(release: Release) -> str:
    """The heading of an answer, in words and with units of measure.

    A heading that the question was given is taken as it is. Counts are named by what was counted
    and along which axes; other answers say that in their titles. The conditions on rows follow,
    since answers about all rows and about some of them may stand side by side.
    """
    if release.heading != release.title:
        return plain(release.heading, LONGEST)
    named = release.for_people()
    conditions = named.guarantee.unit.conditions
    match named:
        case HistogramRelease():
            axes = named.lattice.names
            what = "persons" if named.question.count == "persons" else "rows"
        case Partition():
            axes, what = named.lattice.names, "rows"
        case _:
            return plain(f"{release.title}{conditions}", LONGEST)
    return plain(f"Number of {what} by {' and '.join(axes)}{conditions}", LONGEST)
