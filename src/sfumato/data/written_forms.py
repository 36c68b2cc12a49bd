"""What fields that did not parse look like: counted for ``sfumato check``, which names the option.

The counts are true of the data, and serve the custodian's screen only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.data.file_options import stating


@dataclass(frozen=True)
class WrittenForm:
    """A form of fields, and what to do about it.

    Attributes
    ----------
    of_times : bool
        Whether the column is declared to hold dates or times; otherwise it holds numbers.
    pattern : re.Pattern of bytes
    looks : str
        What the fields look like.
    remedy : str
    """

    of_times: bool
    pattern: re.Pattern[bytes]
    looks: str
    remedy: str


WRITTEN_FORMS = (
    WrittenForm(
        of_times=False,
        pattern=re.compile(rb"[+-]?[0-9]+,[0-9]+"),
        looks="have a decimal comma",
        remedy=f"Add {stating('decimal', ',')}",
    ),
    WrittenForm(
        of_times=False,
        pattern=re.compile(rb"[+-]?[0-9]{1,3}([.,' ][0-9]{3})+([.,][0-9]+)?"),
        looks="have a sign between thousands",
        remedy=f"Add {stating('thousands', '.')}, or the sign that it is",
    ),
    WrittenForm(
        of_times=True,
        pattern=re.compile(rb"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}([ T,].*)?"),
        looks="look like dates of another form",
        remedy=f"Add {stating('date_format', '%d.%m.%Y')}, or the format that it is",
    ),
    WrittenForm(
        of_times=True,
        pattern=re.compile(rb"[0-9]{5}(\.[0-9]+)?"),
        looks="are numbers, as Excel counts days",
        remedy="Format the column as dates in Excel, and save the file again",
    ),
)


def forms_of(fields: Iterable[bytes], *, of_times: bool) -> Counter[str]:
    """Count the fields of each form; a field counts for the first that it has.

    Returns
    -------
    Counter of str
        By what the fields look like.

    >>> forms_of([b"72,5", b"x", b"1,5"], of_times=False)
    Counter({'have a decimal comma': 2})
    """
    known = [form for form in WRITTEN_FORMS if form.of_times == of_times]
    found = Counter[str]()
    for field in fields:
        looks = (form.looks for form in known if form.pattern.fullmatch(field.strip()))
        if (first := next(looks, None)) is not None:
            found[first] += 1
    return found


def sentence(column: str, looks: str, fields: int) -> str:
    """Say what fields of a column look like, and what to do."""
    remedy = next(form.remedy for form in WRITTEN_FORMS if form.looks == looks)
    return f"{column}: {fields:,} of the fields that do not parse {looks}. {remedy}."
