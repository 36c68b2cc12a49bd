"""Clauses and sentences about means and sums: whose values they are of, and where these are cut."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from sfumato.aggregates.value_sums import ValueSums
from sfumato.aggregates.values import Values
from sfumato.errors import printable


def of_each_person(scale: Values) -> str:
    """A clause on what the value of a person is; "" for values of rows."""
    if scale.persons is UNSET:
        return ""
    clause = f", each by the {scale.persons.statistic} of their values"
    if scale.persons.statistic == "mean":
        return clause
    # The bounds of a row's value are in the domain; those of a sum are nowhere else.
    return f"{clause}, clipped to {scale.lower:,.6g} to {scale.upper:,.6g}"


def clipped(tables: Sequence[ValueSums]) -> str:
    """A clause on the clips that were chosen, of each value."""
    clips = []
    for sums in tables:
        least = f"{sums.clips.min():,.6g}"
        most = f"{sums.clips.max():,.6g}"
        clips.append(most if least == most else f"{least} to {most} by group")
    return f", each clipped to at most {' and '.join(clips)}"


def above_clip(tables: Sequence[ValueSums], alpha: float, counted: str) -> str:
    """Sentences on how many values of the only group lie above the clip, of each value.

    Parameters
    ----------
    tables : sequence of ValueSums
        Of one group.
    alpha : float
        With which probability each number may be too small.
    counted : str
        What has a value, such as "rows".
    """
    sentences = []
    for sums in tables:
        above = int(sums.above(alpha)[0])
        n_values = max(round(float(sums.counts[0])), 0)
        what = counted
        if len(tables) > 1:
            what = f"{counted.removesuffix(',')} of {printable(sums.scale.name)}"
        next_knot = f"{sums.next_knots[0]:,.6g}"
        if above >= n_values:
            sentences.append(f"How many {what} lie above {next_knot} is not known.")
        else:
            sentences.append(f"At most {above:,} of {n_values:,} {what} lie above {next_knot}.")
    return " ".join(sentences)
