"""The entry as YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.disclosure.evidence import Evidence
from sfumato.disclosure.fields import Tree, leaves, plain
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from yaml import Node

WIDTH = 100


def to_yaml(tree: Tree, found: Evidence) -> str:
    """Write the entry as YAML, under a comment that says what a person has to do with it.

    Raises
    ------
    UsageError
        If PyYAML is not installed.
    """
    return f"{_heading(tree, found)}{_dumped(plain(tree))}"


def missing(tree: Tree) -> dict[str, str]:
    """The fields that a person has to fill in, by place, and what to write there."""
    found = {}
    for place, field in leaves(tree):
        if field.missing:
            texts = field.value if isinstance(field.value, list) else [str(field.value)]
            found[place] = "; ".join(texts)
    return found


def counted(tree: Tree) -> tuple[int, int]:
    """How many fields were filled in without a hand, and how many there are; constants aside."""
    fields = [field for _, field in leaves(tree) if not field.constant]
    return sum(not field.by_hand and not field.missing for field in fields), len(fields)


def _heading(tree: Tree, found: Evidence) -> str:
    filled, fields = counted(tree)
    lines = [
        "An entry for the OpenDP registry of differential-privacy deployments, tier 3.",
        f"Sfumato filled in {filled} of {fields} fields from the releases.",
    ]
    wanted = missing(tree)
    if wanted:
        lines.append("Before you send it, write these by hand, in place of each TODO:")
        lines += [f"  {place}" for place in wanted]
    if not found.verified:
        lines.append(found.standing)
    return "".join(f"# {line}\n" for line in lines)


def _dumped(values: dict[str, object]) -> str:
    try:
        import yaml
    except ImportError:
        raise UsageError(
            "a disclosure in YAML", "PyYAML is not installed", "Run: pip install pyyaml"
        ) from None
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(values)
    _break_lines(node)
    written: str = yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True, width=WIDTH)
    return written


def _break_lines(node: Node) -> None:
    """Write texts of several lines line by line, as a person reads them."""
    if isinstance(node.value, str):
        node.style = "|" if "\n" in node.value else node.style
        return
    for child in node.value:
        for one in child if isinstance(child, tuple) else (child,):
            _break_lines(one)
