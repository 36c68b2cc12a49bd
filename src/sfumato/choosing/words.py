"""What a window says: sentences that can be quoted, and, where it is empty, what to relax and by how much."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.choosing.costs import Kind
from sfumato.exact import decimal

if TYPE_CHECKING:
    from sfumato.choosing.windows import Part, Window

DIGITS = 4


def explain(found: Window) -> str:
    """The window in sentences, one a line."""
    kind = found.kind
    lines = [f"{found.plan.title}, for {found.unit}.", *_floor(found, kind)]
    lines += [f"Ceiling: {named(kind, kind.level(found.ceiling_cost))} is the largest that leaves {found.risk}{_worlds(found)}."]
    return "\n".join([*lines, *(_open(found) if found.feasible else _empty(found))])


def _floor(found: Window, kind: Kind) -> list[str]:
    level = named(kind, kind.level(found.floor_cost), up=True)
    if len(found.parts) == 1:
        return [f"Floor: {level} is the least at which {_subject(found.parts[0])} {found.parts[0].accuracy}."]
    shares = [
        f"  {part.question}: {_subject(part)} {part.accuracy}, for {named(kind, kind.level(part.floor), up=True)}." for part in found.parts
    ]
    return [f"Floor: {level} is the least at which every question is accurate enough:", *shares]


def named(kind: Kind, level: Fraction, up: bool = False) -> str:
    """Print a cost in four digits: a floor rounded up, a ceiling down, so that what is quoted holds as well."""
    return f"{kind.letter} = {rounded(level, up)}" + (f" (delta = {decimal(kind.delta)})" if kind.delta else "")


def rounded(level: Fraction, up: bool) -> str:
    """Four digits, rounded up or down.

    >>> rounded(Fraction("1.650680762"), up=False), rounded(Fraction("0.331098117"), up=True)
    ('1.65', '0.3312')
    """
    grain = Fraction(10) ** (math.floor(math.log10(level)) + 1 - DIGITS)
    return f"{float((math.ceil if up else math.floor)(level / grain) * grain):.{DIGITS}g}"


def _subject(part: Part) -> str:
    if part.cells is None:
        return "every number is"
    return "the number is" if part.cells == 1 else f"all {part.cells:,} numbers are"


def _worlds(found: Window) -> str:
    if found.worlds is None:
        return ""
    if isinstance(found.worlds, int):
        return f", of {found.worlds:,} worlds"
    return f", of the worlds in which {found.worlds.size:,} of {found.worlds.records:,} persons are in the data"


def _open(found: Window) -> list[str]:
    kind = found.kind
    ends = f"{rounded(kind.level(found.floor_cost), True)} to {rounded(kind.level(found.ceiling_cost), False)}"
    lines = [f"Feasible: any {kind.letter} from {ends} is accurate enough and safe enough; the floor is the safest."]
    lines += [f"  At the floor the same risk is {found.risk_at_floor:.3g} instead of {found.risk.limit:.6g}."]
    for part in found.parts:
        if part.at_ceiling is not None and part.at_ceiling > part.accuracy.half_width:
            lines += [f"  Not all of it: at the ceiling, {part.question} is within +-{_width(part.at_ceiling)} only."]
    return lines


def _empty(found: Window) -> list[str]:
    """Every single thing that would open the window."""
    kind = found.kind
    lines = ["Empty: what is accurate enough is not safe enough. Relax one of these:"]
    wider = [
        f"+-{_width(part.at_ceiling)} instead of +-{_width(part.accuracy.half_width)}"
        + (f" for {part.question}" if len(found.parts) > 1 else "")
        for part in found.parts
        if part.at_ceiling is not None
    ]
    if wider:
        lines += [f"  accuracy: {'; '.join(wider)}, at {named(kind, kind.level(found.ceiling_cost))};"]
    if all(part.accuracy.simultaneous and _met_alone(part) for part in found.parts):
        lines += ["  confidence: each number by itself instead of all at once, at the same cost;"]
    lines += [
        f"  risk: {_up(found.risk_at_floor)} instead of {found.risk.limit:.6g}, at {named(kind, kind.level(found.floor_cost), up=True)};"
    ]
    if found.unit.rows_per_person > 1:
        lines += [f"  the unit: fewer rows per person than {found.unit.rows_per_person:,}; noise grows with them."]
    return [*lines[:-1], lines[-1].rstrip(";.") + "."]


def _met_alone(part: Part) -> bool:
    return part.each_at_ceiling is not None and part.each_at_ceiling <= part.accuracy.half_width


def _width(value: float) -> str:
    return f"{math.ceil(value):,}" if value >= 10 else f"{value:.4g}"


def _up(risk: float) -> str:
    """Three digits, rounded up."""
    grain = 10.0 ** (math.floor(math.log10(risk)) - 2)
    return f"{min(math.ceil(risk / grain - 1e-9) * grain, 1.0):.3g}"
