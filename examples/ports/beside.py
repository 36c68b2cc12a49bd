"""Print what a source says beside what Sfumato says: one line for each number or statement."""

from __future__ import annotations

import math

CLOSE = 1e-8


def beside(what: str, source: object, here: object, why: str = "", rel: float = CLOSE) -> None:
    """Print one line: the same, or corrected for a reason.

    Parameters
    ----------
    what : str
    source, here : number, text, or list of numbers
        What the source says, and what Sfumato says.
    why : str
        Why they differ. Empty: they must be the same.
    rel : float
        How far two numbers may lie apart, relatively, and still be the same.

    Raises
    ------
    SystemExit
        If they differ without a reason, or are the same although a reason is given.
    """
    same = _same(source, here, rel)
    if same == bool(why):
        raise SystemExit(f"{what}: the source says {source}, and Sfumato {here}")
    verdict = f"corrected: {why}" if why else "the same"
    print(f"{what} | {_shown(source)} | {_shown(here)} | {verdict}")


def holds(what: str, is_so: object) -> None:
    """Print a statement of the source that holds here, too."""
    if not is_so:
        raise SystemExit(f"{what}: this does not hold")
    print(f"{what} | holds")


def _same(one: object, other: object, rel: float) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            _same(a, b, rel) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=rel)
    return one == other


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return str(value)
