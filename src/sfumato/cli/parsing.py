"""How axes, bins and budgets are written as the text of an option.

*Axes from dates and times* (``calendar_axis``), and what somebody meant who wrote otherwise.

The form is ``NAME=month:COLUMN:FIRST..LAST``. Whoever puts its parts in another order is shown
their own words in the right one.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sfumato.basics import float_of_text, fraction, positive, whole_of_text
from sfumato.domain import (
    Axis,
    Categories,
    Domain,
    Hour,
    Interval,
    Keys,
    Label,
    Listed,
    Month,
    Week,
    Weekday,
    Year,
)
from sfumato.errors import BoundsRequired, UsageError, shown
from sfumato.privacy import Shares

if TYPE_CHECKING:
    from sfumato.questions.histogram.bins import AxisBins
    from sfumato.questions.tables.totals import Counts


# --- axes from dates and times --------------------------------------------------------------------

Calendar = Month | Week | Year | Weekday | Hour
T = TypeVar("T")
# The groups of the pattern of an axis; in an optional one there may be nothing.
Parts: TypeAlias = dict[str, str]
Build: TypeAlias = Callable[[str, Parts], Axis]

FIELDS: dict[str, type[Calendar]] = {
    "month": Month,
    "week": Week,
    "year": Year,
    "weekday": Weekday,
    "hour": Hour,
}
# How spans are written, by an example of each field that has one.
SPANS = {"month": "2025-01..2025-12", "week": "2025-W01..2025-W52", "year": "2020..2025"}

_FIELD = "|".join(FIELDS)
_IN_NAME = re.compile(rf"(?:{_FIELD}):[^:=]+")
_BEHIND = re.compile(
    rf"[^:,=\"]+:(?:{_FIELD})|(?:{_FIELD})\([^(),]+\)|(?:{_FIELD}):[^:=,]+=[^:,]+\.\.[^:,]+"
)
# COLUMN, COLUMN:FIRST..LAST, COLUMN:ZONE or COLUMN:FIRST..LAST:ZONE.
_CALENDAR = re.compile(
    r"(?P<column>[^:]+)(?::(?P<first>[^:]*?)\.\.(?P<last>[^:]*))?(?::(?P<timezone>[^:]*))?"
)


def calendar_axis(name: str, field: str, text: str) -> Calendar:
    """Read COLUMN, COLUMN:FIRST..LAST, COLUMN:ZONE or COLUMN:FIRST..LAST:ZONE.

    >>> calendar_axis("by", "month", "day:2025-01..2025-12").all_labels[-1]
    '2025-12'
    """
    match = _CALENDAR.fullmatch(text)
    if match is None or (match["first"] is not None and field not in SPANS):
        example = f"{name}={field}:{text.partition(':')[0] or 'COLUMN'}"
        either = f" or {example}:{SPANS[field]}" if field in SPANS else ""
        raise UsageError(
            f"--axis {name}={field}:{text}",
            "it is not a column, then a span or a time zone",
            f"Write {example}:Europe/Berlin{either}",
        )
    parts = {key: part for key, part in match.groupdict().items() if part is not None}
    try:
        return FIELDS[field](**parts)
    except UsageError as error:
        if "first" in error.remedy or "Year(" in error.remedy:
            # The class speaks of its own arguments; here one types text.
            error.remedy = f"Write {name}={field}:{parts['column']}:{SPANS[field]}"
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
    """Return the axis of the calendar that this text means; None if it names no field.

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
    name, column = [field, *(others or ["COLUMN"])][-2:]
    return f"{name}={field}:{column}{_span(field, spans)}"


def _span(field: str, spans: Iterable[str]) -> str:
    """Return the first of these spans that fits a field, behind a colon; "" if it takes none."""
    if field not in SPANS:
        return ""
    for span in spans:
        try:
            calendar_axis("x", field, f"x:{span}")
        except UsageError:
            continue
        return f":{span}"
    return f":{SPANS[field]}"


def _field(word: str) -> str | None:
    # A word that is so alike means the field, such as months or weekdays.
    close = difflib.get_close_matches(word.lower(), FIELDS, n=1, cutoff=0.8)
    return close[0] if close else None


_MONTH = r"[0-9]{4}-[0-9]{2}"
_NUMBER_OR_DATE = r"[+-]?(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]*\.?[0-9]+)"


# How many labels a message writes.
MOST_WRITTEN = 12


