"""Commands made from questions: one option for each field.

Each question of the library or of an installed package is a command this way, unless a command
was written for it by hand.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import click
import msgspec
from msgspec.inspect import (
    BoolType,
    CollectionType,
    CustomType,
    DecimalType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    StrType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)
from msgspec.structs import FieldInfo

from sfumato.answers.question import AnyQuestion
from sfumato.cli.answer_files import AnswerFiles
from sfumato.cli.option_types import FLOAT, INTEGER, Reading, Several
from sfumato.cli.options import (
    answer_options,
    cost_options,
    gathers,
    json_option,
    source_options,
)
from sfumato.cli.parsing import parse_clip
from sfumato.cli.publishing import PublishSettings, made, publish
from sfumato.data.options import StatedOptions
from sfumato.errors import UsageError

AXIS_FIELDS = ("axes", "axis")
"""The fields that --axis fills."""
TAKEN = {
    *PublishSettings.__struct_fields__,
    *AnswerFiles.__struct_fields__,
    *StatedOptions.__struct_fields__,
    *("anchor", "axis", "help", "json"),
}
"""The names of options that every such command has, which no field can take."""


def command_of(name: str, kind: type[AnyQuestion], short_help: str = "") -> click.Command:
    """The command that asks a question about one file.

    Parameters
    ----------
    name : str
    kind : type of Question
    short_help : str
        What the command does, in one sentence. Empty: the first sentence of the question.

    Raises
    ------
    UsageError
        If the question cannot be asked without a field that has no option.
    """
    summary, texts = described(inspect.getdoc(kind) or "")
    forms = _option_forms(name, kind)

    def ask(settings: PublishSettings, **given: object) -> None:
        domain = settings.domain()
        fields = {field: value for field, value in given.items() if value not in (None, ())}
        # An axis that another option names, such as --by, is not what the question is about.
        named = {
            axis
            for field, value in fields.items()
            if forms[field].reads is click.STRING
            for axis in _as_tuple(value)
        }
        subject = tuple(axis for axis in settings.subject(domain) if axis not in named)
        publish(settings, domain, made(kind, fields | _axis_field(kind, subject)))

    own = [
        _option(field, forms[field.name], texts)
        for field in msgspec.structs.fields(kind)
        if field.name in forms
    ]
    given = "".join(f" {each.opts[0]} age" for each in own if _names_an_axis(each))
    # click keeps the lines of a paragraph that begins with \b as they are.
    example = (
        f"\b\nExample:\n  sfumato {name} FILE --axis age=0..100{given} \\\n"
        "    --epsilon 0.5 --budget 2"
    )
    begins = short_help or summary
    return click.Command(
        name,
        params=[*_source_options.params, *own, *_answer_options.params],
        callback=gathers(PublishSettings)(ask),
        help=f"{begins}\n\n{example}",
        short_help=short_help or summary,
    )


@click.command()
@source_options()
def _source_options() -> None:
    """Holds the options that stand before those of a question; never run."""


@click.command()
@cost_options
@answer_options()
@json_option
def _answer_options() -> None:
    """Holds the options that stand after them; never run."""


# --- fields as options ---


@dataclass(frozen=True)
class Form:
    """How a field is written as an option.

    Attributes
    ----------
    reads : click.ParamType
        What the text of the option is read as.
    several : bool
        Whether the option is a list, separated by commas or repeated.
    flag : bool
        Whether the name alone says it: --name or --no-name.
    hint : str
        How it is written, for the help.
    """

    reads: click.ParamType[object]
    several: bool = False
    flag: bool = False
    hint: str = ""


SCALARS: Mapping[type[Type], Form] = {
    BoolType: Form(click.BOOL, flag=True),
    DecimalType: Form(click.STRING),
    FloatType: Form(FLOAT),
    IntType: Form(INTEGER),
    StrType: Form(click.STRING),
}


CLIP_TYPE = type_info(float | tuple[float, float] | Literal["auto"] | None)
CLIP = Form(
    Reading("clip", parse_clip, "a number, LOW:HIGH or auto"),
    hint="Write 200, 0:200 or auto.",
)


def form_of(kind: Type) -> Form | None:
    """How values of a type are written on a command line; None if they cannot be.

    >>> form_of(type_info(int | None)).reads.name
    'integer'
    >>> form_of(type_info(dict[str, int])) is None
    True
    """
    if kind == CLIP_TYPE:
        return CLIP
    if isinstance(kind, UnionType):
        return _form_of_union(kind)
    if isinstance(kind, ListType | VarTupleType | CollectionType):
        form = form_of(kind.item_type)
        is_scalar = form is not None and not form.several and not form.flag
        return replace(form, several=True) if form is not None and is_scalar else None
    if isinstance(kind, LiteralType) and all(isinstance(value, str) for value in kind.values):
        return Form(click.Choice([str(value) for value in kind.values]))
    if isinstance(kind, CustomType) and kind.cls is Fraction:
        # Text, because a float would be rounded before the question is made.
        return Form(click.STRING)
    return SCALARS.get(type(kind))


def _form_of_union(kind: UnionType) -> Form | None:
    """The one form in which all types of a union can be written, if there is one."""
    if any(isinstance(each, TupleType) for each in kind.types):
        # A tuple is one value of several parts, and an option reads one part only.
        return None
    forms = [form for each in kind.types if (form := form_of(each)) is not None]
    # A single value is a list of one, so that a list is the form for both.
    if any(form.several for form in forms):
        forms = [form for form in forms if form.several]
    reads = {form.reads for form in forms}
    if len(reads) == 1:
        return forms[0]
    if any(form.flag for form in forms):
        return None
    if click.STRING in reads:
        return Form(click.STRING, forms[0].several)
    if reads == {INTEGER, FLOAT}:
        return Form(FLOAT, forms[0].several)
    return None


def _option_forms(name: str, kind: type[AnyQuestion]) -> dict[str, Form]:
    """The fields that become options, by name; the others can be set in a plan only.

    Raises
    ------
    UsageError
        If a field without a default cannot be an option.
    """
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.name in AXIS_FIELDS:
            continue
        form = None if field.name in TAKEN else form_of(type_info(field.type))
        if form is not None:
            found[field.name] = form
        elif field.required:
            obstacle = f"its field {field.name!r} cannot be written as an option"
            remedy = "Ask this question in a plan, or from Python"
            raise UsageError(f"the command {name!r}", obstacle, remedy)
    return found


def _option(field: FieldInfo, form: Form, texts: Mapping[str, str]) -> click.Option:
    """The option of a field. Left out, the field keeps the default of the question."""
    option_name = f"--{field.name.replace('_', '-')}"
    # What the docstring says of None is what holds without the option.
    help_text = texts.get(field.name, "").replace("None: ", "Without it, ")
    help_text = f"{help_text} {form.hint}".strip()
    if isinstance(field.default, str | int | float | Fraction):
        help_text = f"{help_text}  [default: {field.default}]".strip()
    if form.flag:
        return click.Option(
            [f"{option_name}/--no-{option_name[2:]}", field.name],
            default=None,
            required=field.required,
            help=help_text,
        )
    if form.several:
        return click.Option(
            [option_name, field.name],
            multiple=True,
            type=Several(form.reads),
            callback=_joined,
            required=field.required,
            help=help_text,
        )
    return click.Option(
        [option_name, field.name], type=form.reads, required=field.required, help=help_text
    )


def _names_an_axis(option: click.Option) -> bool:
    """Whether an option must be given, and holds text: then the text is most likely an axis."""
    return option.required and option.type.name == "text"


def _joined(
    _: click.Context,
    __: click.Parameter,
    given: tuple[tuple[object, ...], ...],
) -> tuple[object, ...]:
    """The lists of a repeated option as one list."""
    return tuple(value for values in given for value in values)


def _as_tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _axis_field(kind: type[AnyQuestion], subject: tuple[str, ...]) -> dict[str, object]:
    """The field that names the axes that the question is about, with those axes."""
    for field in msgspec.structs.fields(kind):
        form = form_of(type_info(field.type)) if field.name in AXIS_FIELDS else None
        if form is None or (not subject and not field.required):
            continue
        if form.several:
            return {field.name: subject}
        if len(subject) != 1:
            obstacle = f"it is about one axis, and {len(subject)} are left for it"
            remedy = "Declare one --axis that no other option names"
            raise UsageError(f"asking a {kind.__name__}", obstacle, remedy)
        return {field.name: subject[0]}
    return {}


# --- what the docstring says ---


def described(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what its section "Parameters" says of each name.

    >>> parameters = "Parameters\\n----------\\na, b : int\\n    Two ``numbers``,\\n    or none."
    >>> described(f"How many?\\n\\n{parameters}")
    ('How many?', {'a': 'Two numbers, or none.', 'b': 'Two numbers, or none.'})
    """
    doc = doc.replace("``", "")
    summary, _, rest = doc.partition("\n\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    _, heading, section = rest.partition("Parameters\n----------\n")
    for line in section.splitlines() if heading else []:
        entry = re.match(r"(\w+(?:, \w+)*) : ", line)
        if entry is not None:
            names = entry[1].split(", ")
        elif line.startswith(" "):
            texts |= {name: f"{texts.get(name, '')} {line.strip()}".strip() for name in names}
        elif line:
            break
    return " ".join(summary.split()), texts
