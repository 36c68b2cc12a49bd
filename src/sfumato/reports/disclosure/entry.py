"""An entry of the OpenDP registry of deployments, tier 3, from releases.

The names of the fields are the registry's. What a release does not know is marked for a person to
write, and nothing is invented.

Source: github.com/opendp/deployments-registry-data, in which every deployment is a YAML file.

The first part says how the answers were computed: preparation of the rows, mechanisms, reasons and
software.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path

from sfumato._version import __version__
from sfumato.errors import printable, printable_lines
from sfumato.ledger import written
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, belief
from sfumato.publishing.verifying import Publication, listed
from sfumato.questions.counters.release import CounterRelease
from sfumato.questions.persons.release import PersonsRelease
from sfumato.reports.disclosure import fields
from sfumato.reports.disclosure.evidence import Evidence, shortened
from sfumato.reports.disclosure.fields import TODO, Field, Tree, figures, todo
from sfumato.reports.tables import Finding

# --- how answers were computed --------------------------------------------------------------------

PACKAGE = Path(__file__).parents[2]


def preparation(evidence: Evidence) -> str:
    """What happened to the rows before the noise, and what the limits rest on."""
    lines = [
        *fields.promises(evidence, attrgetter("counted")),
        "Axes, bounds, labels, limits and costs were fixed before each charge. The guarantee "
        "assumes that they rest on public knowledge and on answers that were paid for, and on "
        "nothing else.",
    ]
    persons = [release for release in evidence.releases if isinstance(release, PersonsRelease)]
    if persons:
        paid = ", ".join(f"entry {release.receipt.entry}" for release in persons if release.receipt)
        lines.append(
            f"How many rows persons have was published as an answer of its own ({paid}), and paid "
            "for. Limits chosen from it cost nothing more."
        )
    return fields.bullets(lines)


def mechanisms(evidence: Evidence) -> str:
    """What adds the randomness, how far a person moves what is measured, and how it is drawn."""
    added = fields.promises(evidence, lambda guarantee: f"{guarantee.mechanism}.")
    moved = fields.promises(
        evidence, lambda guarantee: f"Sensitivity: {guarantee.proof.sensitivity}"
    )
    slack = fields.promises(evidence, lambda guarantee: f"Numerical slack: {guarantee.slack}.")
    return fields.bullets(
        [
            *(line[:1].upper() + line[1:] for line in added),
            *moved,
            *slack,
            f"Implemented by Sfumato {evidence.version}. Randomness comes from AES in counter "
            "mode, under a random key of the operating system, and never from a public seed.",
            "Not interactive, so readers cannot time a query. How long a run takes is not covered.",
        ]
    )


def justification(evidence: Evidence) -> str:
    """Why the guarantee holds, how accurate the answers are, and how the cost was chosen."""
    reasons = fields.promises(
        evidence, lambda guarantee: f"{guarantee.proof.because} Source: {guarantee.proof.source}"
    )
    lines = [f"Holds because: {reason}" for reason in reasons]
    lines += [f"Accuracy of {text}" for text in fields.accuracies(evidence)]
    for window in evidence.windows:
        lines.append(f"The cost was chosen by a window: {' '.join(window.explain().split())}")
    return fields.bullets(lines)


def software(evidence: Evidence) -> list[str]:
    """The version that published, and the digest of its files where it is installed here."""
    made = f"Software: Sfumato {evidence.version}, Apache-2.0"
    if evidence.version == __version__:
        made += f"; SHA-256 of the files that wrote this document: {digest()}"
    lines = [f"{made}."]
    if evidence.head is not None:
        number, last = evidence.head
        lines.append(f"Ledger: {number:,} entries, the last of which has the hash {last}.")
    return [*lines, evidence.standing]


@cache
def digest() -> str:
    """The SHA-256 of the library's own files, by name: whoever installs it can compare."""
    whole = hashlib.sha256()
    endings = {".py", ".pyi", ".html", ".css"}
    files = [path for path in PACKAGE.rglob("*") if path.suffix in endings and path.is_file()]
    # Sorted by names with slashes, so that every system has the same order and digest.
    for name in sorted(path.relative_to(PACKAGE).as_posix() for path in files):
        # A name ends with a zero byte and its digest has 32 bytes: no other files give this stream.
        whole.update(name.encode() + b"\0")
        whole.update(hashlib.sha256((PACKAGE / name).read_bytes()).digest())
    return whole.hexdigest()


