"""Options that several commands share, and how an axis is written in one word."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click
import msgspec

from sfumato.cli.targets import NewFolder, Picture
from sfumato.domain import Axis, Categories, Interval, Keys
from sfumato.errors import BoundsRequired, UsageError, shown
from sfumato.ledger import Ledger, open_ledger
from sfumato.numbers import float_of_text, positive, whole_of_text

if TYPE_CHECKING:
    from sfumato.histogram.bins import AxisBins


class Reading(click.ParamType):  # type: ignore[type-arg]  # before click 8.4 it takes no parameter
    """Text that a function reads, or refuses by returning None.

    Click's own numbers take underscores and the digits of every script.
    """

    def __init__(self, name: str, read: Callable[[str], object], wanted: str) -> None:
        self.name = name
        self.read = read
        self.wanted = wanted

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        found = self.read(value) if isinstance(value, str) else value
        if found is None:
            self.fail(f"{shown(value)} is not {self.wanted}.", param, ctx)
        return found


class Several(Reading):
    """Values parted by commas."""

    def __init__(self, each: click.ParamType[object]) -> None:
        super().__init__(each.name, str, "a list")
        self.each = each

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[object, ...]:
        words = value.split(",") if isinstance(value, str) else [value]
        return tuple(
            self.each.convert(word.strip() if isinstance(word, str) else word, param, ctx)
            for word in words
        )


INTEGER = Reading("integer", whole_of_text, "a whole number of at most 400 digits")
FLOAT = Reading("float", float_of_text, "a finite number")
Options = TypeVar("Options", bound=msgspec.Struct)
P = ParamSpec("P")
R = TypeVar("R")


def gathers(
    kind: type[Options],
) -> Callable[[Callable[Concatenate[Options, P], R]], Callable[P, R]]:
    """Hand a command those of its options that ``kind`` has as fields as one value, its first parameter."""

    def decorate(command: Callable[Concatenate[Options, P], R]) -> Callable[P, R]:
        @functools.wraps(command)
        def run(*args: P.args, **given: P.kwargs) -> R:
            options = msgspec.convert(
                {name: given.pop(name) for name in kind.__struct_fields__}, kind
            )
            return command(options, *args, **given)

        return run

    return decorate


AXIS_HELP = (
    "NAME=LOW..HIGH[/STEP], NAME=a,b,c, or NAME=* for keys not known beforehand; again for each."
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
ANCHOR = "sfumato anchor"  # where the context keeps what --anchor says


ledger_option = click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    default=Path("sfumato.db"),
    envvar="SFUMATO_LEDGER",
    show_default=True,
    help="File that keeps the accounts.",
)


def charged_option(command: Callable[P, R]) -> Callable[P, R]:
    """--ledger and --anchor, for commands that charge the ledger or verify it."""
    anchor = click.option(
        "--anchor",
        type=click.Path(path_type=Path),
        envvar="SFUMATO_ANCHOR",
        expose_value=False,
        callback=_remember_anchor,
        help="File, best on another disk, that notices an older copy of the ledger put back.",
    )
    return ledger_option(anchor(command))


def _remember_anchor(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    context.meta[ANCHOR] = value


def opened(ledger: Path, *, create: bool = True) -> Ledger:
    """The ledger of a command, with its anchor."""
    anchor = click.get_current_context().meta.get(ANCHOR)
    return open_ledger(ledger, create=create, anchor=anchor)


out_option = click.option("--out", type=NewFolder(), help="Folder for the releases as JSON.")
fresh_option = click.option(
    "--fresh", is_flag=True, help="Pay for a new draw although the answer is stored."
)


def plot_option(what: str = "it") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """--plot, of an answer that is one thing or several."""
    return click.option("--plot", type=Picture(), help=f"Also draw {what}, as SVG, PNG or PDF.")


def cost_options(command: Callable[P, R]) -> Callable[P, R]:
    """--epsilon, with --delta where keys are selected, or --rho."""
    command = click.option(
        "--delta", default="0", help="Beside --epsilon, where keys are selected, such as 1e-6."
    )(command)
    command = click.option("--rho", help="Cost in zero-concentrated privacy: Gaussian noise.")(
        command
    )
    return click.option("--epsilon", help="Cost in pure privacy, such as 0.5: Laplace noise.")(
        command
    )


def source_options(optional: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What a one-file command must know of the data and the account; ``optional``: it has something to say without them."""
    options = [
        click.argument("file", type=click.Path(path_type=Path), required=not optional),
        click.option("--axis", "axes", multiple=True, required=not optional, help=AXIS_HELP),
        click.option("--person", help="Column that names the person behind a row."),
        click.option(
            "--rows-per-person",
            type=INTEGER,
            default=1,
            show_default=True,
            help="Rows kept of each person.",
        ),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            default="add-remove",
            show_default=True,
            help="Hide whether a person is in the table, or only what their rows say.",
        ),
        click.option(
            "--data-version",
            help="Version of the data, such as 2 or 2026-11: a new one is counted and paid for anew.",
        ),
        click.option(
            "--account", default="default", show_default=True, help="Account in the ledger."
        ),
        click.option(
            "--budget",
            help="Total of the account when it is new: EPSILON, or EPSILON,DELTA; with --rho, a rho.",
        ),
    ]

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def parse_axes(words: tuple[str, ...]) -> dict[str, Axis]:
    """Read --axis options.

    >>> parse_axes(("hour=0..24/1", "kind=a,b"))["hour"].natural_cells
    24
    """
    axes: dict[str, Axis] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise BoundsRequired(
                f"--axis {word}",
                "an axis needs public bounds or labels",
                f"Write {name or 'age'}=0..100 or {name or 'kind'}=a,b,c",
            )
        if name in axes:
            raise UsageError(f"--axis {name}", "it is given twice", "Give each axis once")
        axes[name] = _axis(name, text)
    return axes