def _categories(name: str, parts: Parts) -> Axis:
    labels = _labels(name, parts["text"])
    if not all(labels):
        filled = list(filter(None, labels))
        further = ",..." if len(filled) > MOST_WRITTEN else ""
        raise UsageError(
            f"--axis {name}",
            "one of its labels is empty: two commas follow each other, or one ends the list",
            f"Write {name}={','.join(filled[:MOST_WRITTEN]) or 'a,b'}{further}",
        )
    return Categories(labels)


def _interval(name: str, parts: Parts) -> Axis:
    step = _bound(name, parts["step"]) if parts["step"] else None
    if isinstance(step, str):
        raise UsageError(f"--axis {name}", "its step is not a number", f"Write {name}=0..100/1")
    lower, upper = (_bound(name, parts[end]) for end in ("lower", "upper"))
    return Interval(lower, upper, step=step, missing=True if parts["missing"] else None)


def _refuse_months(name: str, parts: Parts) -> Axis:
    """Refuse bounds that are months: the bounds of dates are days."""
    first = parts["first"]
    last = parts["last"]
    year, month = (int(part) for part in last.split("-"))
    after = f"{year + month // 12:04}-{month % 12 + 1:02}-01"
    raise UsageError(
        f"--axis {name}",
        "its bounds are months, and the bounds of dates are days",
        f"Write {name}={first}-01..{after} for its days, "
        f"or month=month:{name}:{first}..{last} for its months",
    )


def _refusing(obstacle: str, remedy: str) -> Build:
    """Return what refuses an axis. ``word`` stands for a part of its text, in quotation marks."""

    def refuse(name: str, parts: Parts) -> Axis:
        words = {**parts, "name": name, "word": shown(parts.get("word"))}
        raise UsageError(f"--axis {name}", obstacle.format_map(words), remedy.format_map(words))

    return refuse


# How axes are written: a pattern, and what makes the axis of its groups or refuses it.
AXIS_FORMS: tuple[tuple[str, Build], ...] = (
    (r"\*", lambda name, parts: Keys()),
    (
        rf"(?P<field>{_FIELD}):(?P<text>[^,]*)",
        lambda name, parts: calendar_axis(name, parts["field"], parts["text"]),
    ),
    # One label that reads like bounds is refused: as a label, hardly a row would have it. Several
    # such labels, as of groups of ages, are labels.
    (
        rf"(?!.*\.\.)[\[(]?\s*(?P<lower>{_NUMBER_OR_DATE})\s*"
        rf"(?:-+|[–—:;]|to|until|\.|,(?=.*[\])]))\s*(?P<upper>{_NUMBER_OR_DATE})\s*[\])]?",
        _refusing(
            "it reads like bounds, and two dots stand between bounds",
            "Write {name}={lower}..{upper}; for labels, write all of them, with commas between",
        ),
    ),
    (r'(?P<text>(?!.*\.\.).*|.*".*)', _categories),
    (
        r"[^,]*,(?P<word>\d.*)",
        _refusing(
            "a comma stands before {word}, and bounds have a decimal point",
            "Write bounds as in {name}=0.5..60, whatever the file has",
        ),
    ),
    (
        r"[^,]*,(?!\s*missing\s*$)(?P<word>.*)",
        _refusing(
            "behind the bounds stands {word}, and not ',missing'",
            "Write {name}=0..100, or {name}=0..100,missing for a bin of missing values",
        ),
    ),
    (
        r"(?:(?!\.\.)[^,])*/.*|[^/]*/[^,]*/.*",
        _refusing(
            "a date is written with hyphens, year first",
            "Write dates as 2025-01-31, such as admitted=2025-01-01..2026-01-01",
        ),
    ),
    (rf"\s*(?P<first>{_MONTH})\s*\.\.\s*(?P<last>{_MONTH})\s*(?:[/,].*)?", _refuse_months),
    (
        r"(?P<lower>.*?)\.\.(?P<upper>[^/,]*)(?:/(?P<step>[^,]*))?(?P<missing>,.*)?",
        _interval,
    ),
)


