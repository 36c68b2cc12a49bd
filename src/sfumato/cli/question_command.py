"""Commands made from questions: one option for each field.

Each question of the library or of an installed package is a command this way. What the docstring
of a question does not say of its command, such as examples, stands in a table.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Literal, TypeAlias

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

from sfumato.answers import AnyQuestion
from sfumato.cli.layers import GroupedOption, LayeredCommand
from sfumato.cli.options import (
    FLOAT,
    INTEGER,
    QUESTION,
    Reading,
    Several,
    account_options,
    charged_option,
    cost_options,
    files_options,
    gathers,
    json_option,
    option_names,
    paid_options,
    parameters,
    plot_option,
    source_options,
    words_options,
)
from sfumato.cli.parsing import parse_bins, parse_clip, parse_widths
from sfumato.cli.publishing import PublishSettings, publish, question_of
from sfumato.domain import Axis, Domain, Interval
from sfumato.errors import UsageError

# --- commands from questions ----------------------------------------------------------------------

# The fields that --axis fills.
AXIS_FIELDS = ("axes", "axis")
# The field that holds a column of numbers: --axis fills it, too, where it declares only one.
VALUE_FIELD = "value"
# The names of options that every such command has, which no field can take.
TAKEN = {
    *option_names(PublishSettings),
    *("anchor", "axis", "help", "json"),
}

# The options of a question that were given, by field.
Fields: TypeAlias = dict[str, object]
# What publishes the answer to a question with these fields.
Ask: TypeAlias = Callable[[PublishSettings, Fields], object]


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
        What the help says of it.
    gather : callable or None
        What makes one value of the texts of a repeated option.
    """

    reads: click.ParamType[object] = click.STRING
    several: bool = False
    flag: bool = False
    hint: str = ""
    gather: Callable[[tuple[str, ...]], object] | None = None

    @property
    def param_type(self) -> click.ParamType[object]:
        """What the text of the option, which may be a list, is read as."""
        return Several(self.reads) if self.several else self.reads

    def gathered(self, _: object, __: object, texts: tuple[str, ...]) -> object:
        """Make one value of a repeated option; one that is left out has none."""
        if self.gather is None:
            return tuple(chain.from_iterable(texts)) or None
        return self.gather(texts) if texts else None


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What a command says and takes.

    Attributes
    ----------
    text : str
        The help above the options; what follows a form feed is in --help-all only.
    options : mapping of str to str or Form
        The common options in their order, by field: their help, or how they are written where the
        type of the field does not say it. A name that is no field is for what asks the question.
    rare : mapping of str to str or Form
        Options that only --help-all shows.
    names : mapping of str to str
        What options are called that are not called after their field.
    plots : str
        What --plot draws, singular or plural.
    has_file, has_axes : bool
        Whether a file and axes must be given.
    """

    text: str
    options: Mapping[str, str | Form]
    rare: Mapping[str, str | Form] = {}
    names: Mapping[str, str] = {}
    plots: str = "the answer"
    has_file: bool = True
    has_axes: bool = True


def command_of(name: str, kind: type[AnyQuestion], short_help: str = "") -> click.Command:
    """Make the command that asks a question about one file.

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
    options = _forms(name, kind, texts)
    # An option that must be given, and holds text, most likely names an axis.
    names = [
        _option_name(field.name)
        for field in msgspec.structs.fields(kind)
        if field.required
        and field.name != VALUE_FIELD
        and field.name in options
        and options[field.name].reads is click.STRING
    ]
    # click keeps the lines of a paragraph that begins with \b as they are.
    flags = [f"{flag} age" for flag in names]
    question = " ".join([f"sfumato {name} FILE --axis age=0..100", *flags])
    example = f"\b\nExample:\n  {question} \\\n    --epsilon 0.5 --budget 2"
    wording = Wording(text=f"{short_help or summary}\n\n{example}", options=options)
    return worded_command(name, [kind], wording, asking(kind))


