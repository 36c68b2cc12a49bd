"""What every mechanism spends beside what it claims: the findings of an audit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import get_context
from typing import ClassVar, Literal, TypeAlias

import msgspec

from sfumato.answers.question import AnyQuestion
from sfumato.audit import power, subjects
from sfumato.audit.likelihoods import ALPHAS, Loss, pure_loss, renyi_loss
from sfumato.audit.runs import NotAdditive, Pair, neighbours
from sfumato.audit.sampled import Gain, epsilon_gain, rho_gain, sampled_loss
from sfumato.audit.selections import law_loss
from sfumato.audit.subjects import Subject
from sfumato.audit.subjects.examples import of_example
from sfumato.audit.subjects.subject import PURE, claimed
from sfumato.errors import UsageError, nearest
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit

Progress: TypeAlias = Callable[[int, int, str], None]
Mapper: TypeAlias = "Callable[[Callable[[int], Finding], list[int]], Iterator[Finding]]"
Exact: TypeAlias = float | Literal["unbounded", "refused"] | None
Verdict: TypeAlias = Literal["ok", "no power", "EXCEEDS", "REFUSED"]

ROUNDING = 1e-9  # of the audit's own floating point, relative


@dataclass(frozen=True)
class Effort:
    """How hard an audit looks: rows of other persons, orders of the Renyi divergence, and how many times more runs."""

    others: int
    alphas: tuple[float, ...]
    runs: int


QUICK, DEEP = Effort(1, (1.5, 8.0), 1), Effort(2, ALPHAS, 16)


class Finding(msgspec.Struct, frozen=True):
    """One subject: what it claims, and how much of it two audits could show to be spent.

    Attributes
    ----------
    subject : str
    unit : Unit
    claim : PureDP, ApproxDP or ZCDP
    exact : float, "unbounded", "refused" or None
        The largest exact loss on small data, in the claim's own unit: epsilon, or rho. "unbounded": an output of one data set
        cannot come from its neighbour. "refused": the mechanism is not one that the exact audit can judge. None: it does not apply
        to the claim or the subject.
    sampled : float
        A lower bound from outputs alone, wrong with probability at most 0.001; one above the claim was found twice, 10^-6.
    ok : bool
        Neither is above the claim, nothing was refused, and the run had the power to see a fault.
    seconds : float
    fault : float or None
        The smallest fault that this run would have seen, as a multiple of the claim: see ``audit.power``. None: none of those tried.
    verdict : {"ok", "no power", "EXCEEDS", "REFUSED"}
        "no power": nothing was seen, but half the noise would not have been seen either. That is neither a pass nor a failure.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "subject",
        "rows, unit",
        "claim",
        "exact",
        "sampled",
        "verdict",
        "least fault",
        "seconds",
    )

    subject: str
    unit: Unit
    claim: CentralMeasure
    exact: Exact
    sampled: float
    ok: bool
    seconds: float
    fault: float | None = None
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if self.fault is None and isinstance(self.exact, float):
            msgspec.structs.force_setattr(self, "fault", power.of_exact(self.claim, self.exact))
        msgspec.structs.force_setattr(self, "verdict", self._judged())
        msgspec.structs.force_setattr(self, "ok", self.verdict == "ok")

    def _judged(self) -> Verdict:
        if self.exceeds:
            return "EXCEEDS"
        if self.exact == "refused":
            return "REFUSED"
        return "ok" if power.enough(self.claim, self.fault) else "no power"

    @property
    def claimed(self) -> float:
        """The claim as a number."""
        return claimed(self.claim)

    def row(self) -> tuple[str, ...]:
        """As text, for a table: in the order of ``columns``."""
        unit = f"{self.unit.rows_per_person}, {self.unit.neighbours}"
        exact = f"{self.exact:.3f}" if isinstance(self.exact, float) else self.exact or "-"
        seen = "none" if self.fault is None else f"{self.fault:.1f} x"
        verdict = str(self.verdict)
        return (
            self.subject,
            unit,
            str(self.claim),
            exact,
            f"{self.sampled:.3f}",
            verdict,
            seen,
            f"{self.seconds:.1f}",
        )

    @property
    def exceeds(self) -> bool:
        """Whether more is spent than claimed."""
        limit = self.claimed * (1 + ROUNDING)
        return (
            self.exact == "unbounded"
            or (isinstance(self.exact, float) and self.exact > limit)
            or self.sampled > limit
        )

    @property
    def failed(self) -> bool:
        """Whether it spends more than it claims, or could not be judged. A run without power has not failed: it says nothing."""
        return self.verdict in ("EXCEEDS", "REFUSED")


