"""Write a disclosure document: a registry's entry in YAML, and a checklist for an evaluator."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sfumato.answers.release import Release
from sfumato.basics.files import write_bytes
from sfumato.disclosure import checklist as questions
from sfumato.disclosure.audited import Finding
from sfumato.disclosure.document import counted, missing, to_yaml
from sfumato.disclosure.entry import entry
from sfumato.disclosure.evidence import gathered
from sfumato.errors import UsageError, explained, shown
from sfumato.ledger import Ledger, open_ledger
from sfumato.publishing.plan_file import publication_of
from sfumato.publishing.verifying import Publication
from sfumato.risk.window import Window

PathLike: TypeAlias = str | os.PathLike[str]
Item: TypeAlias = Release | Window | Finding


@dataclass(frozen=True)
class Disclosure:
    """What was written, and what a person still has to write.

    Attributes
    ----------
    path : Path
        The entry, as YAML.
    checklist : Path or None
        The checklist, as HTML.
    filled, fields : int
        How many fields the releases filled, and how many there are; constants aside.
    missing : mapping
        The fields that a person has to fill in, by place, such as
        "deployment.product.intended_use", and what to write there.
    verified : bool
        Whether a ledger or a signature vouches for every release.

    >>> import numpy as np, sfumato as sf
    >>> import tempfile
    >>> from pathlib import Path
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=4), epsilon="0.5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     disclosure = sf.disclose([release], Path(folder) / "entry.yaml")
    >>> disclosure.filled < disclosure.fields
    True
    >>> "deployment.product.intended_use" in disclosure.missing
    True
    """

    path: Path
    checklist: Path | None
    filled: int
    fields: int
    missing: Mapping[str, str]
    verified: bool


@explained
def disclose(
    releases: Item | Iterable[Item],
    path: PathLike,
    *,
    ledger: PathLike | Ledger | None = None,
    account: str | None = None,
    facts: Mapping[str, object] | Publication | None = None,
    checklist: PathLike | None = None,
) -> Disclosure:
    """Write what a public registry of deployments asks, from releases of one account.

    The entry is YAML with the fields of the OpenDP registry of deployments, tier 3. Releases fill
    in most of it. A field that only a person can fill in begins with "TODO: " and says what to
    write. Nothing is invented, and nothing is spent.

    Parameters
    ----------
    releases : Release, Window, finding of an audit, or several
        What ``Publisher.release`` or ``sf.load`` returned. A Window says how the cost was chosen,
        and findings of ``sfumato.audit`` what was measured of the mechanisms.
    path : path
        The YAML file to write. An existing file is replaced.
    ledger : path, Ledger or None
        The ledger that was charged. Then every release is compared with the answer stored there,
        and the entry states the whole account. Its secrets do not enter.
    account : str or None
        The account that the releases are expected to be of.
    facts : dict or None
        What only a person knows, such as ``{"data_curators": ["City of X"]}``. The names are those
        of the entry: name, data_curators, intended_use, data_product_region, data_product_sector,
        description, release_type, data_source_type, auditing, sources, registry_authors. ``notes``
        is a dict that adds sentences to fields that are filled in.
    checklist : path or None
        An HTML file for the checklist by NIST SP 800-226.

    Returns
    -------
    Disclosure

    Raises
    ------
    UsageError
        If there is no release, one has no receipt or is not private, the releases are of different
        accounts, versions or privacy units, or a fact is unknown.
    DataError
        If a release was edited, is not in the ledger, or a file cannot be written.
    LedgerError
        If the ledger was edited.

    Guarantee: the files hold what releases, receipts and the public part of the ledger hold, and
    what ``facts`` say; so they reveal nothing more.

    >>> import tempfile
    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.array([[1.0], [3.0]]), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = sf.disclose(release, f"{folder}/doc.yaml", facts={"data_curators": "Us"})
    >>> sorted(written.missing)[:2]
    ['deployment.product.data_product_region', 'deployment.product.data_product_sector']
    """
    given = _flat(releases)
    if isinstance(ledger, Ledger) or ledger is None:
        return _disclosed(given, Path(path), ledger, account, _facts(facts), checklist)
    with open_ledger(os.fspath(ledger), create=False) as opened:
        return _disclosed(given, Path(path), opened, account, _facts(facts), checklist)


def _disclosed(
    given: list[Item],
    path: Path,
    ledger: Ledger | None,
    account: str | None,
    facts: Publication,
    checklist: PathLike | None,
) -> Disclosure:
    found = gathered(
        [item for item in given if isinstance(item, Release)],
        windows=[item for item in given if isinstance(item, Window)],
        ledger=ledger,
        account=account,
    )
    findings = [item for item in given if isinstance(item, Finding)]
    tree = entry(found, facts, slug_of(path), findings)
    page = None if checklist is None else questions.render(found, tree)
    written = write_bytes(path, to_yaml(tree, found).encode())
    filled, fields = counted(tree)
    return Disclosure(
        path=written,
        checklist=None if page is None else write_bytes(str(checklist), page.encode()),
        filled=filled,
        fields=fields,
        missing=missing(tree),
        verified=found.verified,
    )


def slug_of(path: Path) -> str:
    """The name of an entry in addresses, from the name of its file.

    >>> slug_of(Path("out/Page_views 2026.yaml"))
    'page-views-2026'
    """
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "entry"


def _facts(facts: object) -> Publication:
    if isinstance(facts, Publication):
        return facts
    if facts is None:
        return Publication()
    if not isinstance(facts, Mapping):
        remedy = 'Write facts={"data_curators": ["..."]}'
        raise UsageError(f"facts = {shown(facts)}", "they are not a dict", remedy)
    return publication_of(dict(facts), "the facts of a disclosure")


def _flat(given: object) -> list[Item]:
    """All items as one list; lists within lists are flattened."""
    if isinstance(given, Release | Window | Finding):
        return [given]
    table = hasattr(given, "__arrow_c_stream__") or hasattr(given, "dtype")
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping) or table:
        raise UsageError(
            f"a disclosure of a value of type {type(given).__name__}",
            "a disclosure is made of releases, windows and findings of an audit",
            "Give what Publisher.release or sf.load returned, and then the path to write",
        )
    return [item for each in given for item in _flat(each)]
