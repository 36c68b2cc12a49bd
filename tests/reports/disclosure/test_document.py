"""The document is YAML that reads back as it was meant."""

from __future__ import annotations

import sys

import pytest
import yaml

import sfumato as sf
from sfumato.reports.disclosure.disclose import to_yaml
from sfumato.reports.disclosure.evidence import gathered
from sfumato.reports.disclosure.fields import Field, plain, todo

TREE = {
    "name": Field("a: b # c"),
    "date": Field("2026-11-22"),
    "yes": Field("yes"),
    "lines": Field("- one\n- two: 3"),
    "rights": Field("\u05d0\u05d1 \U0001f600 'quoted' \"twice\""),
    "list": Field(["x", "- y"]),
    "small": Field(1e-06),
    "deep": {"number": Field(4.0), "empty": todo("the number")},
}


def test_every_value_reads_back(releases):
    text = to_yaml(TREE, gathered(releases))
    assert yaml.safe_load(text) == plain(TREE)
    assert list(yaml.safe_load(text)) == list(TREE)
    assert "lines: |-\n  - one\n  - two: 3\n" in text
    assert text.startswith("# An entry for the OpenDP registry")
    assert "# Sfumato filled in 8 of 9 fields from the releases.\n" in text
    assert "#   deep.empty\n" in text
    assert text.endswith("\n")


def test_without_pyyaml_it_says_what_to_install(releases, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(sf.UsageError, match="pip install pyyaml"):
        to_yaml(TREE, gathered(releases))