def _axis(name: str, text: str) -> Axis:
    if text == "*":
        return Keys()
    if ".." not in text:
        return Categories(tuple(label.strip() for label in text.split(",")))
    bounds, _, step = text.partition("/")
    lower, _, upper = bounds.partition("..")
    return Interval(
        _bound(name, lower), _bound(name, upper), step=None if not step else _step(name, step)
    )


def _bound(name: str, text: str) -> int | float | str:
    text = text.strip()
    whole = whole_of_text(text)
    number = float_of_text(text) if whole is None else whole
    if number is not None:
        return number
    if not text:
        raise BoundsRequired(
            f"--axis {name}", "one of its bounds is missing", f"Write {name}=LOW..HIGH"
        )
    return text


def _step(name: str, text: str) -> int | float:
    step = _bound(name, text)
    if isinstance(step, str):
        raise UsageError(
            f"--axis {name}", "its step is not a number", f"Write {name}=LOW..HIGH/STEP"
        )
    return step


def parse_bins(words: tuple[str, ...]) -> AxisBins | dict[str, AxisBins] | None:
    """Read --bins options: a number, or NAME=NUMBER, or NAME=edge,edge,edge."""
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        return _entry(words[0])
    return {name: _entry(text) for name, _, text in (word.partition("=") for word in words)}


def parse_widths(words: tuple[str, ...]) -> float | dict[str, float] | None:
    """Read --width options: a number, or NAME=NUMBER."""
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        return float(positive(words[0], "width"))
    named = (word.partition("=") for word in words)
    return {name: float(positive(text, "width")) for name, _, text in named}


def _entry(text: str) -> AxisBins:
    if "," in text:
        return tuple(_bound("bins", edge) for edge in text.split(","))
    whole = whole_of_text(text)
    if whole is None:
        raise UsageError(
            f"--bins {text}",
            "it is neither a number nor a list of edges",
            "Write --bins 20 or --bins age=0,18,65,120",
        )
    return whole