COLUMNS = Finding.columns


def audit(
    deep: bool = False,
    progress: Progress | None = None,
    *,
    only: str | None = None,
    processes: int = 1,
) -> list[Finding]:
    """How much of its claim does every mechanism and question spend, as far as an audit can show?

    Parameters
    ----------
    deep : bool
        False: a minute or two. True: larger data sets, all orders, sixteen times as many runs.
    progress : callable or None
        Told how many subjects are done, of how many, and the name of the next one.
    only : str or None
        Audit the subjects whose name contains this text, in any case.
    processes : int
        How many share the work; the findings stay in the order of the subjects.

    Returns
    -------
    list of Finding
        One per subject.

    Raises
    ------
    UsageError
        If no subject has ``only`` in its name.

    >>> [finding.ok for finding in audit(only="histogram")][:3]
    [True, True, True]
    """
    chosen, found = _chosen(only), list[Finding]()
    names = [*(subject.name for subject in chosen), "done"]
    tell = progress or (lambda done, total, name: None)
    tell(0, len(chosen), names[0])
    # Other processes know the subjects of the rooms, and not what was registered in this one.
    rooms = subjects.SUBJECTS
    numbers = [rooms.index(subject) for subject in chosen if subject in rooms]
    others = [subject for subject in chosen if subject not in rooms]
    with _workers(max(1, min(processes, len(numbers)))) as run:
        of_rooms = run(partial(_numbered, deep), numbers)
        for finding in chain(of_rooms, map(partial(_examined_alone, deep), others)):
            found.append(finding)
            tell(len(found), len(chosen), names[len(found)])
    return found


@contextmanager
def _workers(processes: int) -> Iterator[Mapper]:
    """A ``map`` in this process, or in several fresh ones."""
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield pool.map


def _numbered(deep: bool, number: int) -> Finding:
    """Audit a subject by its number, which travels between processes, as the subject itself would not."""
    return _examined(deep, subjects.SUBJECTS[number])


def _examined(deep: bool, subject: Subject) -> Finding:
    return examine(subject, DEEP if deep else QUICK)


def _examined_alone(deep: bool, subject: Subject) -> Finding:
    """Audit somebody else's question; one that raises cannot be judged, and stops no other."""
    try:
        return _examined(deep, subject)
    except Exception:
        return Finding(subject.name, subject.unit, subject.claim, "refused", 0.0, False, 0.0)


def audit_question(
    question: AnyQuestion,
    *,
    unit: Unit | None = None,
    cost: CentralMeasure | None = None,
    deep: bool = False,
) -> Finding:
    """How much of its claim does a question spend, as far as an audit can show?

    Parameters
    ----------
    question : Question
        About an Interval axis "x" from 0 to 3 with step 1, as its ``examples`` are. It need not be
        registered.
    unit : Unit or None
        None: one row of a person, which comes or goes.
    cost : PureDP, ApproxDP or ZCDP, or None
        What it may spend. None: epsilon = 1.
    deep : bool
        Larger data sets, and sixteen times as many runs.

    Returns
    -------
    Finding
        Its ``failed`` says whether more than the claim was seen to be spent.

    >>> from sfumato.histogram import Histogram
    >>> audit_question(Histogram("x", bins=3)).verdict
    'ok'
    """
    return _examined(deep, of_example(question, unit or Unit(), cost or PURE))


