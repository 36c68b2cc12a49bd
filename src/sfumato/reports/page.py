"""A report that can be handed to a board: a front page, the answers, and proofs at the end.

The page is one file. It loads nothing, and is the same to the last byte for the same releases. It
runs nothing, but for the one script that enlarges maps, which the page's own policy names.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, TypeGuard, TypeVar, get_args

from markupsafe import Markup

from sfumato.answers import Receipt, Release, standing
from sfumato.basics import page_template, write_bytes
from sfumato.errors import UsageError, explained, shown
from sfumato.local.clustering import PrivateKMeans
from sfumato.local.table import LocalTable
from sfumato.questions.persons import Recommendation
from sfumato.reports import decisions, front, headings, sections
from sfumato.reports.decisions import Decision
from sfumato.reports.headings import Study
from sfumato.reports.tables import Finding
from sfumato.risk import Choice, Choices
from sfumato.risk.window import Window

_TEMPLATE = Path(__file__).with_name("template.html")

DECISIONS = Choice | Choices | Window | Recommendation | LocalTable
T = TypeVar("T")
Audience: TypeAlias = Literal["technical", "board"]
AUDIENCES: tuple[str, ...] = get_args(Audience)
Item: TypeAlias = Release | Decision | PrivateKMeans | Finding


@explained
def report(
    items: Item | Iterable[Item],
    path: str | os.PathLike[str],
    title: str | None = None,
    *,
    audience: Audience = "technical",
) -> Path:
    """Write an HTML report about releases: answers, pictures, accuracy, guarantees and costs.

    The front page says in one screen what was published, how accurate it is and what one person
    risks. Then come the answers with their tables, and at the end all proofs and receipts.

    It can also show how epsilon was chosen, which limit on a person is to be taken, and what an
    audit found. The file loads nothing from elsewhere. It holds no script, unless there is a map:
    then a short one enlarges it.

    Parameters
    ----------
    items : Release, Choice, Choices, Window, Recommendation, PrivateKMeans, finding, or several
        What ``Publisher.release``, ``sf.load``, ``sf.choose``, ``sf.window``, ``sf.recommend`` and
        ``sfumato.audit`` return, a ``sf.PrivateKMeans`` that was fitted, and lists of these. The
        report holds what they hold and nothing else, so it costs nothing. A Choice reveals
        something about its universe: see its caveats.
    path : path
        The HTML file to write. An existing file is replaced.
    title : str or None
        Heading of the page.
    audience : {"technical", "board"}
        For whom it is. A page for a board leaves out proofs, receipts, hashes and long tables.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If there are no items, one of them is something else, or there is no such audience.
    DataError
        If the file cannot be written.

    >>> import tempfile
    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sf.report(release, f"{folder}/report.html", title="Two rows").name
    'report.html'
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(
            f"a report at {type(path).__name__}",
            "it is not a path",
            'Write sf.report([release], "report.html")',
        )
    if audience not in AUDIENCES:
        known = " or ".join(f'"{name}"' for name in AUDIENCES)
        raise UsageError(
            f"audience = {shown(audience)}", "there is no such audience", f"Write {known}"
        )
    return write_bytes(path, render(_flat(items), title, audience).encode())


def render(
    items: Sequence[Item], title: str | None = None, audience: Audience = "technical"
) -> str:
    """The page as text. It is the same text for the same items."""
    releases = _of_kind(items, Release)
    chosen = [item for item in items if isinstance(item, DECISIONS)]
    models = _of_kind(items, PrivateKMeans)
    findings = [item for item in items if not isinstance(item, Release | DECISIONS | PrivateKMeans)]
    receipts = [release.receipt for release in releases if release.receipt is not None]
    limits = bool(_of_kind(items, Recommendation))
    technical = audience == "technical"
    anchors = [f"answer-{i}" for i, _ in enumerate(releases, 1)]
    accounts = front.accounts(releases)
    shown = sections.of_answers(releases, anchors)
    text = page_template(_TEMPLATE).render(
        title=title or _title(bool(releases), bool(models), limits),
        limits=limits,
        devices=len(models),
        dates=_first_and_last_date(receipts),
        technical=technical,
        front=front.blocks(releases, accounts),
        glances=front.glances(releases),
        sections=shown,
        script=_script() if any(section.is_map for section in shown) else None,
        proofs=sections.proofs(releases, anchors),
        origins=list(dict.fromkeys(filter(None, map(standing, releases)))),
        studies=_studies(chosen, models, technical=technical),
        findings=findings,
        accounts=accounts,
        private=_is_private(releases, models),
        unreceipted=len(releases) - len(receipts),
        versions=sorted({receipt.version for receipt in receipts}),
    )
    return headings.shared(text)


def _first_and_last_date(receipts: Iterable[Receipt]) -> list[str]:
    # Dates come from the receipts: a clock read now would make two pages of one release differ.
    dates = sorted({receipt.time[:10] for receipt in receipts})
    return dates if len(dates) < 2 else [dates[0], dates[-1]]


def _studies(
    chosen: Iterable[Decision], models: Iterable[PrivateKMeans], *, technical: bool
) -> list[Study]:
    studies = [decisions.study(decision, f"choice-{i}") for i, decision in enumerate(chosen, 1)]
    studies += [
        sections.study(model, f"devices-{i}", technical=technical)
        for i, model in enumerate(models, 1)
    ]
    return studies


def _is_private(releases: Iterable[Release], models: Iterable[PrivateKMeans]) -> bool:
    # What was made under a public seed protects nobody.
    guarantees = [release.guarantee for release in releases]
    guarantees += [model.guarantee_ for model in models]
    return all(guarantee.private for guarantee in guarantees)


def _of_kind(items: Sequence[Item], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]


def _title(releases: bool, models: bool, limits: bool) -> str:
    if releases:
        return "What was released"
    if models:
        return "What devices reported"
    return "Choosing a limit" if limits else "Choosing epsilon"


@cache
def _script() -> Mapping[str, str]:
    """Return what enlarges maps, and what the page's policy must allow: this text and no other."""
    text = (Path(__file__).parent / "zoom.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"text": Markup(text), "digest": digest}


def _flat(items: object) -> list[Item]:
    """Return all items as one list; lists within lists are flattened."""
    flat: list[Item] = []
    for item in items if _is_several(items) else [items]:
        if _is_several(item):
            flat += _flat(item)
        elif isinstance(item, Release | DECISIONS | PrivateKMeans | Finding):
            flat.append(item)
        else:
            raise UsageError(
                f"a report on a value of type {type(item).__name__}",
                "it is made of releases, choices, windows, limits, models of reports and findings",
                "Give what Publisher.release or sf.load returned, and then the path to write",
            )
    if not flat:
        raise UsageError(
            "a report on nothing", "there is no release to show", "Give at least one release"
        )
    return flat


def _is_several(item: object) -> TypeGuard[Iterable[object]]:
    # Choices is iterable, and yet one item.
    is_table = hasattr(item, "__arrow_c_stream__") or hasattr(item, "dtype")
    is_one = isinstance(item, str | bytes | Mapping | Choices) or is_table
    return isinstance(item, Iterable) and not is_one
