"""What a window says: sentences that can be quoted, and, where it is empty, what to relax and by how much."""

from __future__ import annotations

from fractions import Fraction

from sfumato.choosing.costs import Kind, kind_of
from sfumato.choosing.span import Part, Span
from sfumato.numbers import decimal, rounded
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
    lines += [
        f"Ceiling: {named(kind, kind.level(found.ceiling_cost))} is the largest that leaves {found.risk}{_worlds(found)}."
    ]
    return "\n".join([*lines, *(_open(found) if found.feasible else [])])


def _floor(found: Span, kind: Kind) -> list[str]:
    level = named(kind, kind.level(found.floor_cost), up=True)
    if len(found.parts) == 1:
        return [
            f"Floor: {level} is the least at which {_subject(found.parts[0])} {found.parts[0].accuracy}."
        ]
    shares = [
        f"  {part.question}: {_subject(part)} {part.accuracy}, for {named(kind_of(part.floor), kind.level(part.floor), up=True)}."
        for part in found.parts
    ]
    return [f"Floor: {level} is the least at which every question is accurate enough:", *shares]


def named(kind: Kind, level: Fraction, up: bool = False) -> str:
    """Print a cost in four digits: a floor rounded up, a ceiling down, so that what is quoted holds as well."""
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
    return f", of the worlds in which {found.worlds.size:,} of {found.worlds.records:,} records are the data"


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
            lines += [
                f"  Not all of it: at the ceiling, {part.question} is within +-{_up(part.at_ceiling)} only."
            ]
    return lines


def _reached(found: Span) -> str:
    """What the risk is at the floor, unless the sentence before it says it."""
    if found.risk.prior == belief.PRIOR:
        return ""
    return f", and {found.risk.what} is at most {_up(found.risk_at_floor)}"


def _empty(found: Span) -> list[str]:
    """Every single thing that would open the window."""
    kind = found.kind
    floor, ceiling = (
        named(kind, kind.level(found.floor_cost), up=True),
        named(kind, kind.level(found.ceiling_cost)),
    )
    lines = [
        "Decision: none. Empty: what is accurate enough is not safe enough, until one of these is relaxed:"
    ]
    of = " for {}".format if len(found.parts) > 1 else lambda _: ""
    wider = [
        f"+-{_up(part.at_ceiling)} instead of +-{part.accuracy.half_width:,.6g}{of(part.question)}"
        for part in found.parts
        if part.at_ceiling is not None
    ]
    if wider:
        lines += [f"  accuracy: {'; '.join(wider)}, at {ceiling};"]
    if all(part.accuracy.simultaneous and _met_alone(part) for part in found.parts):
        lines += ["  confidence: each number by itself instead of all at once, at the same cost;"]
    lines += [f"  risk: {_up(found.risk_at_floor)} instead of {found.risk.limit:.6g}, at {floor};"]
    if found.unit.rows_per_person > 1:
        lines += [
            f"  the unit: fewer rows per person than {found.unit.rows_per_person:,}; noise grows with them."
        ]
    return [*lines[:-1], lines[-1].rstrip(";.") + "."]


def _met_alone(part: Part) -> bool:
    return part.each_at_ceiling is not None and part.each_at_ceiling <= part.accuracy.half_width


def _up(value: float) -> str:
    """Print a half-width or a risk, rounded up: a relaxed request must be met by what is quoted."""
    return (
        f"{value:,.0f}" if value == round(value) else rounded(value, 3 if value < 1 else 6, up=True)
    )