def examine(subject: Subject, effort: Effort = QUICK) -> Finding:
    """Audit one subject."""
    started = time.perf_counter()
    exact, pair = _exact(subject, effort)
    runs, gain = effort.runs * subject.runs, _gain(subject.claim)
    sampled = sampled_loss(subject.mechanism, *pair, runs=runs, gain=gain)
    if sampled > claimed(
        subject.claim
    ):  # a false alarm must happen twice: the lesser of two lower bounds is one
        sampled = min(sampled, sampled_loss(subject.mechanism, *pair, runs=runs, gain=gain))
    fault = None if isinstance(exact, float) else power.of_samples(subject, pair, runs, gain)
    seconds = round(time.perf_counter() - started, 3)
    return Finding(
        subject.name, subject.unit, subject.claim, exact, round(sampled, 6), True, seconds, fault
    )


def sentence(findings: Sequence[Finding]) -> str:
    """The outcome in one sentence, and in a second one what the runs could not have seen."""
    wrong = [finding for finding in findings if finding.failed]
    blind = [finding for finding in findings if finding.verdict == "no power"]
    if wrong:
        first = wrong[0]
        fault = (
            f"was seen to spend more than its {first.claim}"
            if first.exceeds
            else "could not be audited"
        )
        said = f"{len(wrong)} of {len(findings)} subjects fail: {first.subject} {fault}."
    else:
        said = f"None of {len(findings)} subjects was seen to spend more than it claims."
    if not blind:
        return said
    names = list(dict.fromkeys(finding.subject for finding in blind))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{said} Of {len(blind)} that says nothing: half the noise would not have been seen, either ({shown})."


def _chosen(only: str | None) -> list[Subject]:
    known = subjects.every()
    chosen = [subject for subject in known if (only or "").lower() in subject.name.lower()]
    if not chosen:
        names = dict.fromkeys(subject.name for subject in known)
        raise UsageError(
            f"an audit of {only!r}",
            f"no subject has that in its name; {nearest(only or '', names)}",
            "Leave it out for all",
        )
    return chosen


def _exact(subject: Subject, effort: Effort) -> tuple[Exact, Pair]:
    """The exact loss and where it was found; where there is none, a pair on which one person changes all its rows."""
    if not subject.universe or isinstance(subject.claim, ApproxDP):
        return None, subject.pair or _usual(subject)
    others = effort.others if subject.unit.rows_per_person == 1 else effort.others - 1
    try:
        found = _loss(subject, neighbours(subject.universe, subject.unit, others), effort.alphas)
    except NotAdditive:
        judged_by_outputs = subject.weaker is not None
        return None if judged_by_outputs else "refused", subject.pair or _usual(subject)
    return found.loss if math.isfinite(found.loss) else "unbounded", subject.pair or found.pair


def _loss(subject: Subject, pairs: list[Pair], alphas: tuple[float, ...]) -> Loss:
    if subject.law is not None:
        return law_loss(subject.law, pairs)
    if isinstance(subject.claim, ZCDP):
        return renyi_loss(subject.mechanism, pairs, alphas, decides=len(subject.first_draws) > 1)
    return pure_loss(subject.mechanism, pairs, subject.first_draws)


def _usual(subject: Subject) -> Pair:
    r = subject.unit.rows_per_person
    one, other = r * subject.universe[:1], r * subject.universe[-1:]
    return one, other if subject.unit.neighbours == "replace" else ()


def _gain(claim: CentralMeasure) -> Gain:
    match claim:
        case ZCDP():
            return rho_gain
        case ApproxDP(delta=delta):
            return epsilon_gain(float(delta))
        case PureDP():
            return epsilon_gain()
