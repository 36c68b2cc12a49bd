"""Which rows an answer counts, and what may be missing from it, in words.

``scope`` is the one sentence that stands beside the numbers wherever they are shown: on screens,
pages, pictures and sheets. ``counted_rows`` adds what is said once, further below.
"""

from __future__ import annotations

import re

from sfumato.privacy.limits import limit_in_words
from sfumato.privacy.unit import Unit

_ENDED_IN_0_2 = re.compile(r" Every accuracy is about the [^.]*? counted\.")
"""How version 0.2 ended what it said of the rows of every answer."""
_LEFT_OUT_IN_0_2 = re.compile(
    r"(At most [0-9,]+ rows of each |The counts of each |Each ).*95% confi.*$"
)


def scope(unit: Unit, left_out: str = "") -> str:
    """What is counted, and what may be missing, in one sentence.

    Parameters
    ----------
    unit : Unit
    left_out : str
        How much the limits leave out, where that was paid for; a sentence for each limit.

    >>> scope(Unit())
    'One row is one person: someone with 20 rows is 20 persons here.'
    >>> print(scope(Unit(3, person="rider_id", person_called="rider")))
    At most 3 rows of each rider are counted; further rows are missing, and how many is not known.
    """
    if unit.person is None:
        return _of_rows(unit.rows_per_person)
    if not unit.limits_kept:
        return f"All rows{unit.conditions} that name {unit.anyone} are counted."
    if left_out:
        return left_out
    missing = "further rows are missing"
    if unit.counts_persons:
        missing = f"{unit.several} in more cells are missing from the others"
    phrases = [limit_in_words(name, limit, unit.who) for name, limit in unit.limits_kept.items()]
    limited = ", and ".join(phrases)
    of_rows = f", of rows{unit.conditions}" if unit.conditions else ""
    return f"{limited[:1].upper()}{limited[1:]}{of_rows}; {missing}, and how many is not known."


def _of_rows(rows: int) -> str:
    """What follows where no column names the person."""
    if rows == 1:
        return "One row is one person: someone with 20 rows is 20 persons here."
    return (
        f"All rows are counted, and nobody is said to have more than {rows:,}: "
        "someone who has more is not protected as a whole."
    )


def counted_rows(unit: Unit, left_out: str = "") -> str:
    """Which rows an answer about tables is about, and which it is not, in words."""
    chosen = "Which ones are counted is chosen at random. " if unit.limits_kept else ""
    if unit.counts_persons:
        chosen += f"Each {unit.who} is counted once in a cell. "
    whose = "" if unit.person is None else f"without {unit.anyone} or "
    dropped = (
        f"Rows {whose}without a value, and rows with an unlisted label, are not counted, "
        "unless the domain gives them a cell."
    )
    clamped = "Values beyond an axis' bounds or edges are counted in its end cells."
    return f"{asked_rows(unit)}{scope(unit, left_out)} {chosen}{dropped} {clamped}"


def left_out_in_0_2(counted: str) -> str:
    """How much the limits leave out, as version 0.2 put it behind all else; "" if it did not."""
    said = _LEFT_OUT_IN_0_2.search(_ENDED_IN_0_2.split(counted)[-1])
    is_of_0_2 = _ENDED_IN_0_2.search(counted) is not None
    return said[0] if is_of_0_2 and said is not None else ""


def counted_since_0_2(unit: Unit, counted: str) -> str:
    """What version 0.2 said of an answer about tables in the words of now; others as they are."""
    if _ENDED_IN_0_2.search(counted) is None:
        return counted
    left_out = left_out_in_0_2(counted)
    further = _ENDED_IN_0_2.split(counted)[-1].removesuffix(left_out).strip()
    return f"{counted_rows(unit, left_out)} {further}".rstrip()


def asked_rows(unit: Unit) -> str:
    """Which rows of the table there are at all under public conditions; "" without any."""
    if not unit.conditions:
        return ""
    return f"Only rows{unit.conditions} are looked at; how many there are is not public. "


def not_counted(unit: Unit) -> str:
    """Which rows are not counted whoever they are of, in one line of a preview."""
    whose = "" if unit.person is None else f"{unit.anyone} or "
    return (
        f"not counted: rows without {whose}a value, "
        "rows with an unlisted label (unless the domain gives them a cell)"
    )
