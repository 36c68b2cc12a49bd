"""How axes, bins and budgets are written as the text of an option.

*Axes from dates and times* (``calendar_axis``), and what somebody meant who wrote otherwise.

The form is ``NAME=month:COLUMN:FIRST..LAST``. Whoever puts its parts in another order is shown
their own words in the right one.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sfumato.basics.numbers import float_of_text, fraction, positive, whole_of_text
from sfumato.domain import (
    Axis,
    Categories,
    Domain,
    Hour,
    Interval,
    Keys,
    Listed,
    Month,
    Week,
    Weekday,
    Year,
)
from sfumato.errors import BoundsRequired, UsageError, shown
from sfumato.privacy import CentralMeasure, Shares, measure_of

if TYPE_CHECKING:
    from sfumato.domain import Label
    from sfumato.questions.histogram.bins import AxisBins
    from sfumato.questions.tables.totals import Counts


# --- axes from dates and times --------------------------------------------------------------------

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


# --- all others -----------------------------------------------------------------------------------

_NUMBER_OR_DATE = r"[+-]?(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]*\.?[0-9]+)"
_RANGE = re.compile(
    rf"[\[(]?\s*(?P<lower>{_NUMBER_OR_DATE})\s*(?:-+|[–—:;]|to|until|\.|,(?=.*[\])]))\s*"
    rf"(?P<upper>{_NUMBER_OR_DATE})\s*[\])]?"
)
"""Two numbers or dates with something else than two dots between them."""
_TWO_READINGS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{2}0")
"""A number such as 20.000: twenty to some, and twenty thousand to others."""
DATES_REMEDY = "Write dates as 2025-01-31, such as admitted=2025-01-01..2026-01-01"


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
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not name or not values:
            form = f"{name or 'age'}=0..100 or {name or 'kind'}=a,b,c, without blanks around ="
            raise BoundsRequired(
                f"--axis {shown(text)}",
                "an axis needs public bounds or labels",
                f"Write {meant(text) or form}",
            )
        if name in axes:
            raise UsageError(f"--axis {name}", "it is given twice", "Give each axis once")
        try:
            axes[name] = _axis(name, values)
        except UsageError as error:
            # The domain speaks of its own classes; here one types text.
            asked = f"--axis {shown(f'{name}={values}')}"
            remedy = error.remedy
            if ":" in values and ("," in values or values.partition(":")[0] not in FIELDS):
                calendar = meant(f"{name}={values}")
                remedy = f"Write {calendar}" if calendar else remedy
            raise type(error)(asked, error.obstacle, remedy) from None
    return axes


def _axis(name: str, text: str) -> Axis:
    if text == "*":
        return Keys()
    part, colon, rest = text.partition(":")
    if colon and part in FIELDS and "," not in rest:
        return calendar_axis(name, part, rest)
    if ".." not in text or '"' in text:
        _refuse_range(name, text)
        labels = _labels(name, text)
        if not all(labels):
            raise UsageError(
                f"--axis {name}",
                "one of its labels is empty: two commas follow each other, or one ends the list",
                f"Write {name}={','.join(filter(None, labels)) or 'a,b'}",
            )
        return Categories(labels)
    text, comma, word = text.partition(",")
    if comma and re.match(r"\d", word):
        raise UsageError(
            f"--axis {name}",
            f"a comma stands before {shown(word)}, and bounds have a decimal point",
            f"Write bounds as in {name}=0.5..60, whatever the file has",
        )
    if comma and word.strip() != "missing":
        raise UsageError(
            f"--axis {name}",
            f"behind the bounds stands {shown(word)}, and not ',missing'",
            f"Write {name}=0..100, or {name}=0..100,missing for a bin of missing values",
        )
    lower, _, rest = text.partition("..")
    upper, _, step_text = rest.partition("/")
    if "/" in lower or "/" in step_text:
        raise UsageError(
            f"--axis {name}", "a date is written with hyphens, year first", DATES_REMEDY
        )
    step = _step(name, step_text) if step_text else None
    if (refusal := months_as_bounds(name, lower, upper)) is not None:
        raise refusal
    missing = True if comma else None
    return Interval(_bound(name, lower), _bound(name, upper), step=step, missing=missing)


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


def _refuse_range(name: str, text: str) -> None:
    """Refuse one label that reads like bounds: as a label, hardly a row would have it.

    Several such labels, as of groups of ages, are labels.
    """
    found = _RANGE.fullmatch(text)
    if found is not None:
        lower, upper = found["lower"], found["upper"]
        raise UsageError(
            f"--axis {name}",
            "it reads like bounds, and two dots stand between bounds",
            f"Write {name}={lower}..{upper}; for labels, write all of them, with commas between",
        )


def _refuse_two_readings(text: str) -> None:
    """Refuse 20.000: whoever means twenty thousand would have all values cut at twenty."""
    if _TWO_READINGS.fullmatch(text):
        raise UsageError(
            f"the number {text}",
            f"{text} may have a decimal point or a sign between thousands",
            f"Write {float(text):.15g} or {text.replace('.', '')}",
        )


def _bound(name: str, text: str) -> int | float | str:
    """A number, or else text that the domain reads as a date or time."""
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


def _step(name: str, text: str) -> int | float:
    step = _bound(name, text)
    if isinstance(step, str):
        raise UsageError(f"--axis {name}", "its step is not a number", f"Write {name}=0..100/1")
    return step


def parse_bins(texts: tuple[str, ...]) -> AxisBins | dict[str, AxisBins] | None:
    """Read --bins options: a number, or NAME=NUMBER, or NAME=edge,edge,edge."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _bins(texts[0])
    named = (text.partition("=") for text in texts)
    return {name: _bins(bins) for name, _, bins in named}


