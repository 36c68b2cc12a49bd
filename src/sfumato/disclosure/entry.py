"""An entry of the OpenDP registry of deployments, tier 3, from releases.

The names of the fields are the registry's. What a release does not know is marked for a person to
write, and nothing is invented.

Source: github.com/opendp/deployments-registry-data, in which every deployment is a YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.disclosure import implementation, wording
from sfumato.disclosure.audited import Finding, figures
from sfumato.disclosure.evidence import Evidence, shortened
from sfumato.disclosure.fields import TODO, Field, Tree, todo
from sfumato.errors import printable_lines
from sfumato.ledger import written
from sfumato.privacy import belief
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure
from sfumato.publishing.verifying import Publication, listed

TIER = 3

NAMES = {
    "pure": "Pure DP",
    "approx": "Approximate DP",
    "zcdp": "Zero-concentrated DP",
}
"""What the registry calls the measures, by their tags."""

DIVERGENCES = {
    "pure": "Max divergence: the largest log ratio of the probabilities of an output",
    "approx": "Hockey-stick divergence: the max divergence, but for a probability of at most delta",
    "zcdp": "Renyi divergence of order a, divided by a, at most over all orders a above 1",
}


def entry(found: Evidence, facts: Publication, slug: str, findings: Sequence[Finding] = ()) -> Tree:
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
    return {
        "url_slug": Field(slug),
        "status": Field("Draft", constant=True),
        "tier": Field(TIER, constant=True),
        "deployment": {
            "product": _product(found, facts),
            "dp_flavor": _noted(_flavor(found), facts),
            "privacy_loss": _noted(_loss(found), facts),
            "model": _noted(_model(found, facts), facts),
            "accounting": _noted(_accounting(found, facts, findings), facts),
            "implementation": _noted(implementation.fields(found), facts),
            "resources": _resources(found, facts),
        },
    }


def _noted(tree: Tree, facts: Publication) -> Tree:
    """The fields with the notes that a person adds to them, marked as such."""
    return {name: _with_note(node, facts.notes.get(name)) for name, node in tree.items()}


def _with_note(node: Field | Tree, note: str | None) -> Field | Tree:
    if note is None or not isinstance(node, Field):
        return node
    return Field(f"{node.value}\nAdded by hand: {printable_lines(note.strip())}")


def _given(text: str | None, otherwise: Field) -> Field:
    """What a person wrote; else what is known without one."""
    return otherwise if text is None else Field(printable_lines(text.strip()), by_hand=True)


def _given_list(texts: str | Sequence[str], what: str) -> Field:
    several = [printable_lines(text.strip()) for text in listed(texts)]
    return Field(several or [TODO + what], by_hand=True)


def _product(found: Evidence, facts: Publication) -> Tree:
    data = wording.joined(found.sources, 3)
    published = f"{len(found.releases):,} answers" if len(found.releases) > 1 else "One answer"
    described = (
        f"{published} about {data}, with noise that protects any one {wording.person(found)}: "
        f"{wording.titles(found.releases)}."
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
        "publication_date": Field(found.charges[0].date),
    }


def _flavor(found: Evidence) -> Tree:
    measure = found.loss
    unit = found.unit
    tag = str(measure.__struct_config__.tag)
    who = wording.person(found)
    counted = "rows" if who == "row" else "persons"
    named = "" if unit.person is None else f". A person is one {who}"
    if unit.neighbours == "replace":
        metric = f"The number of {counted} that differ between two tables of as many (bounded)"
        bound = f"1: one {who} is replaced by another"
    else:
        metric = f"Symmetric distance: the number of {counted} in one table only (unbounded)"
        bound = f"1: one {who} is added or removed"
    if unit.person is None and unit.rows_per_person > 1:
        bound += f", with at most {unit.rows_per_person:,} rows, as the custodian states"
    return {
        "name": Field(NAMES[tag]),
        "input_metric": Field(f"{metric}{named}."),
        "bound_on_input_distance": Field(bound),
        "output_measure": Field(DIVERGENCES[tag]),
        "bound_on_output_distance": Field(str(measure)),
        "data_domain": Field(_domain(found)),
        "unprotected_quantities": Field(_unprotected(found)),
    }


def _domain(found: Evidence) -> str:
    columns = wording.joined(wording.columns(found), 40)
    read = f" The answers are about these columns: {columns}." if columns else ""
    return (
        f"Tables of any number of rows, in the form of {wording.joined(found.sources, 3)}.{read} "
        "Bounds and listed labels are public: the guarantee assumes that they were chosen without "
        "looking at the data."
    )


def _unprotected(found: Evidence) -> str:
    bounded = found.unit.neighbours == "replace"
    lines = ["No answer described here holds a statistic of the data without noise."]
    lines += [f"The number of {found.unit.several} is public."] if bounded else []
    lines += wording.by_text(
        (f"Not covered: {release.guarantee.proof.not_covered}", release)
        for release in found.releases
    )
    return wording.bullets(lines)


def _loss(found: Evidence) -> Tree:
    units = wording.by_text((f"{one.guarantee.unit}.", one) for one in found.releases)
    assumed = [text for one in found.releases for text in one.guarantee.assumptions]
    return {
        "privacy_unit": Field(wording.level(found)),
        "privacy_unit_description": Field(
            wording.bullets([*units, *(f"Assumed: {text}" for text in dict.fromkeys(assumed))])
        ),
        "privacy_parameters": _parameters(found.loss),
        "privacy_parameters_description": Field(_spent(found)),
    }


def _parameters(measure: CentralMeasure) -> Mapping[str, Field]:
    """The numbers as YAML writes them; the exact ones are in the bound on the output distance."""
    if isinstance(measure, ZCDP):
        return {"rho": Field(float(measure.rho))}
    numbers = {"epsilon": Field(float(measure.epsilon))}
    if isinstance(measure, ApproxDP):
        numbers["delta"] = Field(float(measure.delta))
    return numbers


def _spent(found: Evidence) -> str:
    named = shortened(found.account)
    charged = written(found.rule, found.charged)
    lines = [f"The answers described here were charged {charged} to the account {named}."]
    if found.book is None:
        lines += ["The numbers above are these charges; the account may have paid for others."]
    else:
        total = written(found.rule, found.book.total)
        spent = written(found.rule, found.book.spent)
        lines += [f"The account has spent {spent} in all, which are the numbers above."]
        lines += [f"It can never spend more than its total of {total}."]
        if found.others:
            charges = "one further charge" if found.others == 1 else f"{found.others:,} charges"
            lines += [f"It also paid for {charges} whose answers are not described here."]
    said = belief.warning(found.loss, found.unit) or f"{belief.sentence(found.loss, found.unit)}."
    return wording.bullets([*lines, f"What this means: {said}"])


def _model(found: Evidence, facts: Publication) -> Tree:
    stream = wording.is_stream(found)
    many = stream or len(found.charges) > 1
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
        "release_type_description": Field(_releases(found)),
        "data_source_type": _given(facts.data_source_type, Field(grows)),
        "data_source_type_description": Field(f"{source} Data: {wording.joined(found.sources)}."),
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
    return wording.bullets(
        [
            f"The data custodian{named} and the operator of the machine hold the rows and run the "
            "mechanisms. They are trusted: nothing protects the data from them.",
            "Auditors read the public part of the ledger, and can recompute every total. They need "
            "not be trusted with the data.",
            "Readers of the answers are not trusted. They may know anything else about anybody, "
            "and may work together.",
        ]
    )


def _releases(found: Evidence) -> str:
    charges = [
        f"entry {charge.entry}, {charge.date}: {charge} for {charge.source}"
        for charge in found.charges
    ]
    count = f"{len(charges):,} charges" if len(charges) > 1 else "One charge"
    return f"{count}: {wording.joined(charges)}."


def _accounting(found: Evidence, facts: Publication, findings: Sequence[Finding]) -> Tree:
    accounting = {
        "post_processing": _post_processing(found),
        "composition": Field(_composition(found)),
    }
    by_hand = [] if facts.auditing is None else [printable_lines(facts.auditing.strip())]
    measured = [figures(findings)] if findings else []
    if by_hand or measured:
        said = "\n".join([*measured, *by_hand])
        accounting["auditing"] = Field(said, by_hand=not measured)
    return accounting


def _post_processing(found: Evidence) -> Field:
    said = [(wording.afterwards(release), release) for release in found.releases]
    lines = wording.by_text((text, release) for text, release in said if text is not None)
    unknown = [release for text, release in said if text is None]
    if unknown:
        what = "what was computed from the mechanism's output before it was published"
        lines += [f"{wording.titles(unknown)}: {TODO}{what}"]
    return Field(wording.bullets([f"{line[:1].upper()}{line[1:]}." for line in lines]))


RULES = {
    "pure": "Epsilons are added up",
    "approx": "Epsilons and deltas are each added up",
    "zcdp": "Rhos are added up",
}


def _composition(found: Evidence) -> str:
    return (
        f"{RULES[found.rule]} over all charges of the account (sequential composition). The sum "
        "holds also where a question was chosen after earlier answers (Rogers, Roth, Ullman, "
        "Vadhan 2016; Feldman, Zrnic 2021). Each charge is recorded before a row is read, and a "
        "charge beyond the total is refused."
    )


def _resources(found: Evidence, facts: Publication) -> Tree:
    links = [f"Link: {printable_lines(text.strip())}" for text in listed(facts.sources)]
    return {
        "sources": Field(wording.bullets([*links, *implementation.software(found)])),
        "registry_authors": _given_list(
            facts.registry_authors, "who answers for this entry, by name"
        ),
    }
