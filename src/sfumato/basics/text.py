"""How numbers, labels, small tables and addresses of databases are shown to people.

Numbers, labels and tables are shown as text, and as HTML for notebooks. The HTML takes fonts and
colours from the page that shows it, so that it is at home in light and in dark notebooks. Every
text in it is escaped.

An address of a database, as people write it, may hold a password. What is shown of an address is
what is known to be harmless: the server, its port and the database. User, password and parameters
are never shown.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from sfumato.errors import UsageError, steers

if TYPE_CHECKING:
    from pathlib import Path

    import jinja2

# What stands in a column: counts and sums, values of an axis, or labels.
Kind: TypeAlias = Literal["amount", "value", "label"]

LONGEST_CELL = 80
MOST_LISTED = 12
LONGEST_LABEL = 28


def number(value: float) -> str:
    """Print a number for people: thousands parted, a real minus sign.

    >>> number(-1234.0), number(0.25)
    ('−1,234', '0.25')
    """
    text = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


IRREGULAR = {"aircraft": "aircraft", "child": "children", "man": "men", "woman": "women"}
SINGULAR = {"are": "is", "do": "does", "have": "has", "were": "was"}


def plural(noun: str) -> str:
    """The plural of a noun, by the rules of spelling."""
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|z|ch|sh)$", noun) else f"{noun}s"


def agreeing(count: int, verb: str) -> str:
    """A verb as it stands behind a number.

    >>> agreeing(1, "are"), agreeing(2, "are"), agreeing(1, "lie")
    ('is', 'are', 'lies')
    """
    return verb if count != 1 else SINGULAR.get(verb, f"{verb}s")


def several(count: int, noun: str, verb: str = "") -> str:
    """A number of things, and what they do.

    >>> several(1, "row", "have"), several(1200, "box"), several(0, "row", "are")
    ('1 row has', '1,200 boxes', '0 rows are')
    """
    things = f"{count:,} {noun if count == 1 else plural(noun)}"
    return f"{things} {agreeing(count, verb)}" if verb else things


def plain(text: object, longest: int = LONGEST_LABEL) -> str:
    """Make a label safe to show: nothing that steers a screen, and cut where it is too long."""
    shown = _tamed(str(text))
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def _tamed(text: str) -> str:
    """Put a blank for all that steers a screen or hides on it (see ``errors.printable``)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if steers(character) else character for character in text)


def tamed_lines(text: str) -> str:
    """The same for text of several lines, such as a picture: the line breaks are ours, and stay."""
    return "\n".join(map(_tamed, text.split("\n")))


def cell(value: object, kind: Kind = "amount") -> str:
    """Print one value of a table.

    Parameters
    ----------
    value : bool, None, str, int, float, or something that prints itself
    kind : {"amount", "value", "label"}
        Thousands are parted in amounts, such as counts; in values of an axis from 10,000 on, so
        that the year 2003 is one; and never in labels, such as postal codes.

    >>> cell(2003), cell(2003, "value"), cell(20030, "value"), cell(20030, "label")
    ('2,003', '2003', '20,030', '20030')
    >>> cell(None), cell(True), cell(-0.25)
    ('–', 'yes', '−0.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, int | float):
        return plain(value, LONGEST_CELL)
    # From these on, thousands are parted.
    least = {"amount": 0, "value": 10_000, "label": math.inf}
    parted = abs(value) >= least[kind]
    form = ("," if parted else "") + ("" if isinstance(value, int) else ".6g")
    return format(value, form).replace("-", "−")


class Table(msgspec.Struct, frozen=True):
    """The first rows of a table, as text.

    Attributes
    ----------
    columns : tuple of str
    text : tuple of bool
        Whether each column is text, which is aligned to the left.
    rows : tuple of tuples of str
    total : int
        How many rows there are, also those not shown.
    """

    columns: tuple[str, ...]
    text: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


# --- text -----------------------------------------------------------------------------------------

WIDTH = 80


def text_grid(table: Table) -> str:
    """A table as lines of text, and how many rows are left out.

    >>> print(text_grid(Table(("x", "count"), (True, False), (("a", "5"), ("bc", "1,200")), 9)))
    x   count
    a       5
    bc  1,200
    … and 7 more rows: to_frame() has all.
    """
    lines = [tuple(map(_tamed, row)) for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(
            text.ljust(width) if is_text else text.rjust(width)
            for text, width, is_text in zip(row, widths, table.text, strict=True)
        ).rstrip()
        for row in lines
    ]
    return "\n".join([*shown, *_left_out(table)])


def paragraph(text: str) -> str:
    """Sentences in lines of text, broken between words."""
    return "\n".join(
        textwrap.fill(sentence, WIDTH, break_long_words=False, break_on_hyphens=False)
        for sentence in tamed_lines(text).split("\n")
    )


def _left_out(table: Table) -> list[str]:
    further = table.total - len(table.rows)
    return [f"… and {several(further, 'more row')}: to_frame() has all."] if further else []


# --- HTML -----------------------------------------------------------------------------------------

# Alignment and space only: fonts and colours are those of the page.
STYLE = (
    "div.sfumato{line-height:1.4}"
    "div.sfumato p{margin:.3em 0;max-width:50em}"
    "div.sfumato table{border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums}"
    "div.sfumato :is(th,td){padding:.15em .7em;text-align:right;vertical-align:top}"
    "div.sfumato .text{text-align:left}"
)


def card(title: str, *parts: str) -> str:
    """A title with parts below it, each of them HTML that the functions here made."""
    head = f"<p><strong>{escape(plain(title, 200))}</strong></p>"
    return f'<div class="sfumato"><style>{STYLE}</style>{head}{"".join(parts)}</div>'


def line(text: str) -> str:
    """A sentence, or several."""
    return f"<p>{_typeset(text)}</p>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, one pair a row."""
    rows = "".join(
        f'<tr><th scope="row" class="text">{_typeset(name)}</th>'
        f'<td class="text">{_typeset(what)}</td></tr>'
        for name, what in pairs
    )
    return f"<table><tbody>{rows}</tbody></table>"