def worded_command(
    name: str, kinds: Sequence[type[AnyQuestion]], wording: Wording, ask: Ask
) -> click.Command:
    """Make the command of questions whose options are stated.

    Parameters
    ----------
    name : str
    kinds : sequence of types of Question
        Their fields are the options.
    wording : Wording
    ask : callable
    """
    fields = {field.name: field for kind in kinds for field in msgspec.structs.fields(kind)}

    def run(settings: PublishSettings, **given: object) -> None:
        stated = {field: value for field, value in given.items() if value not in (None, ())}
        try:
            ask(settings, stated)
        except UsageError as error:
            note = settings.table.left_out_by_conditions(str(error))
            if note:
                error.add_note(note)
            raise

    def made_options(options: Mapping[str, str | Form], *, common: bool) -> list[GroupedOption]:
        return [
            _option(key, form, fields.get(key), wording.names, common=common)
            for key, form in options.items()
        ]

    shown = (words_options, files_options, plot_option(wording.plots), json_option)
    return LayeredCommand(
        name,
        params=[
            *parameters(source_options(has_file=wording.has_file, has_axes=wording.has_axes)),
            *made_options(wording.options, common=True),
            *made_options(wording.rare, common=False),
            *parameters(cost_options, account_options, charged_option, paid_options, *shown),
        ],
        callback=gathers(PublishSettings)(run),
        help=wording.text,
    )