# --- the entry ------------------------------------------------------------------------------------

# What the registry calls the measures, by their tags.
NAMES = {
    "pure": "Pure DP",
    "approx": "Approximate DP",
    "zcdp": "Zero-concentrated DP",
}

DIVERGENCES = {
    "pure": "Max divergence: the largest log ratio of the probabilities of an output",
    "approx": "Hockey-stick divergence: the max divergence, but for a probability of at most delta",
    "zcdp": "Renyi divergence of order a, divided by a, at most over all orders a above 1",
}


def entry_tree(
    evidence: Evidence, facts: Publication, slug: str, findings: Sequence[Finding] = ()
) -> Tree:
    """The entry as a tree of fields.

    Parameters
    ----------
    found : Evidence
    facts : Publication
        What a person knows.
    slug : str
        The name of the entry in addresses.
    findings : sequence of Finding
        What an audit of the mechanisms found, if there was one.
    """
    implementation = {
        "pre_processing_eda_hyperparameter_tuning": Field(preparation(evidence)),
        "mechanisms": Field(mechanisms(evidence)),
        "justification": Field(justification(evidence)),
    }
    links = [f"Link: {printable_lines(text.strip())}" for text in listed(facts.sources)]
    authors = _given_list(facts.registry_authors, "who answers for this entry, by name")
    return {
        "url_slug": Field(slug),
        "status": Field("Draft", constant=True),
        "tier": Field(3, constant=True),
        "deployment": {
            "product": _product(evidence, facts),
            "dp_flavor": _noted(_flavor(evidence), facts),
            "privacy_loss": _noted(_loss(evidence), facts),
            "model": _noted(_model(evidence, facts), facts),
            "accounting": _noted(_accounting(evidence, facts, findings), facts),
            "implementation": _noted(implementation, facts),
            "resources": {
                "sources": Field(fields.bullets([*links, *software(evidence)])),
                "registry_authors": authors,
            },
        },
    }


def _noted(tree: Tree, facts: Publication) -> Tree:
    noted = dict(tree)
    for name, note in facts.notes.items():
        node = tree.get(name)
        if isinstance(node, Field):
            by_hand = printable_lines(note.strip())
            noted[name] = Field(f"{node.value}\nAdded by hand: {by_hand}")
    return noted


def _given(text: str | None, otherwise: Field) -> Field:
    """Return what a person wrote; else what is known without one."""
    return otherwise if text is None else Field(printable_lines(text.strip()), by_hand=True)


def _given_list(texts: str | Sequence[str], what: str) -> Field:
    several = [printable_lines(text.strip()) for text in listed(texts)]
    return Field(several or [TODO + what], by_hand=True)


def _product(evidence: Evidence, facts: Publication) -> Tree:
    data = fields.joined(evidence.sources, 3)
    published = (
        f"{len(evidence.releases):,} answers" if len(evidence.releases) > 1 else "One answer"
    )
    described = (
        f"{published} about {data}, with noise that protects any one {fields.person(evidence)}: "
        f"{fields.titles(evidence.releases)}."
    )
    return {
        "name": _given(facts.name, Field(f"Statistics of {data}")),
        "data_curators": _given_list(
            facts.data_curators, "the organisations that hold the data and publish"
        ),
        "intended_use": _given(
            facts.intended_use, todo("what the data are published for, and for whom")
        ),
        "data_product_type": Field("Summary statistics", constant=True),
        "data_product_region": _given(
            facts.data_product_region, todo("the region that the data are about, such as Global")
        ),
        "data_product_sector": _given(
            facts.data_product_sector, todo("the sector, such as Health or Technology")
        ),
        "description": _given(facts.description, Field(described)),
        "publication_date": Field(evidence.charges[0].date),
    }


