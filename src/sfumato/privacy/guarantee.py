"""What a release promises, as data: printed the same in docstring, receipt and report.

*Which rows an answer counts*, and what may be missing from it, in words. ``scope`` is the one
sentence that stands beside the numbers wherever they are shown: on screens, pages, pictures and
sheets. ``counted_rows`` adds what is said once, further below.
"""

from __future__ import annotations

import re
import textwrap
from typing import TypeVar

import msgspec

from sfumato.basics import ExplainedStruct
from sfumato.errors import explained_methods, printable
from sfumato.privacy import belief
from sfumato.privacy.measures import Measure, MetricDP
from sfumato.privacy.unit import Unit, is_name, limit_in_words

EXACT = "none: integer samplers, no floating point"
_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)

# What a measure promises, by its tag.
NAMES = {
    "pure": "Pure differential privacy",
    "approx": "Approximate differential privacy",
    "zcdp": "Zero-concentrated differential privacy",
    "metric": "Metric privacy",
}

C = TypeVar("C", bound=type)
S = TypeVar("S", bound=msgspec.Struct)


# --- which rows are counted -----------------------------------------------------------------------

# How version 0.2 ended what it said of the rows of every answer.
_ENDED_IN_0_2 = re.compile(r" Every accuracy is about the [^.]*? counted\.")
_LEFT_OUT_IN_0_2 = re.compile(
    r"(At most [0-9,]+ rows of each |The counts of each |Each ).*95% confi.*$"
)


def scope(unit: Unit, left_out: str = "") -> str:
    """What is counted, and what may be missing, in one sentence.

    Parameters
    ----------
    unit : Unit
    left_out : str
        How much the limits leave out, where that was paid for; a sentence for each limit.

    >>> scope(Unit())
    'One row is one person: someone with 20 rows is 20 persons here.'
    >>> print(scope(Unit(3, person="rider_id", person_called="rider")))
    At most 3 rows of each rider are counted; further rows are missing, and how many is not known.
    """
    if unit.person is None:
        if unit.rows_per_person == 1:
            return "One row is one person: someone with 20 rows is 20 persons here."
        return (
            f"All rows are counted, and nobody is said to have more than {unit.rows_per_person:,}: "
            "someone who has more is not protected as a whole."
        )
    if not unit.limits_kept:
        return f"All rows{unit.conditions} that name {unit.anyone} are counted."
    if left_out:
        return left_out
    missing = (
        f"{unit.several} in more cells are missing from the others"
        if unit.counts_persons
        else "further rows are missing"
    )
    phrases = [limit_in_words(name, limit, unit.who) for name, limit in unit.limits_kept.items()]
    limited = ", and ".join(phrases)
    of_rows = f", of rows{unit.conditions}" if unit.conditions else ""
    return f"{limited[:1].upper()}{limited[1:]}{of_rows}; {missing}, and how many is not known."


def counted_rows(unit: Unit, left_out: str = "") -> str:
    """Which rows an answer about tables is about, and which it is not, in words."""
    chosen = "Which ones are counted is chosen at random. " if unit.limits_kept else ""
    if unit.counts_persons:
        chosen += f"Each {unit.who} is counted once in a cell. "
    whose = "" if unit.person is None else f"without {unit.anyone} or "
    dropped = (
        f"Rows {whose}without a value, and rows with an unlisted label, are not counted, "
        "unless the domain gives them a cell."
    )
    clamped = "Values beyond an axis' bounds or edges are counted in its end cells."
    return f"{asked_rows(unit)}{scope(unit, left_out)} {chosen}{dropped} {clamped}"


def left_out_in_0_2(counted: str) -> str:
    """How much the limits leave out, as version 0.2 put it behind all else; "" if it did not."""
    said = _LEFT_OUT_IN_0_2.search(_ENDED_IN_0_2.split(counted)[-1])
    is_of_0_2 = _ENDED_IN_0_2.search(counted) is not None
    return said[0] if is_of_0_2 and said is not None else ""


def asked_rows(unit: Unit) -> str:
    """Which rows of the table there are at all under public conditions; "" without any."""
    looked_at = f"Only rows{unit.conditions} are looked at; how many there are is not public. "
    return looked_at if unit.conditions else ""


