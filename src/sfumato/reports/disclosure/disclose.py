"""Write a disclosure document: a registry's entry in YAML, and a checklist for an evaluator.

*The checklist* (``checklist``) is by NIST SP 800-226: what an evaluator asks, and what the releases
answer.

The questions follow the layers of its pyramid, from the parameters at the top to the collection of
the data at the bottom, in words of our own.

Source: Near, Darais, Lefkovitz, Howarth, Guidelines for Evaluating Differential Privacy Guarantees,
NIST SP 800-226, 2025.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sfumato.answers import Release
from sfumato.basics import page_template, write_bytes
from sfumato.errors import UsageError, explained, explained_methods, shown
from sfumato.ledger import Ledger, open_ledger
from sfumato.privacy import belief
from sfumato.publishing.plan_file import publication_of
from sfumato.publishing.verifying import Publication
from sfumato.reports.disclosure import entry, fields
from sfumato.reports.disclosure.entry import NAMES, entry_tree
from sfumato.reports.disclosure.evidence import Evidence, gathered
from sfumato.reports.disclosure.fields import TODO, Field, Tree, leaves, plain
from sfumato.reports.tables import Finding
from sfumato.risk.window import Window

if TYPE_CHECKING:
    from yaml import Node


# --- the entry as YAML ----------------------------------------------------------------------------


def to_yaml(tree: Tree, evidence: Evidence) -> str:
    """Write the entry as YAML, under a comment that says what a person has to do with it.

    Raises
    ------
    UsageError
        If PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError(
            "a disclosure in YAML", "PyYAML is not installed", "Run: pip install pyyaml"
        ) from None
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(plain(tree))
    _break_lines(node)
    written = yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True, width=100)
    return f"{_heading(tree, evidence)}{written}"


def missing(tree: Tree) -> dict[str, str]:
    """The fields that a person has to fill in, by place, and what to write there."""
    places = {}
    for place, field in leaves(tree):
        if field.missing:
            texts = field.value if isinstance(field.value, list) else [str(field.value)]
            places[place] = "; ".join(texts)
    return places


def counted(tree: Tree) -> tuple[int, int]:
    """How many fields were filled in without a hand, and how many there are; constants aside."""
    fields = [field for _, field in leaves(tree) if not field.constant]
    return sum(not field.by_hand and not field.missing for field in fields), len(fields)


def _heading(tree: Tree, evidence: Evidence) -> str:
    filled, fields = counted(tree)
    lines = [
        "An entry for the OpenDP registry of differential-privacy deployments, tier 3.",
        f"Sfumato filled in {filled} of {fields} fields from the releases.",
    ]
    wanted = missing(tree)
    if wanted:
        lines.append("Before you send it, write these by hand, in place of each TODO:")
        lines += [f"  {place}" for place in wanted]
    if not evidence.verified:
        lines.append(evidence.standing)
    return "".join(f"# {line}\n" for line in lines)


def _break_lines(node: Node) -> None:
    """Write texts of several lines line by line, as a person reads them."""
    if isinstance(node.value, str):
        node.style = "|" if "\n" in node.value else node.style
        return
    for child in node.value:
        # A mapping holds pairs of nodes.
        for part in child if isinstance(child, tuple) else (child,):
            _break_lines(part)


# --- the checklist --------------------------------------------------------------------------------

_TEMPLATE = Path(__file__).with_name("checklist.html")


def render(evidence: Evidence, tree: Tree) -> str:
    """The checklist as one HTML page that loads nothing. It is the same for the same releases."""
    places = dict(leaves(tree))
    guarantees = [release.guarantee for release in evidence.releases]
    reasons = fields.promises(evidence, attrgetter("proof.because"))
    sources = fields.promises(evidence, attrgetter("proof.source"))
    measure = NAMES[str(evidence.loss.__struct_config__.tag)]
    neighbours = "unbounded" if evidence.unit.neighbours == "add-remove" else "bounded"
    return page_template(_TEMPLATE).render(
        TODO=TODO,
        name=places["deployment.product.name"].value,
        # Some names recur, such as "name"; none of those that the checklist asks for does.
        said={place.rpartition(".")[2]: _lines(field) for place, field in places.items()},
        parameters=_lines(Field(f"{evidence.loss}.")),
        decision=_decision(evidence),
        flavor=f"{measure}, {neighbours} neighbours.",
        whole_person=_whole_person(evidence),
        proofs=[*reasons, *(f"Source: {source}" for source in sources)],
        accuracies=fields.accuracies(evidence),
        counted=_distinct(guarantee.counted for guarantee in guarantees),
        slack=_distinct(f"Slack: {guarantee.slack}." for guarantee in guarantees),
        software=entry.software(evidence),
        standing=evidence.standing,
        verified=evidence.verified,
        version=evidence.version,
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _lines(field: Field) -> list[str]:
    """Return the lines of a field, without the marks of a list."""
    lines = [line.removeprefix("- ") for line in str(field.value).split("\n")]
    return [f"{line[:1].upper()}{line[1:]}" for line in lines]


def _decision(evidence: Evidence) -> list[str]:
    if evidence.windows:
        return [line for window in evidence.windows for line in window.explain().split("\n")]
    warned = belief.warning(evidence.loss, evidence.unit)
    why = f"{TODO}who chose the budget, and by what argument (sfumato choose, sf.window)"
    return [warned, why] if warned else [why]


def _whole_person(evidence: Evidence) -> str:
    unit = evidence.unit
    if unit.person is None:
        return "The rows of one person are not joined: see what is assumed."
    if len(unit.person_columns) > 1:
        return "A person in several periods is protected in each of them alone, not in all."
    return "All rows of a person are protected together, if the column names the person."


# --- the document ---------------------------------------------------------------------------------

PathLike: TypeAlias = str | os.PathLike[str]
Item: TypeAlias = Release | Window | Finding


@explained_methods
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
    # A path with a typing error must be refused: a new ledger would know of no charge.
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
    evidence = gathered(
        [item for item in given if isinstance(item, Release)],
        windows=[item for item in given if isinstance(item, Window)],
        ledger=ledger,
        account=account,
    )
    findings = [item for item in given if isinstance(item, Finding)]
    tree = entry_tree(evidence, facts, slug_of(path), findings)
    # Before anything is written, so that an error here leaves no entry without its checklist.
    page = None if checklist is None else render(evidence, tree)
    written = write_bytes(path, to_yaml(tree, evidence).encode())
    filled, fields = counted(tree)
    return Disclosure(
        path=written,
        checklist=None if page is None else write_bytes(str(checklist), page.encode()),
        filled=filled,
        fields=fields,
        missing=missing(tree),
        verified=evidence.verified,
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
        raise UsageError(
            f"facts = {shown(facts)}",
            "they are not a dict",
            'Write facts={"data_curators": ["..."]}',
        )
    return publication_of(dict(facts), "the facts of a disclosure")


def _flat(given: object) -> list[Item]:
    """Return all items as one list; lists within lists are flattened."""
    if isinstance(given, Release | Window | Finding):
        return [given]
    table = hasattr(given, "__arrow_c_stream__") or hasattr(given, "dtype")
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping) or table:
        raise UsageError(
            f"a disclosure of a value of type {type(given).__name__}",
            "a disclosure is made of releases, windows and findings of an audit",
            "Give what Publisher.release or sf.load returned, and then the path to write",
        )
    return [item for items in given for item in _flat(items)]