def _flavor(evidence: Evidence) -> Tree:
    measure = evidence.loss
    unit = evidence.unit
    tag = str(measure.__struct_config__.tag)
    who = fields.person(evidence)
    counted = "rows" if who == "row" else "persons"
    column = "" if unit.person is None else printable(unit.person)
    named = f". Rows with the same {column} are of one {who}" if column else ""
    if unit.neighbours == "replace":
        metric = f"The number of {counted} that differ between two tables of as many (bounded)"
        bound = f"1: one {who} is replaced by another"
    else:
        metric = f"Symmetric distance: the number of {counted} in one table only (unbounded)"
        bound = f"1: one {who} is added or removed"
    if unit.person is None and unit.rows_per_person > 1:
        bound += f", with at most {unit.rows_per_person:,} rows, as the custodian states"
    columns = fields.joined(fields.columns(evidence), 40)
    read = f" The answers are about these columns: {columns}." if columns else ""
    return {
        "name": Field(NAMES[tag]),
        "input_metric": Field(f"{metric}{named}."),
        "bound_on_input_distance": Field(bound),
        "output_measure": Field(DIVERGENCES[tag]),
        "bound_on_output_distance": Field(str(measure)),
        "data_domain": Field(
            f"Tables of any number of rows, in the form of {fields.joined(evidence.sources, 3)}."
            f"{read} Bounds and listed labels are public: the guarantee assumes that they were "
            "chosen without looking at the data."
        ),
        "unprotected_quantities": Field(_unprotected(evidence)),
    }


def _unprotected(evidence: Evidence) -> str:
    bounded = evidence.unit.neighbours == "replace"
    lines = ["No answer described here holds a statistic of the data without noise."]
    lines += [f"The number of {evidence.unit.several} is public."] if bounded else []
    lines += fields.promises(
        evidence, lambda guarantee: f"Not covered: {guarantee.proof.not_covered}"
    )
    return fields.bullets(lines)


def _loss(evidence: Evidence) -> Tree:
    units = fields.promises(evidence, lambda guarantee: f"{guarantee.unit}.")
    assumed = [text for release in evidence.releases for text in release.guarantee.assumptions]
    return {
        "privacy_unit": Field(fields.level(evidence)),
        "privacy_unit_description": Field(
            fields.bullets([*units, *(f"Assumed: {text}" for text in dict.fromkeys(assumed))])
        ),
        "privacy_parameters": _parameters(evidence.loss),
        "privacy_parameters_description": Field(_spent(evidence)),
    }


def _parameters(measure: CentralMeasure) -> Mapping[str, Field]:
    """The numbers as YAML writes them; the exact ones are in the bound on the output distance."""
    if isinstance(measure, ZCDP):
        return {"rho": Field(float(measure.rho))}
    numbers = {"epsilon": Field(float(measure.epsilon))}
    if isinstance(measure, ApproxDP):
        numbers["delta"] = Field(float(measure.delta))
    return numbers


def _spent(evidence: Evidence) -> str:
    named = shortened(evidence.account)
    charged = written(evidence.rule, evidence.charged)
    lines = [f"The answers described here were charged {charged} to the account {named}."]
    if evidence.by_curves is not None:
        lines = [f"The answers described here were charged to the account {named}."]
        lines += [
            f"All that it ever pays for is private at {evidence.by_curves}, the numbers above."
        ]
    elif evidence.book is None:
        lines += ["The numbers above are these charges; the account may have paid for others."]
    else:
        total = written(evidence.rule, evidence.book.total)
        spent = written(evidence.rule, evidence.book.spent)
        lines += [f"The account has spent {spent} in all, which are the numbers above."]
        lines += [f"It can never spend more than its total of {total}."]
    if evidence.others:
        charges = "one further charge" if evidence.others == 1 else f"{evidence.others:,} charges"
        lines += [f"It also paid for {charges} whose answers are not described here."]
    said = (
        belief.warning(evidence.loss, evidence.unit)
        or f"{belief.sentence(evidence.loss, evidence.unit)}."
    )
    return fields.bullets([*lines, f"What this means: {said}"])