def not_counted(unit: Unit) -> str:
    """Which rows are not counted whoever they are of, in one line of a preview."""
    whose = "" if unit.person is None else f"{unit.anyone} or "
    return (
        f"not counted: rows without {whose}a value, "
        "rows with an unlisted label (unless the domain gives them a cell)"
    )


# --- what is promised -----------------------------------------------------------------------------


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a question or mechanism keeps its promise.

    The text is written here only. Releases, receipts and reports store and print it, and
    ``fill_docstring`` puts it into the docstring of the class that has it.

    Attributes
    ----------
    sensitivity : str
        How far one person moves what is measured.
    because : str
        Why that noise suffices.
    not_covered : str
        What the promise leaves out.
    source : str
        The papers, with their theorems.

    >>> import sfumato as sf
    >>> print(sf.Histogram.proof.sensitivity)
    L1 = rows_per_person (twice that under replace); L2 the same, or sqrt 2 times under replace.
    """

    sensitivity: str
    because: str
    not_covered: str
    source: str

    def __str__(self) -> str:
        lines = [
            f"Sensitivity: {self.sensitivity}",
            f"Holds because: {self.because}",
            f"Not covered: {self.not_covered}",
            f"Source: {self.source}",
        ]
        return "\n".join(lines)


def fill_docstring(owner: C) -> C:
    """Write the guarantee of a class into its docstring, so that its text stands in one place.

    A line of the docstring that holds only ``{proof}`` is replaced by the text of the class
    attribute ``proof``; ``{keys_proof}`` by that of ``keys_proof``, and so on. It serves as a class
    decorator; ``Question`` does it for each of its subclasses.

    >>> @fill_docstring
    ... class Coin:
    ...     '''Toss a coin.
    ...
    ...     {promise}
    ...     '''
    ...     promise = "Guarantee: nobody knows the outcome before."
    >>> print(Coin.__doc__.strip())
    Toss a coin.
    <BLANKLINE>
        Guarantee: nobody knows the outcome before.
    """

    def filled(place: re.Match[str]) -> str:
        indent, name = place.groups()
        text = getattr(owner, name, None)
        if not isinstance(text, Proof | str):
            return place.group()
        wrapper = textwrap.TextWrapper(
            width=100,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(map(wrapper.fill, str(text).splitlines()))

    # Without docstrings (python -OO) there is nothing to fill.
    if owner.__doc__ is not None:
        owner.__doc__ = _PLACE.sub(filled, owner.__doc__)
    return owner


@explained_methods
class Guarantee(ExplainedStruct, frozen=True, forbid_unknown_fields=True):
    """A promise about one release or plan.

    Attributes
    ----------
    measure : PureDP, ApproxDP, ZCDP or MetricDP
    unit : Unit
    mechanism : str
        What adds the randomness, in words.
    proof : Proof
    assumptions : tuple of str
        What must be true of the world for the promise to hold.
    slack : str
        What finite arithmetic adds; "none" where the noise is exact.
    private : bool
        False if the noise came from a public seed: then nothing is promised at all.
    counted : str
        Which rows the answer is about, and which it is not: every accuracy is about the rows
        counted. Left out, it follows from the unit and ``left_out``.
    left_out : str or unset
        How much the limits on a person leave out, where that was paid for.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> release = sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=4), epsilon="0.5")
    >>> release.guarantee.measure
    PureDP(epsilon=Fraction(1, 2))
    >>> print(release.guarantee.sentence())
    Pure differential privacy, epsilon = 0.5, for any one person contributing at most one row, added
    or removed.
    """

    measure: Measure
    unit: Unit
    mechanism: str
    proof: Proof
    assumptions: tuple[str, ...] = ()
    slack: str = EXACT
    private: bool = True
    counted: str = ""
    # Absent from files unless known, so that those of version 0.2 are read back to the same bytes.
    left_out: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not self.counted and not isinstance(self.measure, MetricDP):
            counted = counted_rows(self.unit, self.left_out or "")
            msgspec.structs.force_setattr(self, "counted", counted)

    @property
    def scope(self) -> str:
        """What is counted, and what may be missing, in one sentence."""
        return scope(self.unit, self.left_out or left_out_in_0_2(self.counted))

    def sentence(self) -> str:
        """The promise in one sentence; in two, where it allows so much that it must be said."""
        if not self.private:
            return "NOT PRIVATE: the noise came from a public seed, for testing only."
        kind = NAMES[str(self.measure.__struct_config__.tag)]
        allowed = (
            "" if isinstance(self.measure, MetricDP) else belief.warning(self.measure, self.unit)
        )
        return f"{kind}, {self.measure}, for {self.unit}. {allowed}".rstrip()

    def __str__(self) -> str:
        lines = [
            f"Guarantee: {self.sentence()}",
            f"Mechanism: {self.mechanism}",
            str(self.proof),
            f"Numerical slack: {self.slack}",
        ]
        lines += [f"Counted: {self.counted}"] if self.counted else []
        lines += [f"Assumes: {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def with_person_called(promised: S, called: str | msgspec.UnsetType) -> S:
    """Return a struct, such as a release, in which persons are called otherwise.

    Its units take the name, and so does what guarantees say of the rows counted, if they say it as
    it follows from the unit. Nothing else changes.
    """
    if isinstance(promised, Unit):
        named: S = msgspec.structs.replace(promised, person_called=called)
        return named
    changes: dict[str, object] = {
        name: with_person_called(field, called)
        for name in promised.__struct_fields__
        if isinstance(field := getattr(promised, name), msgspec.Struct)
    }
    if isinstance(promised, Guarantee):
        changes |= {"counted": _recounted(promised, called)}
    return msgspec.structs.replace(promised, **changes)


def _recounted(promise: Guarantee, called: str | msgspec.UnsetType) -> str:
    """What a guarantee says of the rows counted, where persons are called otherwise."""
    unit = promise.unit
    # Version 0.2 called a person by the name of the column.
    words = [unit.called] if unit.person is None else [unit.called, unit.person]
    after = with_person_called(unit, called)
    left_out = promise.left_out or ""
    for word in filter(is_name, words):
        # What a stream says begins like this, and names the person nowhere else.
        beginnings = {
            counted_rows(with_person_called(unit, word), left_out): counted_rows(after, left_out),
            f"Of each {word} the first ": f"Of each {after.called} the first ",
        }
        for before, now in beginnings.items():
            if promise.counted.startswith(before):
                return now + promise.counted.removeprefix(before)
    if unit.person is None or _ENDED_IN_0_2.search(promise.counted) is None:
        return promise.counted
    # What version 0.2 said of an answer about tables is said in the words of now.
    said = left_out_in_0_2(promise.counted)
    further = _ENDED_IN_0_2.split(promise.counted)[-1].removesuffix(said).strip()
    return f"{counted_rows(after, said)} {further}".rstrip()


def assumptions_of(unit: Unit) -> tuple[str, ...]:
    """What every central release assumes.

    Parameters
    ----------
    unit : Unit

    Returns
    -------
    tuple of str

    >>> import sfumato as sf
    >>> from sfumato.extending import assumptions_of
    >>> for line in assumptions_of(sf.Unit()):
    ...     print(line)
    Each row is one person; whoever has several rows is protected row by row only.
    The domain was chosen without looking at the data.
    AES and the operating system's random seed are sound.
    """
    if unit.person is not None:
        whose = f"The column {printable(unit.person)} names the person behind each row."
        if unit.period is not msgspec.UNSET:
            whose += (
                f" Only one {printable(unit.period)} of a person is hidden: whoever has rows in k "
                "of them is protected with k times the loss."
            )
    elif unit.rows_per_person == 1:
        whose = "Each row is one person; whoever has several rows is protected row by row only."
    else:
        whose = (
            f"Nobody has more than {unit.rows_per_person} rows: "
            "the holder states it, and nothing enforces it."
        )
    where = "The conditions on rows were chosen without looking at the data."
    return (
        whose,
        "The domain was chosen without looking at the data.",
        *(() if unit.where is msgspec.UNSET else (where,)),
        "AES and the operating system's random seed are sound.",
    )
