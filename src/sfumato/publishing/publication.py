"""What only a person knows of a publication: who publishes, for what use, and where.

It is text for a disclosure document. It changes neither cells nor noise nor price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec

from sfumato.errors import UsageError, nearest, shown

LONGEST = 10_000
"""Characters of one text."""

Note = Literal[
    "data_domain",
    "unprotected_quantities",
    "privacy_unit_description",
    "privacy_parameters_description",
    "model_name_description",
    "actors",
    "release_type_description",
    "data_source_type_description",
    "access_type_description",
    "post_processing",
    "composition",
    "pre_processing_eda_hyperparameter_tuning",
    "mechanisms",
    "justification",
]
"""The fields of a disclosure document to which a person may add: they are filled without one."""


class Publication(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """``[publication]``: the facts of a disclosure document that no release knows.

    The names of its fields are those of the registry of deployments. All of them are public.

    Parameters
    ----------
    name : str or None
        What the published data are called; None: it follows from the data's name.
    data_curators : str or list of str
        The organisations that hold the data and publish.
    intended_use, data_product_region, data_product_sector : str or None
        What the data are published for; which part of the world they are about; the sector.
    description : str or None
        What was published; None: the titles of the answers.
    release_type : {"One release", "Many releases"} or None
        None: it follows from the number of charges.
    data_source_type : {"Static", "Dynamic"} or None
        Whether the data grow while they are published; None: "Dynamic" for a stream.
    auditing : str or None
        Who examined the deployment, and what was found.
    sources : str or list of str
        Links to papers, code and data.
    registry_authors : str or list of str
        Who answers for the document.
    notes : dict
        Sentences to add to fields that are filled without a hand, by the name of the field.

    Raises
    ------
    UsageError
        If a text is empty or longer than 10,000 characters, a choice is none of those listed, or a
        note is for a field to which none can be added.
    """

    name: str | None = None
    data_curators: str | tuple[str, ...] = ()
    intended_use: str | None = None
    data_product_region: str | None = None
    data_product_sector: str | None = None
    description: str | None = None
    release_type: Literal["One release", "Many releases"] | None = None
    data_source_type: Literal["Static", "Dynamic"] | None = None
    auditing: str | None = None
    sources: str | tuple[str, ...] = ()
    registry_authors: str | tuple[str, ...] = ()
    notes: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            for text in _texts(getattr(self, name)):
                _require_text(name, text)
        for name in self.notes:
            if name not in get_args(Note):
                obstacle = f"no note can be added there; {nearest(name, get_args(Note))}"
                raise UsageError(f"notes, {shown(name)}", obstacle, "Correct the name")


def listed(given: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several, as several.

    >>> listed("Wikimedia Foundation")
    ('Wikimedia Foundation',)
    """
    return (given,) if isinstance(given, str) else tuple(given)


def _texts(value: object) -> list[object]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list) else [value]


def _require_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise UsageError(f"{name} = {shown(text)}", "it is no text", f'Write {name} = "..."')
    if not text.strip():
        remedy = "Write it, or leave the field out: the document then says what to write"
        raise UsageError(f"{name} = {shown(text)}", "the text is empty", remedy)
    if len(text) > LONGEST:
        obstacle = f"it has {len(text):,} characters, and the limit is {LONGEST:,}"
        raise UsageError(name, obstacle, "Shorten it, and give a link in sources")
