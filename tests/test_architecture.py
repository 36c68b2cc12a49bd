"""The page about how the package is built names what is there, and its drawings show what it says."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sfumato"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.svg"))
PATH = re.compile(r"[A-Za-z_][\w/]*(?:/|\.py\b|\.pyi\b)")


def test_every_module_that_the_page_names_is_there():
    named = [path for code in re.findall(r"`([^`\n]+)`", PAGE) for path in PATH.findall(code)]
    assert len(named) > 10
    for path in named:
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_every_module_that_a_drawing_names_is_there(figure):
    text = " ".join(ET.parse(figure).getroot().itertext())
    named = PATH.findall(re.sub(r"[({].*?[)}]", "", text))
    assert len(named) > 5 or figure.stem == "charge"
    for path in named:
        assert (PACKAGE / path).exists(), path


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_drawing_is_on_the_page_and_loads_nothing(figure):
    text = figure.read_text(encoding="utf-8")
    assert f"(figures/{figure.name})" in PAGE
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_floors_on_the_page_are_those_that_are_enforced():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    (block,) = re.findall(r"```text\n(doors .*?)```", PAGE, flags=re.S)
    shown = [line.split(maxsplit=1)[1] for line in block.splitlines()]
    assert shown == [re.sub(r"[()]", "", layer) for layer in layers], "docs/architecture.md shows other floors than pyproject.toml"
