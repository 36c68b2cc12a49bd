"""Documents cannot lie: their Python runs, doctests run, generated pages are current.

The README has a test of its own.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import sfumato
from support import pages

ROOT = Path(__file__).parent.parent
FOUND = sorted(m.name for m in pkgutil.walk_packages(sfumato.__path__, "sfumato."))
MODULES = [
    name
    for name in ("sfumato", *FOUND)
    if not name.endswith("__main__") and not name.startswith("sfumato.bench.peers.")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert outcome.failed == 0


PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "python" in dict(pages.blocks(page))],
    ids=lambda page: page.stem,
)
def test_python_on_the_pages_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pages.outside(tmp_path):
        pages.follow(page, tmp_path)


def _tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cli_page_is_what_the_commands_say() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == _tool("cli_page").page(), (
        "run: make docs"
    )


def test_the_figures_on_the_pages_are_those_that_were_measured() -> None:
    pages = _tool("figures").pages()
    assert len(pages) == 2
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, "run: make docs"


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
