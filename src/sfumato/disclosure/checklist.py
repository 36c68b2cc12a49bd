"""A checklist by NIST SP 800-226: what an evaluator asks, and what the releases answer.

The questions follow the layers of its pyramid, from the parameters at the top to the collection of
the data at the bottom, in words of our own.

Source: Near, Darais, Lefkovitz, Howarth, Guidelines for Evaluating Differential Privacy Guarantees,
NIST SP 800-226, 2025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sfumato.basics.text import page_template
from sfumato.disclosure import implementation, wording
from sfumato.disclosure.entry import NAMES
from sfumato.disclosure.evidence import Evidence
from sfumato.disclosure.fields import TODO, Field, Tree, leaves
from sfumato.privacy import belief

_TEMPLATE = Path(__file__).with_name("checklist.html")


@dataclass(frozen=True)
class Item:
    """One question of the checklist.

    Attributes
    ----------
    layer, question : str
    answers : tuple of str
        Lines. Those that begin with "TODO: " are for a person to answer.
    """

    layer: str
    question: str
    answers: tuple[str, ...]

    @property
    def missing(self) -> bool:
        """Whether a person still has to answer it, or a part of it."""
        return any(TODO in line for line in self.answers)


def checklist(found: Evidence, tree: Tree) -> list[Item]:
    """The questions with their answers, from the parameters down to the data."""
    said = {place.rpartition(".")[2]: field for place, field in leaves(tree)}
    return [*_guarantee(found, said), *_algorithms(found, said), *_deployment(found, said)]


def render(found: Evidence, tree: Tree) -> str:
    """The checklist as one HTML page that loads nothing. It is the same for the same releases."""
    items = checklist(found, tree)
    layers: dict[str, list[Item]] = {}
    for item in items:
        layers.setdefault(item.layer, []).append(item)
    name = {place: field.value for place, field in leaves(tree)}["deployment.product.name"]
    return page_template(_TEMPLATE).render(
        name=name,
        layers=layers,
        open=sum(item.missing for item in items),
        items=len(items),
        standing=found.standing,
        verified=found.verified,
        version=found.version,
    )


def _lines(field: Field) -> tuple[str, ...]:
    """The lines of a field, without the marks of a list."""
    lines = [line.removeprefix("- ") for line in str(field.value).split("\n")]
    return tuple(f"{line[:1].upper()}{line[1:]}" for line in lines)


def _guarantee(found: Evidence, said: Mapping[str, Field]) -> list[Item]:
    layer = "The guarantee: parameters, definition and unit"
    return [
        Item(
            layer,
            "What are the privacy parameters, and what do they allow?",
            (_lines(Field(f"{found.loss}."))[0], *_lines(said["privacy_parameters_description"])),
        ),
        Item(
            layer,
            "Are the parameters small enough for the risk, and who decided it?",
            _decision(found),
        ),
        Item(
            layer,
            "Which definition of differential privacy holds?",
            (_flavor(found),),
        ),
        Item(
            layer,
            "What is the unit of privacy, and is it a whole person?",
            (*_lines(said["privacy_unit_description"]), _whole_person(found)),
        ),
        Item(layer, "What is not protected?", _lines(said["unprotected_quantities"])),
        Item(layer, "How do several releases add up?", _lines(said["composition"])),
    ]


def _flavor(found: Evidence) -> str:
    neighbours = "unbounded" if found.unit.neighbours == "add-remove" else "bounded"
    return f"{NAMES[str(found.loss.__struct_config__.tag)]}, {neighbours} neighbours."


def _decision(found: Evidence) -> tuple[str, ...]:
    if found.windows:
        return tuple(line for window in found.windows for line in window.explain().split("\n"))
    warned = belief.warning(found.loss, found.unit)
    why = f"{TODO}who chose the budget, and by what argument (sfumato choose, sf.window)"
    return (warned, why) if warned else (why,)


def _whole_person(found: Evidence) -> str:
    unit = found.unit
    if unit.person is None:
        return "The rows of one person are not joined: see what is assumed."
    if len(unit.person_columns) > 1:
        return "A person in several periods is protected in each of them alone, not in all."
    return "All rows of a person are protected together, if the column names the person."


def _algorithms(found: Evidence, said: Mapping[str, Field]) -> list[Item]:
    layer = "Algorithms and correctness"
    return [
        Item(
            layer,
            "Which mechanisms are used, with which sensitivity?",
            _lines(said["mechanisms"]),
        ),
        Item(layer, "Why does the guarantee hold?", _proofs(found)),
        Item(
            layer,
            "How accurate are the answers, and does a reader learn it?",
            tuple(wording.accuracies(found)),
        ),
        Item(
            layer,
            "Can bounding or noise bias the answers against small groups?",
            (
                *dict.fromkeys(one.guarantee.counted for one in found.releases),
                f"{TODO}which groups are small or have many rows a person, and what that does",
            ),
        ),
        Item(
            layer,
            "Are finite arithmetic and randomness sound?",
            (
                *dict.fromkeys(f"Slack: {one.guarantee.slack}." for one in found.releases),
                "Noise is drawn in whole numbers from a cryptographic generator.",
            ),
        ),
        Item(
            layer,
            "Can the implementation be checked?",
            (*implementation.software(found), *_audited(said)),
        ),
    ]


def _proofs(found: Evidence) -> tuple[str, ...]:
    lines = wording.by_text((one.guarantee.proof.because, one) for one in found.releases)
    sources = wording.by_text((one.guarantee.proof.source, one) for one in found.releases)
    return (*lines, *(f"Source: {source}" for source in sources))


def _audited(said: Mapping[str, Field]) -> tuple[str, ...]:
    if "auditing" in said:
        return _lines(said["auditing"])
    return ("The command sfumato audit measures what each mechanism of this version spends.",)


def _deployment(found: Evidence, said: Mapping[str, Field]) -> list[Item]:
    layer = "Deployment: trust, security and the data"
    return [
        Item(layer, "Who has to be trusted?", _lines(said["actors"])),
        Item(layer, "Who may ask, and when?", _lines(said["access_type_description"])),
        Item(
            layer,
            "Which side channels are there?",
            (
                "Time and memory of a run depend on the data and are not covered: publish on a "
                "schedule, and do not let strangers start a run.",
            ),
        ),
        Item(
            layer,
            "How are the raw data, the ledger's secrets and backups protected?",
            (f"{TODO}who may read the raw data, how access is controlled, and where backups are",),
        ),
        Item(
            layer,
            "How were the data collected, and are they needed at all?",
            (f"{TODO}the legal ground, what was collected, and when it is deleted",),
        ),
        Item(
            layer,
            "Is anything about the same people published by other means?",
            (f"{TODO}other releases, exact totals in catalogues, and other ledgers",),
        ),
    ]