def grid(table: Table) -> str:
    """A table with its head, and how many rows are left out."""
    classes = [' class="text"' if text else "" for text in table.text]
    head = "".join(
        f'<th scope="col"{side}>{_typeset(name)}</th>'
        for name, side in zip(table.columns, classes, strict=True)
    )
    body = ""
    for row in table.rows:
        cells = [
            f"<td{side}>{_typeset(text)}</td>" for text, side in zip(row, classes, strict=True)
        ]
        body += f"<tr>{''.join(cells)}</tr>"
    made = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return made + "".join(map(line, _left_out(table)))


def structs(axes: Mapping[str, msgspec.Struct]) -> str:
    """The axes of a domain, one a row: their names, kinds and what is declared of them."""
    rows = []
    for name, axis in axes.items():
        fields = msgspec.structs.asdict(axis)
        given = {field: setting for field, setting in fields.items() if setting is not None}
        words = []
        if {"lower", "upper"} <= set(given):
            words.append(f"{given.pop('lower')} to {given.pop('upper')}")
        for field, setting in given.items():
            text = _listed(setting) if isinstance(setting, tuple) else str(setting)
            words.append(f"{field.replace('_', ' ')}: {text}")
        rows.append((name, type(axis).__name__, "; ".join(words)))
    return grid(Table(("axis", "kind", "declared"), (True, True, True), tuple(rows), len(rows)))


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(plain(value) for value in values[:MOST_LISTED])
    further = len(values) - MOST_LISTED
    return f"{shown} and {further:,} more" if further > 0 else shown


def _typeset(text: str) -> str:
    return escape(tamed_lines(text.replace("+-", "±"))).replace("\n", "<br>")


@cache
def page_template(path: Path) -> jinja2.Template:
    """Load the template of a page. Every value is tamed and escaped; a missing one is an error."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(path.parent),
        autoescape=True,
        finalize=_tamed_value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return made.get_template(path.name)


def _tamed_value(value: object) -> object:
    # What is HTML already, such as a part of the page, was tamed when it was made.
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return tamed_lines(str(value)) if is_text else value


# --- addresses of databases -----------------------------------------------------------------------

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # a single letter is a drive of Windows
_CREDENTIALS = re.compile(r":[^/\\]*@|pass(word|wd)?\s*=|pwd\s*=", re.I)
_HARMLESS = re.compile(r"[\w.,:%/ \[\]{}=*+~-]*")

# Kinds of addresses that no file is named by, also where no two slashes follow.
KINDS = frozenset(
    {
        *("bigquery", "clickhouse", "cockroachdb", "databricks", "db2", "duckdb", "file", "hive"),
        *("impala", "jdbc", "mariadb", "md", "mongodb", "mssql", "mysql", "odbc", "oracle"),
        *("postgres", "postgresql", "presto", "redshift", "snowflake", "spark", "sqlite"),
        *("sqlserver", "trino"),
    }
)


def kind_of(text: str) -> str | None:
    """The kind of address that a text is meant as; None for the path of a file.

    "" stands for one that names no kind, and seems to hold a password.

    >>> kind_of("duckdb:trips.db"), kind_of("jdbc:sqlite:trips.db"), kind_of("mysql://host/trips")
    ('duckdb', 'jdbc', 'mysql')
    >>> kind_of("ada:secret@host/trips")
    ''
    >>> [kind_of(path) for path in ("budget.db", "2026-11-22T10:30.db", "C:\\\\budget.db", "a:b")]
    [None, None, None, None]
    """
    scheme = _SCHEME.match(text)
    if scheme is not None:
        kind = scheme[1].lower()
        if kind.partition("+")[0] in KINDS or "://" in text:
            return kind
    return "" if "://" in text or _CREDENTIALS.search(text) else None


def public_place(address: str) -> str:
    """The address of a place without user, password and parameters.

    >>> public_place("postgresql://ada:secret@host:5433/trips?password=secret")
    'postgresql://host:5433/trips'
    >>> public_place("postgresql://ada:se/cret@host/trips")
    'postgresql://...'
    """
    scheme, sign, rest = address.partition("://")
    if not sign or not _SCHEME.fullmatch(f"{scheme}:"):
        return f"{kind_of(address) or '...'}:..."
    place = rest.partition("?")[0].rpartition("@")[2]
    is_harmless = _HARMLESS.fullmatch(place) and not _CREDENTIALS.search(place)
    return f"{scheme}://{place if is_harmless and is_clear(address) else '...'}"


def is_clear(address: str) -> bool:
    """Whether all who read the address find the same password: no sign of it ends it too soon."""
    before, at, after = address.partition("://")[2].partition("@")
    return not at or not (set("/?#") & set(before) or "@" in after)


def require_clear(address: str, request: str) -> None:
    """Refuse an address in which a part of the password might be taken for a part of the place.

    Parameters
    ----------
    address : str
        Of a server, with ``://``.
    asked : str
        What is asked for, for the message.

    Raises
    ------
    UsageError
        If the address is not clear; the message quotes nothing of it.
    """
    if not is_clear(address):
        raise UsageError(
            request,
            "it is not clear where the user and the password end",
            "Write %40 for @, %2F for /, %3F for ? and %23 for # in a name, a password or a value",
        )
