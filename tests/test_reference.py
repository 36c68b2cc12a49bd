"""The reference is complete: every public name says what it takes and gives, with an example."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import sfumato as sf
from sfumato import extending, streaming

ROOT = Path(__file__).parent.parent
MODULES: tuple[ModuleType, ...] = (sf, sf.risk, sf.testing, extending, streaming)
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", re.S | re.M)
ENTRY = re.compile(r"^([\w*][\w, *]*)(?: : |$)", re.M)


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
}
FUNCTIONS = {name: each for name, each in PUBLIC.items() if inspect.isfunction(each)}
CLASSES = {name: each for name, each in PUBLIC.items() if inspect.isclass(each)}


def documented(text: str) -> set[str]:
    """The parameters that a docstring has an entry for."""
    section = PARAMETERS.search(text)
    entries = ENTRY.findall(section.group(1)) if section else []
    return {name.strip(" *") for entry in entries for name in entry.split(",")}


def own_members(cls: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties that a class defines itself."""
    for name, value in vars(cls).items():
        one = getattr(value, "func", None) or getattr(value, "__func__", value)
        if name[0] != "_" and (inspect.isfunction(one) or isinstance(value, property)):
            yield name, value


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (vars(PUBLIC[name]).get("__doc__") or PUBLIC[name].__doc__ or "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_and_what_it_returns(name: str) -> None:
    function: Callable[..., object] = FUNCTIONS[name]
    text = inspect.getdoc(function) or ""
    taken = inspect.signature(function)
    assert set(taken.parameters) <= documented(text)
    nothing = taken.return_annotation in ("None", "Iterator[None]")
    assert nothing or re.search(r"^(Returns|Yields)\n-+\n", text, re.M)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_each_of_its_members_is(name: str) -> None:
    silent = [
        member
        for member, _ in own_members(CLASSES[name])
        if not (inspect.getdoc(getattr(CLASSES[name], member)) or "").strip()
    ]
    assert silent == []


def test_what_is_left_out_is_noticed() -> None:
    text = "Do it.\n\nParameters\n----------\none, two : int\n    Both.\n*rest\n\nReturns\n---\nint"
    assert documented(text) == {"one", "two", "rest"}
    assert documented("Do it with three : of them.") == set()


@pytest.mark.deep
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="Sphinx is not installed")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "html"
    subprocess.run([sys.executable, str(ROOT / "tools" / "cli_page.py")], check=True)
    strict = ("--fail-on-warning", "--keep-going", "-q", "-E", "-b", "html")
    command = [sys.executable, "-m", "sphinx", *strict, "-d", str(tmp_path / "read")]
    subprocess.run([*command, str(ROOT / "docs"), str(site)], check=True)
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")  # a script, so that search works from disk
    pages = {page.relative_to(ROOT / "docs").with_suffix("") for page in ROOT.glob("docs/**/*.md")}
    assert {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")} > pages
