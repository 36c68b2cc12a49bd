"""How the answers were computed: preparation of the rows, mechanisms, reasons and software."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from sfumato._version import __version__
from sfumato.disclosure import wording
from sfumato.disclosure.evidence import Evidence
from sfumato.disclosure.fields import Field, Tree
from sfumato.questions.persons.release import PersonsRelease

PACKAGE = Path(__file__).parent.parent
SUFFIXES = frozenset({".py", ".pyi", ".html", ".css"})


def fields(found: Evidence) -> Tree:
    """What the registry asks of an implementation."""
    return {
        "pre_processing_eda_hyperparameter_tuning": Field(preparation(found)),
        "mechanisms": Field(mechanisms(found)),
        "justification": Field(justification(found)),
    }


def preparation(found: Evidence) -> str:
    """What happened to the rows before the noise, and what the limits rest on."""
    counted = wording.by_text((one.guarantee.counted, one) for one in found.releases)
    lines = [
        *counted,
        "Axes, bounds, labels, limits and costs were fixed before each charge. The guarantee "
        "assumes that they rest on public knowledge and on answers that were paid for, and on "
        "nothing else.",
    ]
    persons = [one for one in found.releases if isinstance(one, PersonsRelease)]
    if persons:
        paid = ", ".join(f"entry {one.receipt.entry}" for one in persons if one.receipt)
        lines.append(
            f"How many rows persons have was published as an answer of its own ({paid}), and paid "
            "for. Limits chosen from it cost nothing more."
        )
    return wording.bullets(lines)


def mechanisms(found: Evidence) -> str:
    """What adds the randomness, how far a person moves what is measured, and how it is drawn."""
    added = wording.by_text((f"{one.guarantee.mechanism}.", one) for one in found.releases)
    moved = wording.by_text(
        (f"Sensitivity: {one.guarantee.proof.sensitivity}", one) for one in found.releases
    )
    slack = wording.by_text(
        (f"Numerical slack: {one.guarantee.slack}.", one) for one in found.releases
    )
    return wording.bullets(
        [
            *(line[:1].upper() + line[1:] for line in added),
            *moved,
            *slack,
            f"Implemented by Sfumato {found.version}. Randomness comes from AES in counter mode, "
            "under a random key of the operating system, and never from a public seed.",
            "Not interactive, so readers cannot time a query. How long a run takes is not covered.",
        ]
    )


def justification(found: Evidence) -> str:
    """Why the guarantee holds, how accurate the answers are, and how the cost was chosen."""
    proofs = wording.by_text(
        (f"{one.guarantee.proof.because} Source: {one.guarantee.proof.source}", one)
        for one in found.releases
    )
    lines = [f"Holds because: {proof}" for proof in proofs]
    lines += [f"Accuracy of {text}" for text in wording.accuracies(found)]
    for window in found.windows:
        lines.append(f"The cost was chosen by a window: {' '.join(window.explain().split())}")
    return wording.bullets(lines)


def software(found: Evidence) -> list[str]:
    """The version that published, and the digest of its files where it is installed here."""
    made = f"Software: Sfumato {found.version}, Apache-2.0"
    if found.version == __version__:
        made += f"; SHA-256 of the files that wrote this document: {digest()}"
    lines = [f"{made}."]
    if found.head is not None:
        number, last = found.head
        lines.append(f"Ledger: {number:,} entries, the last of which has the hash {last}.")
    return [*lines, found.standing]


@cache
def digest() -> str:
    """The SHA-256 of the library's own files, by name: whoever installs it can compare."""
    whole = hashlib.sha256()
    files = [path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES and path.is_file()]
    for path in sorted(files, key=lambda path: path.relative_to(PACKAGE).as_posix()):
        whole.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
