"""How axes from dates and times are written as text, and what somebody meant who wrote otherwise.

The form is ``NAME=month:COLUMN:FIRST..LAST``. Whoever puts its parts in another order is shown
their own words in the right one.
"""

from __future__ import annotations

import difflib
import re

from sfumato.domain.calendar import Hour, Month, Week, Weekday, Year
from sfumato.errors import UsageError, shown

Calendar = Month | Week | Year | Weekday | Hour

FIELDS: dict[str, type[Calendar]] = {
    "month": Month,
    "week": Week,
    "year": Year,
    "weekday": Weekday,
    "hour": Hour,
}
SPANS = {"month": "2025-01..2025-12", "week": "2025-W01..2025-W52", "year": "2020..2025"}
"""How spans are written, by an example of each field that has one."""

CLOSE = 0.8  # how alike a word is to the field that it means, such as months or weekdays
_FIELD = "|".join(FIELDS)
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_IN_NAME = re.compile(rf"(?:{_FIELD}):[^:=]+")
_BEHIND = re.compile(
    rf"[^:,=\"]+:(?:{_FIELD})|(?:{_FIELD})\([^(),]+\)|(?:{_FIELD}):[^:=,]+=[^:,]+\.\.[^:,]+"
)


def calendar_axis(name: str, field: str, text: str) -> Calendar:
    """Read COLUMN, COLUMN:FIRST..LAST, COLUMN:ZONE or COLUMN:FIRST..LAST:ZONE.

    >>> calendar_axis("by", "month", "day:2025-01..2025-12").all_labels[-1]
    '2025-12'
    """
    column, *further = text.split(":")
    span = further.pop(0) if further and ".." in further[0] else None
    if not column or len(further) > 1 or (span and field not in SPANS):
        example = f"{name}={field}:{column or 'COLUMN'}"
        either = f" or {example}:{SPANS[field]}" if field in SPANS else ""
        raise UsageError(
            f"--axis {name}={field}:{text}",
            "it is not a column, then a span or a time zone",
            f"Write {example}:Europe/Berlin{either}",
        )
    fields: dict[str, str | None] = {"timezone": further[0] if further else None}
    if span is not None:
        first, _, last = span.partition("..")
        fields |= {"first": first, "last": last}
    try:
        return FIELDS[field](column, **fields)
    except UsageError as error:
        if "first" in error.remedy or "Year(" in error.remedy:
            # The class speaks of its own arguments; here one types text.
            error.remedy = f"Write {name}={field}:{column}:{SPANS[field]}"
        raise


def refuse_misplaced(text: str) -> None:
    """Refuse what can only be an axis of the calendar whose parts stand in another order.

    Raises
    ------
    UsageError
    """
    name, _, values = text.partition("=")
    is_span = ".." in values and re.match(r"\s*[0-9]{4}-", values)
    if (_IN_NAME.fullmatch(name.strip()) and is_span) or _BEHIND.fullmatch(values.strip()):
        raise UsageError(
            f"--axis {shown(text)}",
            "the parts of an axis from dates stand in another order",
            f"Write {meant(text)}",
        )


def meant(text: str) -> str | None:
    """The axis of the calendar that somebody meant who wrote this; None if it names no field.

    >>> meant("month:day=2025-01..2025-12"), meant("by=day:weekdays")
    ('month=month:day:2025-01..2025-12', 'by=weekday:day')
    """
    words = [word for word in re.split(r"[=:,()\s]+", text) if word]
    fields = [field for word in words if (field := _field(word))]
    spans = [word for word in words if ".." in word]
    others = [word for word in words if ".." not in word and not _field(word)]
    if not fields or len(others) > 2 or not re.search(r"[:(]", text):
        return None
    field = fields[-1]
    name = others[0] if len(others) == 2 else field
    column = others[-1] if others else "COLUMN"
    if field not in SPANS:
        return f"{name}={field}:{column}"
    for span in [*spans, SPANS[field]]:
        try:
            calendar_axis(name, field, f"{column}:{span}")
        except UsageError:
            continue
        return f"{name}={field}:{column}:{span}"
    return None


def _field(word: str) -> str | None:
    close = difflib.get_close_matches(word.lower(), FIELDS, n=1, cutoff=CLOSE)
    return close[0] if close else None


def months_as_bounds(name: str, lower: str, upper: str) -> UsageError | None:
    """The error of bounds that are months; None if they are none.

    >>> print(months_as_bounds("d", "2025-01", "2025-12").remedy)
    Write d=2025-01-01..2026-01-01 for its days, or month=month:d:2025-01..2025-12 for its months
    """
    first, last = (_MONTH.fullmatch(end.strip()) for end in (lower, upper))
    if first is None or last is None:
        return None
    year, month = int(last[1]), int(last[2])
    after = f"{year + month // 12:04}-{month % 12 + 1:02}-01"
    return UsageError(
        f"--axis {name}",
        "its bounds are months, and the bounds of dates are days",
        f"Write {name}={first[0]}-01..{after} for its days, "
        f"or month=month:{name}:{first[0]}..{last[0]} for its months",
    )
