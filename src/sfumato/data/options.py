"""How the files of a source are written, where neither the file nor the domain can say it.

The custodian states these options. Nothing in the rows decides them: whether a point separates
thousands or decimals, a sniffer could learn from one person's row only.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sfumato.data.dates import DateFormat, date_format
from sfumato.data.readers.csv_rows import UTF_8, encoding_of
from sfumato.domain import iso_text
from sfumato.errors import UsageError, shown

TAB = "\t"
# What people can type on a command line for signs that they cannot type there.
_SEPARATOR_WORDS = {"tab": TAB, "\\t": TAB}

# What may stand between thousands. Signs that look alike are read as one.
_THOUSANDS = {sign: sign for sign in ".,' _"} | {"’": "'", "\u00a0": " ", "\u202f": " "}


class Notation(msgspec.Struct, frozen=True):
    """How the values of one column are written.

    Attributes
    ----------
    decimal : str
        What stands before the decimals: "." or ",".
    thousands : str or None
        What stands between thousands.
    dates : DateFormat or None
        The format of dates and times; None: ISO 8601.
    """

    decimal: str = "."
    thousands: str | None = None
    dates: DateFormat | None = None

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as programs write them."""
        return self.decimal == "." and self.thousands is None


PLAIN = Notation()


class FileOptions(msgspec.Struct, frozen=True):
    """How files are written; see ``source``. None: as the form of each file has it.

    Attributes
    ----------
    separator : str or None
        What separates the fields of a CSV file; None: a comma, or a tab in ``.tsv`` files.
    encoding : str
        The encoding of CSV files, by Python's name for it.
    header_row : int
        The line of a CSV file, or the row of a sheet, that names the columns; the first one is 1.
    sheet : str or None
        The sheet of an Excel file; None: its only one.
    decimal : str
    thousands : str or None
    date_formats : tuple of pairs of str and DateFormat
        The formats of columns, sorted; that of the empty name is of all other columns.
    """

    separator: str | None = None
    encoding: str = UTF_8
    header_row: int = 1
    sheet: str | None = None
    decimal: str = "."
    thousands: str | None = None
    date_formats: tuple[tuple[str, DateFormat], ...] = ()

    def notation(self, column: str) -> Notation:
        """Tell how the values of a column are written."""
        formats = dict(self.date_formats)
        dates = formats.get(column, formats.get(""))
        return Notation(self.decimal, self.thousands, dates)

    def stated(self) -> str:
        """Return the options that are not as by default, as a text; empty if there are none.

        Under other options the same file is other data, so the text is part of its label.
        """
        written = self.changed()
        if self.date_formats:
            written["date_formats"] = [(name, format_.text) for name, format_ in self.date_formats]
        return " ".join(f"{name}={option!r}" for name, option in written.items())

    def changed(self) -> dict[str, object]:
        """Return the options that are not as by default, by name."""
        options = {option: getattr(self, option) for option in self.__struct_fields__}
        return {
            option: stated
            for option, stated in options.items()
            if stated != getattr(NO_OPTIONS, option)
        }

    def require(self, form: str, name: str) -> None:
        """Refuse options that do not concern files of a form.

        Parameters
        ----------
        form : {"CSV", "Excel", "Parquet"}
        name : str
            What errors call the file.
        """
        of_others = {"CSV": ("sheet",), "Excel": ("separator", "encoding")}.get(form)
        for option in self.changed():
            if of_others is None or option in of_others:
                raise _unused(option, f"{name} is {'an' if form == 'Excel' else 'a'} {form} file")


NO_OPTIONS = FileOptions()


def _unused(option: str, obstacle: str) -> UsageError:
    forms = {"separator": "CSV files", "encoding": "CSV files", "sheet": "Excel files"}
    option = "date_format" if option == "date_formats" else option
    return UsageError(
        f"the option {option}",
        f"{obstacle}, and the option is about {forms.get(option, 'CSV and Excel files')}",
        "Leave it out",
    )


def refuse_without_files(options: FileOptions) -> None:
    """Refuse all options: the source is no file."""
    for option in options.changed():
        raise _unused(option, "the table is no file")


def stating(option: str, value: str) -> str:
    """Tell how an option is written, for messages.

    >>> stating("date_format", "%d.%m.%Y")
    'date_format="%d.%m.%Y" (command line: --date-format "%d.%m.%Y")'
    """
    return f'{option}="{value}" (command line: --{option.replace("_", "-")} "{value}")'


# --- what people write ----------------------------------------------------------------------------


class StatedOptions(msgspec.Struct, frozen=True):
    """The options as ``source`` takes them; None where one is left out."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    date_format: str | Mapping[str, str] | None = None
    sheet: str | None = None
    header_row: int | None = None


NOTHING_STATED = StatedOptions()


def file_options(stated: StatedOptions) -> FileOptions:
    """Check the options that are stated.

    Raises
    ------
    UsageError
        If one of them is wrong, or two of them contradict each other.
    """
    decimal = "." if stated.decimal is None else _text("decimal", stated.decimal)
    if decimal not in (".", ","):
        raise UsageError(
            f"decimal = {shown(decimal)}",
            "the sign before decimals is a point or a comma",
            'Write decimal="," for 1,5, or leave it out for 1.5',
        )
    # A plan may state any value of TOML.
    header_row: object = 1 if stated.header_row is None else stated.header_row
    if isinstance(header_row, bool) or not isinstance(header_row, int) or header_row < 1:
        raise UsageError(
            f"header_row = {shown(header_row)}",
            "it is the number of the line or row that names the columns, and the first one is 1",
            "Write header_row=3 if two lines stand above the names",
        )
    encoding = stated.encoding
    return FileOptions(
        separator=_separator(stated.separator),
        encoding=UTF_8 if encoding is None else encoding_of(_text("encoding", encoding)),
        header_row=header_row,
        sheet=None if stated.sheet is None else _text("sheet", stated.sheet),
        decimal=decimal,
        thousands=_thousands(stated.thousands, decimal),
        date_formats=_date_formats(stated.date_format),
    )


def _text(option: str, value: object) -> str:
    # A sheet or a date of a plan may come as a number or a date of TOML.
    if not isinstance(value, str) or not value:
        raise UsageError(
            f"{option} = {shown(iso_text(value))}",
            "it must be a text that is not empty",
            f'Write it in quotes, such as {option}="..."',
        )
    return value


def _separator(separator: object) -> str | None:
    if separator is None:
        return None
    text = _text("separator", separator)
    text = _SEPARATOR_WORDS.get(text, text)
    is_sign = len(text) == 1 and text.isascii() and not text.isalnum()
    if not is_sign or text in '"\n\r.+-' or not (text.isprintable() or text == TAB):
        raise UsageError(
            f"separator = {shown(separator)}",
            "it must be one sign, such as a semicolon, and no quotation mark, letter or digit",
            'Write separator=";", separator="tab" or separator="|"',
        )
    return text


def _thousands(thousands: object, decimal: str) -> str | None:
    if thousands is None:
        return None
    text = _text("thousands", thousands)
    if text not in _THOUSANDS or text == decimal:
        raise UsageError(
            f"thousands = {shown(thousands)}",
            f"it must be a point, a comma, an apostrophe or a blank, and not the {decimal!r} that "
            "stands before decimals",
            'Write thousands="." and decimal="," for 1.234,5, or leave it out',
        )
    return _THOUSANDS[text]


def _date_formats(given: object) -> tuple[tuple[str, DateFormat], ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        return (("", date_format(_text("date_format", given))),)
    return tuple(
        (_text("date_format", name), date_format(_text("date_format", given[name])))
        for name in sorted(given)
    )
