"""How the package is built: its pages, drawings and imports agree with the code."""

from __future__ import annotations

import pkgutil
import re
import tomllib
import xml.etree.ElementTree as ET
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from support import pages

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sfumato"
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("architecture", "extending")]
PAGE = PAGES[0].read_text(encoding="utf-8")
GROUPS = {"sfumato.questions", "sfumato.readers"}  # of entry points
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.svg"))
PATH = re.compile(r"[A-Za-z_][\w/]*(?:/|\.py\b|\.pyi\b)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_file_that_a_page_names_is_there(page):
    text = page.read_text(encoding="utf-8")
    own = {name for name, _ in pages.files(page)}
    named = {path for code in re.findall(r"`([^`\n]+)`", text) for path in PATH.findall(code)} - own
    assert len(named) > 8
    for path in named:
        assert "NAME" in path or (PACKAGE / path).exists() or (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_name_of_the_package_on_a_page_is_there(page):
    text = page.read_text(encoding="utf-8")
    files = {"sfumato.db"}
    for name in set(re.findall(r"\bsfumato(?:\.[A-Za-z]\w*)+", text)) - GROUPS - files:
        assert pkgutil.resolve_name(name) is not None


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_every_module_that_a_drawing_names_is_there(figure):
    # A long path goes on in a line of its own, which is a part of the same text.
    texts = ET.parse(figure).iter("{http://www.w3.org/2000/svg}text")
    text = " ".join("".join(each.itertext()) for each in texts)
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


@pytest.mark.parametrize(
    ("package", "first"), [("sfumato", "interface"), ("sfumato.questions", "composed")]
)
def test_the_layers_on_the_page_are_those_that_are_enforced(package, first):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each.get("containers") == [package])
    (block,) = re.findall(rf"```text\n({first} .*?)```", PAGE, flags=re.S)
    shown = [line.split(maxsplit=1)[1] for line in block.splitlines()]
    assert shown == [re.sub(r"[()]", "", layer) for layer in layers], (
        "docs/architecture.md shows other layers than pyproject.toml"
    )


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions and for types count, too."""
    graph = grimp.build_graph("sfumato", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 250
    TopologicalSorter(imports).prepare()  # raises an error that names the cycle


def test_a_cycle_is_noticed():
    with pytest.raises(CycleError, match="'a'"):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