def _bins(text: str) -> AxisBins:
    """A number of bins, or their edges."""
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
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return float(positive(texts[0], "width"))
    named = (text.partition("=") for text in texts)
    return {name: float(positive(width, "width")) for name, _, width in named}


def parse_totals(texts: Iterable[str]) -> dict[tuple[str, ...], Counts]:
    """Read --totals options: NAME=LABEL:COUNT,LABEL:COUNT or a number of rows.

    Counts without labels are in the order of the cells; a table of several columns has such ones
    only, and is named by all of them.

    >>> parse_totals(["200", "sex=f:120,m:80", "sex,age=60,60,40,40"])
    {(): 200, ('sex',): {'f': 120, 'm': 80}, ('sex', 'age'): [60, 60, 40, 40]}
    """
    found: dict[tuple[str, ...], Counts] = {}
    for text in texts:
        named, _, counts = text.rpartition("=")
        axes = tuple(name.strip() for name in named.split(",")) if named else ()
        if axes in found:
            remedy = "Give all of its counts in one option"
            raise UsageError(f"--totals {text}", "it is given twice", remedy)
        parts = _labels("--totals", counts)
        if not axes:
            found[axes] = _count_of(text, counts)
        elif all(":" in part for part in parts):
            cells = [part.rpartition(":") for part in parts]
            labels: dict[Label, int] = {}
            for label, _, count in cells:
                labels[label.strip()] = _count_of(text, count)
            if len(labels) < len(cells):
                obstacle = "a label has two counts"
                raise UsageError(f"--totals {text}", obstacle, "Name each label once")
            found[axes] = labels
        else:
            found[axes] = [_count_of(text, count) for count in parts]
    return found


def _count_of(option: str, text: str) -> int:
    """A number of rows, in digits."""
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


def parse_budget(
    budget: str | None, *, gaussian: bool, option: str = "--budget"
) -> CentralMeasure | None:
    """Read --budget in the measure of the release.

    Parameters
    ----------
    budget : str or None
        EPSILON or EPSILON,DELTA; for Gaussian noise, RHO. None: the account exists already.
    gaussian : bool
        Whether the cost is given as --rho.
    option : str
        What messages call it.
    """
    if budget is None:
        return None
    if gaussian:
        positive(budget, option)
        return measure_of(option, rho=budget)
    epsilon, comma, delta = budget.partition(",")
    # Checked first under the name of the option: an epsilon stands beside it in the command.
    positive(epsilon, option)
    fraction(delta if comma else 0, f"the delta of {option}")
    return measure_of(option, epsilon=epsilon, delta=delta if comma else 0)


def parse_shares(text: str) -> Shares | None:
    """Read --shares: named parts; one that is left out is 0. None if they are no such parts.

    >>> parse_shares("release=2,threshold=0.5").weights
    [Fraction(2, 1), Fraction(0, 1), Fraction(1, 2)]
    """
    parts: dict[str, str] = {"partition": "0", "threshold": "0"}
    for each in text.split(","):
        name, sign, number = (part.strip() for part in each.partition("="))
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


def parse_captions(
    heading: str | None, measured_in: str | None, label_names: Sequence[str]
) -> dict[str, object]:
    """Read --heading, --measured-in and --label-name as fields of a question.

    >>> parse_captions("Delays", None, ["WN=Southwest"])
    {'heading': 'Delays', 'label_names': {'WN': 'Southwest'}}
    """
    named = dict(map(_label_name, label_names))
    given = {"heading": heading, "measured_in": measured_in, "label_names": named}
    return {name: words for name, words in given.items() if words}


def _label_name(text: str) -> tuple[str, str]:
    label, sign, name = text.partition("=")
    if not (label and sign and name):
        obstacle = "it names no label, or gives it no name"
        raise UsageError(f"--label-name {text}", obstacle, "Write --label-name WN=Southwest")
    return label, name
