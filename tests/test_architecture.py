"""How the package is built: its pages, drawings, imports and tests agree with the code."""

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

# Folders whose tests hold for the library as a whole, or for the helpers of tests.
APART = {"conformance", "red", "support", "trust", "typing"}
# Tests beside them that do so, too.
WHOLE = {
    "additions",
    "architecture",
    "bad_input",
    "coverage",
    "documents",
    "hostile_text",
    "interrupts",
    "known",
    "messy_files",
    "mistakes",
    "notebook",
    "organisation",
    "outputs",
    "ports",
    "processes",
    "public_names",
    "reference",
    "readme",
    "statements",
    "tutorial",
}


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
    for name in (
        set(re.findall(r"\bsfumato(?:\.[A-Za-z]\w*)+", page.read_text(encoding="utf-8"))) - GROUPS
    ):
        assert pkgutil.resolve_name(name) is not None


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


def test_the_layers_on_the_page_are_those_that_are_enforced():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    (block,) = re.findall(r"```text\n(interface .*?)```", PAGE, flags=re.S)
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


def without_a_module(tests, package):
    """Tests of a room that name none of its modules.

    A test beside the rooms names a module at the top.
    """
    for test in sorted(tests.rglob("test_*.py")):
        room, *_ = parts = test.relative_to(tests).parts
        if room in APART or (len(parts) == 1 and test.stem.removeprefix("test_") in WHOLE):
            continue
        module = package.joinpath(*parts[:-1], test.stem.removeprefix("test_"))
        if not (module.with_suffix(".py").exists() or (module / "__init__.py").exists()):
            yield "/".join(parts)


def test_every_test_names_a_module():
    strays = list(without_a_module(ROOT / "tests", PACKAGE))
    assert strays == []


def test_a_test_that_names_no_module_is_noticed(tmp_path):
    tests = tmp_path / "tests"
    package = tmp_path / "package"
    for path in (
        package / "room" / "table.py",
        package / "door.py",
        package / "room" / "tree" / "__init__.py",
        tests / "room" / "test_table.py",
        tests / "room" / "test_tree.py",
        tests / "room" / "test_chair.py",
        tests / "room" / "tree" / "test_table.py",
        tests / "test_door.py",
        tests / "test_house.py",
        tests / "trust" / "test_anything.py",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    strays = ["room/test_chair.py", "room/tree/test_table.py", "test_house.py"]
    assert list(without_a_module(tests, package)) == strays
