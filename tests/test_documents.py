"""Documents cannot lie: their Python runs, doctests run, generated pages are current.

The README has a test of its own.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.basics.lazily import imported, listed
from support import pages

ROOT = Path(__file__).parent.parent
FOUND = sorted(m.name for m in pkgutil.walk_packages(sfumato.__path__, "sfumato."))
MODULES = [
    *(name for name in ("sfumato", *FOUND) if not name.endswith("__main__")),
    "benchmarks.generate",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert outcome.failed == 0


PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "python" in dict(pages.blocks(page))],
    ids=lambda page: page.relative_to(ROOT / "docs").with_suffix("").as_posix(),
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


LINKED = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *PAGES]
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.S | re.M)
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.M)
AUTODOC = re.compile(r"^\.\. auto(?:class|function|exception|module):: sfumato\.(\w+)$", re.M)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.S | re.M)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link may name behind a #: the headings, as repositories and the site write them."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(prose(page)))
    return {title.replace(" ", "-") for title in titles}


def dead_links(page: Path) -> Iterator[str]:
    """The links of a page to files or headings that do not exist."""
    for link in LINK.findall(prose(page)):
        name, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title, with `code`\n[a](page.md#a-title-with-code) [b](#a-title-with-code)\n"
        "[c](other.md) [d](#title) [e](https://example.org/x) [f](page.md#none)\n"
        "```text\n# no-heading\n[g](none.md)\n```\n[h](#no-heading)\n",
        encoding="utf-8",
    )
    assert list(dead_links(page)) == ["other.md", "#title", "page.md#none", "#no-heading"]


def test_every_page_is_in_the_contents_of_the_site() -> None:
    """From the first page, each page is reached through tables of contents."""
    found = {ROOT / "docs" / "index.md"}
    while True:
        named = {
            (page.parent / f"{entry}.md").resolve()
            for page in found
            for tree in TOCTREE.findall(page.read_text(encoding="utf-8"))
            for entry in tree.splitlines()
            if entry and not entry.startswith(":")
        }
        if named <= found:
            break
        found |= named
    assert found == set(PAGES)


def test_the_reference_has_every_public_name_once() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    named = [name for page in pages for name in AUTODOC.findall(page.read_text(encoding="utf-8"))]
    assert sorted(named) == sorted({*sfumato.__all__, "extending", "streaming"} - {"__version__"})


def test_the_proofs_stand_at_the_head_of_their_modules() -> None:
    page = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. automodule:: (\S+)$", page, re.M)
    assert len(named) == len(set(named)) > 20
    for name in named:
        head = importlib.import_module(name).__doc__ or ""
        assert len(head) > 400, name  # more than one line that says what the module is for


QUESTIONS = [imported(place) for place in listed("sfumato.questions").values()]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_a_question_says_what_the_reference_needs(question: type) -> None:
    text = inspect.getdoc(question) or ""
    for part in ("Parameters\n---", "Raises\n---", "Guarantee", "Source: ", ">>> "):
        assert part in text, part


def test_docstrings_get_the_headings_that_the_site_needs() -> None:
    outcome = doctest.testmod(_tool("site_docstrings"))
    assert (outcome.failed, outcome.attempted > 2) == (0, True)