def _model(evidence: Evidence, facts: Publication) -> Tree:
    # A stream publishes step by step.
    stream = any(isinstance(release, CounterRelease) for release in evidence.releases)
    many = stream or len(evidence.charges) > 1
    grows = "Dynamic" if stream else "Static"
    source = (
        "A stream: increments arrive while totals are published."
        if stream
        else ("Every answer was computed from one table, as it stood when it was read.")
    )
    return {
        "model_name": Field("Central"),
        "model_name_description": Field(
            "The data custodian holds the rows, and adds the noise before anything is published."
        ),
        "actors": Field(_actors(facts)),
        "release_type": _given(
            facts.release_type, Field("Many releases" if many else "One release")
        ),
        "release_type_description": Field(_releases(evidence)),
        "data_source_type": _given(facts.data_source_type, Field(grows)),
        "data_source_type_description": Field(f"{source} Data: {fields.joined(evidence.sources)}."),
        "access_type": Field("Non-interactive", constant=True),
        "access_type_description": Field(
            "Readers get published answers. Only the custodian, and whoever the custodian lets "
            "spend, asks questions of the data, and every question is charged to the account "
            "before a row is read.",
        ),
    }


def _actors(facts: Publication) -> str:
    curators = listed(facts.data_curators)
    named = f" ({printable_lines(', '.join(curators))})" if curators else ""
    return fields.bullets(
        [
            f"The data custodian{named} and the operator of the machine hold the rows and run the "
            "mechanisms. They are trusted: nothing protects the data from them.",
            "Auditors read the public part of the ledger, and can recompute every total. They need "
            "not be trusted with the data.",
            "Readers of the answers are not trusted. They may know anything else about anybody, "
            "and may work together.",
        ]
    )


def _releases(evidence: Evidence) -> str:
    charges = [
        f"entry {charge.entry}, {charge.date}: {charge} for {charge.source}"
        for charge in evidence.charges
    ]
    count = f"{len(charges):,} charges" if len(charges) > 1 else "One charge"
    return f"{count}: {fields.joined(charges)}."


def _accounting(evidence: Evidence, facts: Publication, findings: Sequence[Finding]) -> Tree:
    accounting = {
        "post_processing": _post_processing(evidence),
        "composition": Field(_composition(evidence)),
    }
    by_hand = [] if facts.auditing is None else [printable_lines(facts.auditing.strip())]
    measured = [figures(findings)] if findings else []
    if by_hand or measured:
        said = "\n".join([*measured, *by_hand])
        accounting["auditing"] = Field(said, by_hand=not measured)
    return accounting


def _post_processing(evidence: Evidence) -> Field:
    said = [(fields.afterwards(release), release) for release in evidence.releases]
    lines = fields.by_text((text, release) for text, release in said if text is not None)
    unknown = [release for text, release in said if text is None]
    if unknown:
        what = "what was computed from the mechanism's output before it was published"
        lines += [f"{fields.titles(unknown)}: {TODO}{what}"]
    return Field(fields.bullets([f"{line[:1].upper()}{line[1:]}." for line in lines]))


RULES = {
    "pure": "Epsilons are added up",
    "approx": "Epsilons and deltas are each added up",
    "zcdp": "Rhos are added up",
}


def _composition(evidence: Evidence) -> str:
    if evidence.by_curves is not None:
        return (
            "Bounds on the Renyi divergence of each answer are added up at several orders, which "
            "were fixed when the account was opened. A charge is allowed while a mixture of these "
            f"orders bounds the whole by {evidence.by_curves} (fully adaptive composition: Rogers, "
            "Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023). "
            "It holds also where a question and its cost were chosen after earlier answers. Each "
            "charge is recorded before a row is read, and a charge beyond the total is refused."
        )
    return (
        f"{RULES[evidence.rule]} over all charges of the account (sequential composition). The sum "
        "holds also where a question was chosen after earlier answers (Rogers, Roth, Ullman, "
        "Vadhan 2016; Feldman, Zrnic 2021). Each charge is recorded before a row is read, and a "
        "charge beyond the total is refused."
    )
