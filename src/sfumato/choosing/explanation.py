"""A window in sentences that can be quoted.

Where the window is empty, they say what to relax, and by how much.
"""

from __future__ import annotations

from fractions import Fraction

from sfumato.answers.accuracy import Kind, kind_of
from sfumato.basics.numbers import decimal, rounded
from sfumato.choosing.span import Part, Span
from sfumato.privacy import belief

DIGITS = 4


def explain(found: Span) -> str:
    """The window in sentences, one a line: the decision first, then what it rests on."""
    kind = found.kind
    lines = _decided(found) if found.feasible else _empty(found)
    lines += [
        f"It rests on: {found.plan.title}, for {found.unit}; accuracy is of {found.unit.counted}.",
        *_floor(found, kind),
    ]
    ceiling = named(kind, kind.level(found.ceiling_cost))
    left = f"{found.risk}{_worlds(found)}"
    lines += [f"Ceiling: {ceiling} is the largest that leaves {left}."]
    return "\n".join([*lines, *(_open(found) if found.feasible else [])])


def _floor(found: Span, kind: Kind) -> list[str]:
    level = named(kind, kind.level(found.floor_cost), up=True)
    if len(found.parts) == 1:
        (part,) = found.parts
        return [f"Floor: {level} is the least at which {_subject(part)} {part.accuracy}."]
    lines = [f"Floor: {level} is the least at which every question is accurate enough:"]
    for part in found.parts:
        share = named(kind_of(part.floor), kind.level(part.floor), up=True)
        lines.append(f"  {part.question}: {_subject(part)} {part.accuracy}, for {share}.")
    return lines


def named(kind: Kind, level: Fraction, up: bool = False) -> str:
    """Print a cost in four digits, rounded so that what is quoted holds too.

    A floor is rounded up, a ceiling down.
    """
    return f"{kind.letter} = {rounded(level, DIGITS, up=up)}" + (
        f" (delta = {decimal(kind.delta)})" if kind.delta else ""
    )


def _subject(part: Part) -> str:
    if part.cells is None:
        return "every number is"
    return "the number is" if part.cells == 1 else f"all {part.cells:,} numbers are"


def _worlds(found: Span) -> str:
    if found.worlds is None:
        return ""
    if isinstance(found.worlds, int):
        return f", of {found.worlds:,} worlds"
    size = found.worlds.size
    records = found.worlds.records
    return f", of the worlds in which {size:,} of {records:,} records are the data"


def _decided(found: Span) -> list[str]:
    kind = found.kind
    level = named(kind, kind.level(found.floor_cost), up=True)
    meaning = f"With it, {belief.sentence(found.floor_cost, found.unit)}{_reached(found)}."
    large = belief.warning(found.floor_cost, found.unit)
    return [f"Decision: {level}, the safest that is accurate enough. {large or meaning}"]


def _open(found: Span) -> list[str]:
    kind = found.kind
    floor, ceiling = found.ends
    lines = [
        f"Feasible: any {kind.letter} from {floor} to {ceiling} is accurate enough and safe enough."
    ]
    for part in found.parts:
        if part.at_ceiling is not None and part.at_ceiling > part.accuracy.half_width:
            width = f"+-{_up(part.at_ceiling)}"
            lines += [f"  Not all of it: at the ceiling, {part.question} is within {width} only."]
    return lines


def _reached(found: Span) -> str:
    """What the risk is at the floor, unless the sentence before it says it."""
    if found.risk.prior == belief.PRIOR:
        return ""
    return f", and {found.risk.what} is at most {_up(found.risk_at_floor)}"


def _empty(found: Span) -> list[str]:
    """Every single thing that would open the window."""
    kind = found.kind
    floor = named(kind, kind.level(found.floor_cost), up=True)
    ceiling = named(kind, kind.level(found.ceiling_cost))
    lines = [
        "Decision: none. What is accurate enough is not safe enough, until one of these is relaxed:"
    ]
    wider = []
    for part in found.parts:
        if part.at_ceiling is None:
            continue
        of = f" for {part.question}" if len(found.parts) > 1 else ""
        wider.append(f"+-{_up(part.at_ceiling)} instead of +-{part.accuracy.half_width:,.6g}{of}")
    if wider:
        lines += [f"  accuracy: {'; '.join(wider)}, at {ceiling};"]
    if all(part.accuracy.simultaneous and _met_alone(part) for part in found.parts):
        lines += ["  confidence: each number by itself instead of all at once, at the same cost;"]
    lines += [f"  risk: {_up(found.risk_at_floor)} instead of {found.risk.limit:.6g}, at {floor};"]
    if found.unit.rows_per_person > 1:
        limit = f"{found.unit.rows_per_person:,}"
        lines += [f"  the unit: fewer rows per person than {limit}; noise grows with them."]
    return [*lines[:-1], lines[-1].rstrip(";.") + "."]


def _met_alone(part: Part) -> bool:
    return part.each_at_ceiling is not None and part.each_at_ceiling <= part.accuracy.half_width


def _up(value: float) -> str:
    """Print a half-width or a risk, rounded up: a relaxed request must be met by what is quoted."""
    return (
        f"{value:,.0f}" if value == round(value) else rounded(value, 3 if value < 1 else 6, up=True)
    )