def parse_axes(texts: tuple[str, ...]) -> dict[str, Axis]:
    """Read --axis options.

    Parameters
    ----------
    texts : tuple of str
        NAME=LOW..HIGH, NAME=LOW..HIGH/STEP, either with ",missing" behind; NAME=a,b,c; NAME=*;
        or a field of the calendar: NAME=weekday:COLUMN, NAME=month:COLUMN:FIRST..LAST, with :ZONE
        behind for a time zone.

    Raises
    ------
    BoundsRequired
        If an axis has neither bounds nor labels.
    UsageError
        If an axis is given twice, or its step is not a number.

    >>> parse_axes(("hour=0..24/1", "kind=a,b"))["hour"].natural_cells
    24
    """
    axes: dict[str, Axis] = {}
    for text in texts:
        refuse_misplaced(text)
        name, _, values = (part.strip() for part in text.partition("="))
        if not name or not values:
            form = f"{name or 'age'}=0..100 or {name or 'kind'}=a,b,c, without blanks around ="
            raise BoundsRequired(
                f"--axis {shown(text)}",
                "an axis needs public bounds or labels",
                f"Write {meant(text) or form}",
            )
        if name in axes:
            raise UsageError(f"--axis {name}", "it is given twice", "Give each axis once")
        axes[name] = _axis(name, values)
    return axes


def _axis(name: str, values: str) -> Axis:
    try:
        forms = ((re.fullmatch(form, values, re.DOTALL), build) for form, build in AXIS_FORMS)
        return next(build(name, match.groupdict()) for match, build in forms if match)
    except UsageError as error:
        # The domain speaks of its own classes; here one types text.
        option = f"--axis {shown(f'{name}={values}')}"
        raise type(error)(option, error.obstacle, _remedy(error, name, values)) from None


def _remedy(error: UsageError, name: str, values: str) -> str:
    """Return what to write instead: an axis of the calendar, if that is what was meant."""
    field, colon, _ = values.partition(":")
    calendar = None
    if colon and (field not in FIELDS or "," in values):
        calendar = meant(f"{name}={values}")
    return error.remedy if calendar is None else f"Write {calendar}"


def _labels(name: str, text: str) -> tuple[str, ...]:
    """Divide labels at commas; one that has a comma stands in double quotes, as in CSV."""
    labels = text.split(",")
    if '"' in text:
        try:
            (labels,) = csv.reader([text], skipinitialspace=True, strict=True)
        except (csv.Error, ValueError):
            raise UsageError(
                f"{name}={text}",
                "a double quote begins a label, and none ends it before the next comma",
                f"""Write '{name}=a,"b, c"' for a label with a comma, and two for a quote in it""",
            ) from None
    return tuple(label.strip() for label in labels)


def parse_where(texts: tuple[str, ...], domain: Domain) -> dict[str, object]:
    """Read --where options: NAME=a,b for labels, NAME=LOW..HIGH for numbers, dates and times.

    Raises
    ------
    UsageError
        If an axis is not declared or is named twice, or a condition does not fit it.

    >>> domain = Domain(parse_axes(("age=0..120", "kind=a,b")))
    >>> parse_where(("age=18..", "kind=a"), domain)
    {'age': (18, None), 'kind': ['a']}
    """
    where: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(
                f"--where {text}", "it names no condition", "Write --where kind=a,b or age=18..65"
            )
        if name in where:
            raise UsageError(f"--where {name}", "it is given twice", "Give each axis once")
        where[name] = _condition(name, value, domain.get(name))
    return where


def _condition(name: str, text: str, axis: Axis | None) -> object:
    if not isinstance(axis, Interval):
        labels = axis.all_labels if isinstance(axis, Listed) else ()
        known = {str(label): label for label in labels}
        return [known.get(label, label) for label in _labels(name, text)]
    lower, dots, upper = text.partition("..")
    if not dots:
        raise UsageError(
            f"--where {name}={text}",
            "the axis has numbers or dates, and the condition on it is a range",
            f"Write --where {name}=LOW..HIGH, from LOW to below HIGH",
        )
    ends = (end.strip() for end in (lower, upper))
    return tuple(_bound(name, end) if end else None for end in ends)