def asking(kind: type[AnyQuestion], axis_kind: type[Axis] | None = None) -> Ask:
    """Return what asks a question about the axes without a condition.

    Parameters
    ----------
    kind : type of Question
    axis_kind : type or None
        Which axes it is about. None: all kinds.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    texts = {
        name
        for name, field in fields.items()
        if (form := form_of(type_info(field.type))) is not None and form.reads is click.STRING
    }
    # Whether it cannot be asked without the name of a column of numbers.
    names_value = VALUE_FIELD in texts and fields[VALUE_FIELD].required

    def ask(settings: PublishSettings, given: Fields) -> None:
        domain = settings.table.domain()
        # An axis that another option names, such as --by, is not what the question is about.
        named = _axes_in([given[field] for field in texts & given.keys()])
        if names_value and VALUE_FIELD not in given:
            value = _value_axis(kind, settings.table.subject(domain, Interval), domain, named)
            given = given | {VALUE_FIELD: value}
            named.add(value)
        fitting = settings.table.subject(domain, axis_kind)
        subject = tuple(name for name in fitting if name not in named)
        publish(settings, domain, question_of(kind, given | _axis_field(kind, subject)))

    return ask


def _axes_in(stated: Iterable[object]) -> set[object]:
    """Return the names in options of which some take one axis, and some take several."""
    return {axis for axes in stated for axis in (axes if isinstance(axes, tuple) else [axes])}


def _value_axis(
    kind: type[AnyQuestion], subject: Sequence[str], domain: Domain, named: Set[object]
) -> str:
    """Return the only axis of numbers that no option names.

    Raises
    ------
    UsageError
        If there is none, or several.
    """
    numbers = [
        name
        for name in subject
        if name not in named and isinstance(axis := domain[name], Interval) and axis.time is None
    ]
    if len(numbers) == 1:
        return numbers[0]
    obstacle = "no --axis declares a column of numbers for it"
    remedy = "Declare one with its public bounds, as in --axis age=0..100"
    if numbers:
        obstacle = f"--axis declares {len(numbers)} columns of numbers: {', '.join(numbers)}"
        remedy = f"Say which is meant, as in --value {numbers[0]}"
    raise UsageError(f"asking a {kind.__name__} without --value", obstacle, remedy)


def _axis_field(kind: type[AnyQuestion], subject: tuple[str, ...]) -> Fields:
    for field in msgspec.structs.fields(kind):
        form = form_of(type_info(field.type)) if field.name in AXIS_FIELDS else None
        if form is None or (not subject and not field.required):
            continue
        if form.several:
            return {field.name: subject}
        if len(subject) != 1:
            raise UsageError(
                f"asking a {kind.__name__}",
                f"it is about one axis, and {len(subject)} are left for it",
                "Declare one --axis that no other option names",
            )
        return {field.name: subject[0]}
    return {}


# --- fields as options ---


SCALARS: Mapping[type[Type], Form] = {
    BoolType: Form(click.BOOL, flag=True),
    DecimalType: Form(),
    FloatType: Form(FLOAT),
    IntType: Form(INTEGER),
    StrType: Form(),
}
CLIP_TYPE = type_info(float | tuple[float, float] | Literal["auto"] | None)
CLIP = Form(
    Reading("clip", parse_clip, "a number, LOW:HIGH or auto"),
    hint="Write 200, 0:200 or auto.",
)


def form_of(kind: Type) -> Form | None:
    """Return how values of a type are written on a command line; None if they cannot be.

    >>> form_of(type_info(int | None)).reads.name
    'integer'
    >>> form_of(type_info(dict[str, int])) is None
    True
    """
    match kind:
        case UnionType():
            return CLIP if kind == CLIP_TYPE else _form_of_union(kind)
        case ListType() | VarTupleType() | CollectionType():
            form = form_of(kind.item_type)
            if form is None or form.several or form.flag:
                return None
            return replace(form, several=True)
        case LiteralType(values=values) if set(map(type, values)) == {str}:
            return Form(click.Choice(list(map(str, values))))
        case CustomType() if kind.cls is Fraction:
            # Text, because a float would be rounded before the question is made.
            return Form()
    return SCALARS.get(type(kind))


def _form_of_union(kind: UnionType) -> Form | None:
    """Return the one form in which all types of a union can be written, if there is one."""
    if any(isinstance(part, TupleType) for part in kind.types):
        # A tuple is one value of several parts, and an option reads one part only.
        return None
    forms = list(filter(None, map(form_of, kind.types)))
    # A single value is a list of one, so that a list is the form for both.
    forms = [form for form in forms if form.several] or forms
    # What reads all that these forms read, if there is such a type.
    reads = {form.reads for form in forms}
    if click.STRING in reads and click.BOOL not in reads:
        reads = {click.STRING}
    elif reads == {INTEGER, FLOAT}:
        reads = {FLOAT}
    return replace(forms[0], reads=reads.pop()) if len(reads) == 1 else None


def _forms(name: str, kind: type[AnyQuestion], texts: Mapping[str, str]) -> dict[str, Form]:
    """Return the fields that become options, by name; the others can be set in a plan only.

    Parameters
    ----------
    name : str
        Of the command.
    kind : type of Question
    texts : mapping of str to str
        What the docstring says of each field.

    Raises
    ------
    UsageError
        If a field without a default cannot be an option.
    """
    forms = {}
    for field in msgspec.structs.fields(kind):
        if field.name in AXIS_FIELDS:
            continue
        form = None if field.name in TAKEN else form_of(type_info(field.type))
        if form is not None:
            # What the docstring says of None is what holds without the option.
            text = texts.get(field.name, "").replace("None: ", "Without it, ")
            hint = f"{text} {form.hint}".strip()
            forms[field.name] = replace(form, hint=hint)
        elif field.required:
            raise UsageError(
                f"the command {name!r}",
                f"its field {field.name!r} cannot be written as an option",
                "Ask this question in a plan, or from Python",
            )
    return forms


def _option_name(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _option(
    name: str,
    stated: str | Form,
    field: FieldInfo | None,
    names: Mapping[str, str],
    *,
    common: bool,
) -> GroupedOption:
    """Make the option of a field. Left out, the field keeps the default of the question."""
    if isinstance(stated, str):
        # The type of the field says how it is written. Without a field it is a text.
        form = None if field is None else form_of(type_info(field.type))
        form = replace(form or Form(), hint=stated)
    else:
        form = stated
    option_name = names.get(name, _option_name(name))
    if form.flag and name not in names:
        option_name = f"{option_name}/--no-{option_name[2:]}"
    repeated: dict[str, object] = {}
    if form.several or form.gather is not None:
        repeated = {"multiple": True, "default": (), "callback": form.gathered}
    return GroupedOption(
        [option_name, name],
        group=QUESTION,
        common=common,
        is_flag=form.flag,
        type=form.param_type,
        required=field is not None and field.required and name != VALUE_FIELD,
        help=_with_default(form.hint, field),
        **{"default": None, **repeated},
    )


def _with_default(hint: str, field: FieldInfo | None) -> str:
    """Return the help of an option, and what holds without it where the help does not say so."""
    default = None if field is None else field.default
    if field is not None and field.required and field.name == VALUE_FIELD:
        default = "the only column of numbers"
    elif "[default: " in hint or not isinstance(default, str | int | float | Fraction):
        return hint
    return f"{hint}  [default: {default}]".strip()


# --- what the docstring says ---


def described(doc: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what "Parameters" says of each name.

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


# --- options of several commands ---


BINS = Form(
    gather=parse_bins,
    hint="Bins of numbers: how many (10, or age=10 for one column), or their edges "
    "(age=0,18,65,100). Repeat for each column.  [default: one for each step of the axis, or 10]",
)
WIDTH = Form(
    gather=parse_widths,
    hint="Instead of --bins: the width of each bin (5, or age=5 for one column).",
)
