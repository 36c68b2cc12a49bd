"""Documents cannot lie: their Python runs, doctests run, generated parts are current.

The README has a test of its own.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import sfumato
from sfumato.basics.lazily import imported, listed
from sfumato.cli import cli
from sfumato.cli.commands import outside_questions
from support import pages

ROOT = Path(__file__).parent.parent
FOUND = sorted(m.name for m in pkgutil.walk_packages(sfumato.__path__, "sfumato."))


def has_examples(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text("utf-8")


MODULES = [name for name in ("sfumato", *FOUND, "benchmarks.generate") if has_examples(name)]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert outcome.failed == 0


COMMANDS = ROOT / "docs" / "cli.md"
"""The page of all commands, which is made when the site is built."""
PAGES = sorted({*(ROOT / "docs").rglob("*.md")} - {COMMANDS})


@pytest.mark.parametrize(
    "page",
    # What is printed on docs/local.md is compared, too, in tests/local/test_decoder.py.
    [page for page in PAGES if "python" in dict(pages.blocks(page)) and page.name != "local.md"],
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


def commands(group: click.Group, path: str) -> Iterator[str]:
    """All commands of a group, and of the groups in it."""
    context = click.Context(group)
    for name in {*group.list_commands(context)} - {*outside_questions()[0]}:
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def test_the_page_of_commands_has_a_section_for_each() -> None:
    text = _tool("cli_page").page()
    named = {*commands(cli, "sfumato")}
    assert {"sfumato histogram", "sfumato ledger verify", "sfumato mean"} <= named
    sections = re.findall(r"^## (.+)\n\n```text\nUsage: (.+?)(?: \[| [A-Z]|$)", text, re.M)
    assert all(title == usage for title, usage in sections)
    assert sorted(title for title, _ in sections) == sorted(named)


def test_the_figures_on_the_pages_are_those_that_were_measured() -> None:
    pages = _tool("figures").pages()
    assert len(pages) == 3
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
        if target.resolve() == COMMANDS and not anchor:
            continue
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
            for page in found - {COMMANDS}
            for tree in TOCTREE.findall(page.read_text(encoding="utf-8"))
            for entry in tree.splitlines()
            if entry and not entry.startswith(":")
        }
        if named <= found:
            break
        found |= named
    assert found == {*PAGES, COMMANDS}


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