def _refuse_two_readings(text: str) -> None:
    """Refuse 20.000: whoever means twenty thousand would have all values cut at twenty."""
    if re.fullmatch(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{2}0", text):
        raise UsageError(
            f"the number {text}",
            f"{text} may have a decimal point or a sign between thousands",
            f"Write {float(text):.15g} or {text.replace('.', '')}",
        )


def _bound(name: str, text: str) -> int | float | str:
    """Read a number, or else text that the domain reads as a date or time."""
    text = text.strip()
    _refuse_two_readings(text)
    whole = whole_of_text(text)
    number = float_of_text(text) if whole is None else whole
    if number is not None:
        return number
    if not text:
        raise BoundsRequired(
            f"--axis {name}", "one of its bounds is missing", f"Write {name}=0..100"
        )
    return text


def _by_axis(texts: tuple[str, ...], read: Callable[[str], T]) -> T | dict[str, T] | None:
    """Read one text for all axes, or NAME=TEXT for each; None if there is none."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return read(texts[0])
    named = (text.partition("=") for text in texts)
    return {name: read(value) for name, _, value in named}


def parse_bins(texts: tuple[str, ...]) -> AxisBins | dict[str, AxisBins] | None:
    """Read --bins options: a number, or NAME=NUMBER, or NAME=edge,edge,edge."""
    return _by_axis(texts, _bins)


def _bins(text: str) -> AxisBins:
    text = text.strip()
    if "," in text:
        return tuple(_bound("bins", edge) for edge in text.split(","))
    whole = whole_of_text(text)
    if whole is None:
        raise UsageError(
            f"--bins {text}",
            "it is neither a number nor a list of edges",
            "Write --bins 20 or --bins age=0,18,65,120",
        )
    return whole


def parse_widths(texts: tuple[str, ...]) -> float | dict[str, float] | None:
    """Read --width options: a number, or NAME=NUMBER."""
    return _by_axis(texts, lambda width: float(positive(width, "width")))


def parse_tables(texts: Iterable[str]) -> list[list[str]]:
    """Read --table options: the columns of each table, separated by commas."""
    return [[name.strip() for name in text.split(",") if name.strip()] for text in texts]


def parse_totals(texts: Iterable[str]) -> dict[tuple[str, ...], Counts]:
    """Read --totals options: NAME=LABEL:COUNT,LABEL:COUNT or a number of rows.

    Counts without labels are in the order of the cells; a table of several columns has such ones
    only, and is named by all of them.

    >>> parse_totals(["200", "sex=f:120,m:80", "sex,age=60,60,40,40"])
    {(): 200, ('sex',): {'f': 120, 'm': 80}, ('sex', 'age'): [60, 60, 40, 40]}
    """
    totals: dict[tuple[str, ...], Counts] = {}
    for text in texts:
        named, _, counts = text.rpartition("=")
        axes = tuple(name.strip() for name in named.split(",")) if named else ()
        if axes in totals:
            raise UsageError(
                f"--totals {text}", "it is given twice", "Give all of its counts in one option"
            )
        totals[axes] = _counts(text, counts) if axes else _count_of(text, counts)
    return totals


def _counts(text: str, counts: str) -> Counts:
    parts = _labels("--totals", counts)
    if not all(":" in part for part in parts):
        return [_count_of(text, count) for count in parts]
    cells = [part.rpartition(":") for part in parts]
    labels: dict[Label, int] = {label.strip(): _count_of(text, count) for label, _, count in cells}
    if len(labels) < len(cells):
        raise UsageError(f"--totals {text}", "a label has two counts", "Name each label once")
    return labels


def _count_of(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", text.strip()):
        raise UsageError(
            f"--totals {option}",
            f"{shown(text)} is not a whole number of at least 0",
            "Write region=north:120,south:80, or 200 for the number of all rows",
        )
    return int(text)


def parse_clip(text: str) -> object:
    """Read --clip: a number, LOW:HIGH or auto; None if it is neither.

    >>> parse_clip("200"), parse_clip("-5:20"), parse_clip("auto"), parse_clip("a:b")
    (200.0, (-5.0, 20.0), 'auto', None)
    """
    if text.strip() == "auto":
        return "auto"
    ends = [end.strip() for end in text.split(":")]
    for end in ends:
        _refuse_two_readings(end)
    bounds = [float_of_text(end) for end in ends]
    if None in bounds or len(bounds) > 2:
        return None
    return bounds[0] if len(bounds) == 1 else tuple(bounds)


def parse_shares(text: str) -> Shares | None:
    """Read --shares: named parts; one that is left out is 0. None if they are no such parts.

    >>> parse_shares("release=2,threshold=0.5").weights
    [Fraction(2, 1), Fraction(0, 1), Fraction(1, 2)]
    """
    parts: dict[str, str] = {"partition": "0", "threshold": "0"}
    for share in text.split(","):
        name, sign, number = (part.strip() for part in share.partition("="))
        if not sign or name not in Shares.__struct_fields__:
            return None
        parts[name] = number
    if "release" not in parts:
        return None
    return Shares(**{name: fraction(number, name) for name, number in parts.items()})


def parse_allocation(text: str) -> str | tuple[str, ...]:
    """Read --allocation: a name, or weights.

    >>> parse_allocation("geometric"), parse_allocation("1, 2,4")
    ('geometric', ('1', '2', '4'))
    """
    parts = tuple(part.strip() for part in text.split(","))
    return text.strip() if len(parts) == 1 else parts
