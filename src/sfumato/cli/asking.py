"""The command of a question that has none written for it: one option for each of its fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

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
from sfumato.cli.options import (
    FLOAT,
    INTEGER,
    Several,
    charged_option,
    cost_options,
    fresh_option,
    gathers,
    json_option,
    out_option,
    plot_option,
    source_options,
)
from sfumato.cli.publishing import Publishing, made, publish
from sfumato.errors import UsageError

ABOUT = ("axes", "axis")
"""Fields that --axis fills."""
TAKEN = {*Publishing.__struct_fields__, "anchor", "axis", "help", "json"}
"""Names of the options that every command of a question has."""


def command_of(name: str, kind: type[AnyQuestion]) -> click.Command:
    """The command that asks a question about one file.

    Raises
    ------
    UsageError
        If the question cannot be asked without a field that has no option.
    """
    summary, texts = described(inspect.getdoc(kind) or "")
    fields = _askable(name, kind)

    def ask(told: Publishing, **given: object) -> None:
        domain = told.domain()
        asked = {field: value for field, value in given.items() if value not in (None, ())}
        texts_of = [value for field, value in asked.items() if fields[field].reads is click.STRING]
        named = {word for value in texts_of for word in _words(value)}
        about = tuple(axis for axis in domain if axis not in named)
        publish(told, domain, made(kind, asked | _axes(kind, about)))

    asked_for = [field for field in msgspec.structs.fields(kind) if field.name in fields]
    own = [_option(field, fields[field.name], texts) for field in asked_for]
    example = f"Example: sfumato {name} FILE --axis age=0..100 --epsilon 0.5 --budget 2"
    return click.Command(
        name,
        params=[*_of_source.params, *own, *_of_answer.params],
        callback=gathers(Publishing)(ask),
        help=f"{summary}\n\n{example}",
        short_help=summary,
    )


@click.command()
@source_options()
def _of_source() -> None:
    """The options that stand before those of a question."""


@click.command()
@cost_options
@charged_option
@fresh_option
@out_option
@plot_option()
@json_option
def _of_answer() -> None:
    """The options that stand after them."""


# --- fields as options ---


@dataclass(frozen=True)
class Form:
    """How a field is written: what is read, whether as a list, and whether its name alone says it."""

    reads: click.ParamType[object]
    several: bool = False
    flag: bool = False


SCALARS: Mapping[type[Type], Form] = {
    BoolType: Form(click.BOOL, flag=True),
    DecimalType: Form(click.STRING),
    FloatType: Form(FLOAT),
    IntType: Form(INTEGER),
    StrType: Form(click.STRING),
}


def form_of(kind: Type) -> Form | None:
    """How values of a type are written on a command line; None: they are not.

    >>> form_of(type_info(int | None)).reads.name
    'integer'
    >>> form_of(type_info(dict[str, int])) is None
    True
    """
    if isinstance(kind, UnionType):
        if any(isinstance(each, TupleType) for each in kind.types):
            return None  # an option that reads one of its numbers would lose the others
        return _common([form for each in kind.types if (form := form_of(each)) is not None])
    if isinstance(kind, ListType | VarTupleType | CollectionType):
        form = form_of(kind.item_type)
        return None if form is None or form.several or form.flag else replace(form, several=True)
    if isinstance(kind, LiteralType) and all(isinstance(value, str) for value in kind.values):
        return Form(click.Choice([str(value) for value in kind.values]))
    if isinstance(kind, CustomType) and kind.cls is Fraction:
        return Form(click.STRING)  # read exactly when the question is made
    return SCALARS.get(type(kind))


def _common(forms: list[Form]) -> Form | None:
    """The one form in which the types of a union are written, if there is one."""
    if any(form.several for form in forms):
        forms = [form for form in forms if form.several]
    reads = {form.reads for form in forms}
    if len(reads) == 1:
        return forms[0]
    if any(form.flag for form in forms):
        return None
    if click.STRING in reads:
        return Form(click.STRING, forms[0].several)
    return Form(FLOAT, forms[0].several) if reads == {INTEGER, FLOAT} else None


def _askable(name: str, kind: type[AnyQuestion]) -> dict[str, Form]:
    """The fields that have an option, and how each is written; the others are set in a plan."""
    found = {}
    for field in msgspec.structs.fields(kind):
        form = None if field.name in TAKEN else form_of(type_info(field.type))
        if form is not None and field.name not in ABOUT:
            found[field.name] = form
        elif field.required and field.name not in ABOUT:
            obstacle = f"its field {field.name!r} has no form as an option"
            remedy = "Ask this question in a plan, or from Python"
            raise UsageError(f"the command {name!r}", obstacle, remedy)
    return found


def _option(field: FieldInfo, form: Form, texts: Mapping[str, str]) -> click.Option:
    """The option of a field; left out, it has the default of the question."""
    word = f"--{field.name.replace('_', '-')}"
    text = texts.get(field.name, "")
    default = field.default
    if isinstance(default, str | int | float | Fraction):
        text = f"{text}  [default: {default}]".strip()
    needed = field.required
    if form.flag:
        both = f"{word}/--no-{word[2:]}"
        return click.Option([both, field.name], default=None, required=needed, help=text)
    if not form.several:
        return click.Option([word, field.name], type=form.reads, required=needed, help=text)
    return click.Option(
        [word, field.name],
        multiple=True,
        type=Several(form.reads),
        callback=_joined,
        required=needed,
        help=text,
    )


def _joined(
    _: click.Context,
    __: click.Parameter,
    given: tuple[tuple[object, ...], ...],
) -> tuple[object, ...]:
    """What several uses of an option list, as one list."""
    return tuple(value for values in given for value in values)


def _words(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _axes(kind: type[AnyQuestion], about: tuple[str, ...]) -> dict[str, object]:
    """The field that says what the question is about: the axes that no other option names."""
    for field in msgspec.structs.fields(kind):
        form = form_of(type_info(field.type)) if field.name in ABOUT else None
        if form is None or (not about and not field.required):
            continue
        if form.several:
            return {field.name: about}
        if len(about) != 1:
            obstacle = f"it is about one axis, and {len(about)} are left for it"
            remedy = "Declare one --axis that no other option names"
            raise UsageError(f"asking a {kind.__name__}", obstacle, remedy)
        return {field.name: about[0]}
    return {}


# --- what the docstring says ---


def described(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what its section "Parameters" says of each name.

    >>> described("How many?\\n\\nParameters\\n----------\\na, b : int\\n    Two ``numbers``,\\n    or none.\\n\\n>>> 1")
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
