"""What a field looks like that did not parse, and the option that would read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.data.check import check
from sfumato.data.fields import forms_of, sentence

DOMAIN = sf.Domain(x=sf.Interval(0, 10_000), day=sf.Interval("2024-01-01", "2025-01-01"))


@pytest.mark.parametrize(
    ("column", "field", "option"),
    [
        ("x", "72,5", 'decimal=","'),
        ("x", "1.072,5", 'thousands="."'),
        ("x", "1'072", 'thousands="."'),
        ("day", "14.03.2024", 'date_format="%d.%m.%Y"'),
        ("day", "3/14/2024 5:30 PM", 'date_format="%d.%m.%Y"'),
        ("day", "45365", "Format the column as dates"),
    ],
)
def test_a_check_names_the_option(column: str, field: str, option: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f'"{field}"\n' for _ in range(3))
    path.write_text(f"{column}\n{rows}none\n")
    found = check(sf.source(path, {column: DOMAIN[column]}))
    assert [(each.missing, each.unparsed) for each in found.axes] == [(4, 4)]
    (hint,) = found.hints
    assert f"{column}: 3 of the fields" in hint
    assert option in hint
    assert field not in str(found)


def test_what_has_no_known_form_is_counted_only() -> None:
    assert not forms_of([b"x", b"", b"1", b"1,2,3"], of_times=False)
    assert not forms_of([b"tomorrow", b"2024", b"1.2"], of_times=True)
    assert sentence("x", "have a decimal comma", 2000).startswith("x: 2,000 of the fields")
