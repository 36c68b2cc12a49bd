"""How Sphinx builds the site: `make docs` reads this file and writes to site/.

The pages are also read on their own, as files of the repository. So links are plain Markdown links
between files, and nothing on a page needs Sphinx, except in docs/reference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import sfumato

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from site_docstrings import with_blank_lines, with_headings, without_markup

# The class of ledgers is named after what it is for its stores. Readers know it by its public name.
sfumato.Ledger.__name__ = "Ledger"

project = "Sfumato"
author = "The Sfumato authors"
copyright = "2026, The Sfumato authors"
release = version = sfumato.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

# Headings get the anchors that repositories give them, so that links work in both places.
myst_heading_anchors = 4
# A link that leads nowhere is an error: `make docs` turns every warning into one.
nitpicky = True
# States of queries are opaque: they are passed on, and have no page.
nitpick_ignore_regex = [("py:class", r"sfumato\.streaming\.\w+\.\w+State")]

# Types stand in the text of each parameter. The signature shows names and defaults alone.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# What all questions, releases and exceptions have is shown once, for the first of them.
BASES = ("Struct", "ABC", "Generic", "BaseException", "Question", "Release")
autodoc_default_options = {"members": True, "inherited-members": ",".join(BASES)}
napoleon_google_docstring = False
napoleon_custom_sections = ["Guarantee", ("Attributes", "params_style")]
# Types in docstrings are words for people ("a list of str"). They are no links.
napoleon_use_param = False
napoleon_use_rtype = False

smartquotes_action = "D"  # dashes alone: a word in quotation marks may be one to copy

html_theme = "furo"
html_title = f"Sfumato {version}"
html_copy_source = False
html_show_sourcelink = False
# A page that is opened from disk may load no other page, so results show headings alone.
html_show_search_summary = False


ROOT_PAGE = re.compile(r"\]\(\.\./(CHANGELOG|CONTRIBUTING|SECURITY)\.md")


def inside(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to pages beside docs/ lead to their copies in the site."""
    source[0] = ROOT_PAGE.sub(lambda link: f"](project/{link[1].lower()}.md", source[0])


def read(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Change a docstring, in place, before napoleon reads it."""
    if what in {"attribute", "data", "property"}:
        # Napoleon takes what stands before a colon in the first line for a type. So an empty
        # comment is the first line.
        lines[:0] = ["..", ""]
    if what == "module":
        lines[:] = with_blank_lines(lines)
    lines[:] = without_markup(with_headings(lines))


def shorten(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, None]:
    """Leave out of a signature what stands for "not given"."""
    return (signature and signature.replace("=UNSET", "=...")), None


def setup(app: Sphinx) -> None:
    """Connect these to Sphinx; napoleon has priority 500."""
    app.connect("source-read", inside)
    app.connect("autodoc-process-docstring", read, priority=400)
    app.connect("autodoc-process-signature", shorten)
