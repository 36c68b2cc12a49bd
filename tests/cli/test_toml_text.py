"""Whatever is written as TOML is read back as it was, and prints nothing that steers a terminal."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.output import toml_key, toml_text, toml_value
from sfumato.errors import UsageError, printable

TEXTS = st.text()
"""Of all characters but lone surrogates."""
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(TEXTS)
def test_every_text_is_read_back(text: str) -> None:
    written = f"{toml_key(text)} = {toml_text(text)}"
    assert tomllib.loads(written) == {text: text}
    assert printable(written) == written


@given(VALUES)
def test_every_value_is_read_back_with_its_type(value: object) -> None:
    found = tomllib.loads(f"value = {toml_value(value)}")["value"]
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Größe", '"Größe"'),
        ("a\U0001f600", '"a\U0001f600"'),
        ("a\x7fb\n", '"a\\u007fb\\u000a"'),
        ('C:\\"x"', '"C:\\\\\\"x\\""'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_only_what_is_read_otherwise_or_hides_is_escaped(text: str, written: str) -> None:
    assert toml_text(text) == written


def test_half_a_character_is_refused() -> None:
    with pytest.raises(UsageError, match="half a character"):
        toml_text("caf\udce9")
