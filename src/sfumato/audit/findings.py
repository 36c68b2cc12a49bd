"""Running an audit: for each subject, the privacy loss that two attacks show, beside its claim.

*The power of an audit* (``of_exact``, ``of_samples``): which fault it would have detected.

Without power, an audit that finds nothing says nothing. The size of a fault is the privacy loss of
the faulty mechanism, as a multiple of the claim.

An *exact* figure grows in proportion when all noise is made smaller, so a figure of x detects every
fault from claim / x on. How far a *sampled* bound lies below the truth depends on the number of
runs, the pair of data sets and the event. So the same attack is made, with as many runs, on the
same code with half the noise that the claim asks for; and if that is not detected, with a quarter.
Its bits are public and fixed, so that a row has power in every run or in none.

Half the noise is twice the epsilon, but four times the rho: rho grows with the square.
"""

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
from typing import ClassVar, Final, Literal, TypeAlias

import msgspec

from sfumato.answers import AnyQuestion
from sfumato.audit import subjects
from sfumato.audit.likelihoods import ALPHAS
from sfumato.audit.runs import NotAdditive, Pair, neighbours
from sfumato.audit.sampled import Gain, epsilon_gain, rho_gain, sampled_loss
from sfumato.audit.subjects import Subject
from sfumato.audit.subjects.examples import of_example
from sfumato.audit.subjects.subject import PURE, claimed
from sfumato.errors import UsageError, nearest
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, PureDP, Unit
from sfumato.random.bits import PublicSeed

# --- power ----------------------------------------------------------------------------------------

# The faults tried: this many times less noise.
SCALES: Final = (2, 4)
# A row has power if it detects a mechanism with this many times less noise.
ENOUGH: Final = 2.5


def times_spent(claim: CentralMeasure, scale: float) -> float:
    """How many times its claim a mechanism spends if its noise is ``scale`` times too small."""
    return scale**2 if isinstance(claim, ZCDP) else scale


def of_exact(claim: CentralMeasure, exact: float) -> float | None:
    """The least fault that an exact figure detects, as a multiple of the claim; None if none."""
    return max(1.0, claimed(claim) / exact) if exact > 0 else None


def of_samples(subject: Subject, pair: Pair, runs: int, gain: Gain) -> float | None:
    """Return the least of the faults tried that sampling detects, as a multiple of the claim.

    Parameters
    ----------
    subject : Subject
        Its ``weaker`` gives the faulty mechanisms.
    pair : pair of data sets
    runs : int
        As many as the audit itself makes.
    gain : callable
        See ``sampled``.

    Returns
    -------
    float or None
        None if none of them is detected.
    """
    if subject.weaker is None:
        return None
    for scale in SCALES:
        # The same bits every time: what a run could have detected must not be left to luck.
        bits = PublicSeed(f"{subject.name}, {scale} times less noise")
        loss = sampled_loss(subject.weaker(scale), *pair, runs=runs, gain=gain, noise=bits)
        if loss > claimed(subject.claim):
            return times_spent(subject.claim, scale)
    return None


def enough(claim: CentralMeasure, fault: float | None) -> bool:
    """Return whether a run that detects faults from this size on has power."""
    return fault is not None and fault <= times_spent(claim, ENOUGH)


# --- findings -------------------------------------------------------------------------------------

Progress: TypeAlias = Callable[[int, int, str], None]
Mapper: TypeAlias = "Callable[[Callable[[int], Finding], list[int]], Iterator[Finding]]"
Exact: TypeAlias = float | Literal["unbounded", "refused"] | None
Verdict: TypeAlias = Literal["ok", "no power", "EXCEEDS", "REFUSED"]

# The relative error of the audit's own floating point.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Effort:
    """How hard an audit looks.

    Attributes
    ----------
    others : int
        Rows of other persons in the small data sets.
    alphas : tuple of float
        Orders of the Renyi divergence.
    runs : int
        A factor on the number of runs of a sampled audit.
    """

    others: int
    alphas: tuple[float, ...]
    runs: int


QUICK = Effort(others=1, alphas=(1.5, 8.0), runs=1)
DEEP = Effort(others=2, alphas=ALPHAS, runs=4)


class Finding(msgspec.Struct, frozen=True):
    """The privacy loss that an audit could show of one subject, beside its claim.

    Attributes
    ----------
    subject : str
    unit : Unit
    claim : PureDP, ApproxDP or ZCDP
    exact : float, "unbounded", "refused" or None
        The largest loss over small data sets, in the unit of the claim, epsilon or rho.
        "unbounded": an output of one data set cannot come from its neighbour. "refused": the exact
        audit cannot judge this mechanism. None: it does not apply to the claim or the subject.
    sampled : float
        A lower bound on the loss, from outputs alone, wrong with probability at most 0.001. A bound
        above the claim was found twice, so that it is wrong with probability at most 1e-6.
    ok : bool
        Whether the verdict is "ok".
    seconds : float
    fault : float or None
        The smallest fault that this run would have detected, as a multiple of the claim. None: none
        of those tried.
    verdict : {"ok", "no power", "EXCEEDS", "REFUSED"}
        "ok": nothing exceeds the claim, and the run had the power to detect a fault. "no power":
        nothing was found, but half the noise would not have been detected either, which is neither
        a pass nor a failure.
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
        # Set here, so that a finding read from JSON cannot contradict its own figures.
        if self.fault is None and isinstance(self.exact, float):
            msgspec.structs.force_setattr(self, "fault", of_exact(self.claim, self.exact))
        msgspec.structs.force_setattr(self, "verdict", self._judged())
        msgspec.structs.force_setattr(self, "ok", self.verdict == "ok")

    def _judged(self) -> Verdict:
        if self.exceeds:
            return "EXCEEDS"
        if self.exact == "refused":
            return "REFUSED"
        return "ok" if enough(self.claim, self.fault) else "no power"

    @property
    def claimed(self) -> float:
        """The claim as a number."""
        return claimed(self.claim)

    def row(self) -> tuple[str, ...]:
        """Return the finding as text, in the order of ``columns``."""
        exact = f"{self.exact:.3f}" if isinstance(self.exact, float) else self.exact or "-"
        return (
            self.subject,
            f"{self.unit.rows_per_person}, {self.unit.neighbours}",
            str(self.claim),
            exact,
            f"{self.sampled:.3f}",
            str(self.verdict),
            "none" if self.fault is None else f"{self.fault:.1f} x",
            f"{self.seconds:.1f}",
        )

    @property
    def exceeds(self) -> bool:
        """Whether a loss above the claim was shown."""
        limit = self.claimed * (1 + ROUNDING)
        if self.exact == "unbounded" or self.sampled > limit:
            return True
        return isinstance(self.exact, float) and self.exact > limit

    @property
    def failed(self) -> bool:
        """Whether the subject exceeds its claim or could not be judged.

        A run without power has not failed: it says nothing.
        """
        return self.verdict in ("EXCEEDS", "REFUSED")


COLUMNS = Finding.columns


def audit(
    deep: bool = False,
    progress: Progress | None = None,
    *,
    only: str | None = None,
    processes: int = 1,
) -> list[Finding]:
    """How much privacy loss can be shown of each mechanism and question, beside its claim?

    Parameters
    ----------
    deep : bool
        False takes about seven minutes of one core. True takes far longer: larger data sets, more
        orders of the Renyi divergence, four times as many runs.
    progress : callable or None
        Called with the number of subjects done, the number of all, and the name of the next one.
    only : str or None
        Audit only the subjects whose name contains this text, in upper or lower case.
    processes : int
        The number of processes that share the work.

    Returns
    -------
    list of Finding
        One per subject, in the order of the subjects.

    Raises
    ------
    UsageError
        If no subject has ``only`` in its name.

    >>> [finding.ok for finding in audit(only="histogram of persons by x, bins")]
    [True, True, True, True]
    """
    chosen = _chosen(only)
    names = [*(subject.name for subject in chosen), "done"]
    report = progress or (lambda done, total, name: None)
    report(0, len(chosen), names[0])
    # Other processes know the library's own subjects only, not questions registered in this one.
    own = subjects.library()
    indices = [own.index(subject) for subject in chosen if subject in own]
    others = [subject for subject in chosen if subject not in own]
    findings: list[Finding] = []
    with _workers(max(1, min(processes, len(indices)))) as map_over:
        own_findings = map_over(partial(_examined_by_index, deep), indices)
        for finding in chain(own_findings, map(partial(_examined_alone, deep), others)):
            findings.append(finding)
            report(len(findings), len(chosen), names[len(findings)])
    return findings


@contextmanager
def _workers(processes: int) -> Iterator[Mapper]:
    """Lend a function like ``map`` that works in this process, or in several fresh ones."""
    if processes == 1:
        yield map
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield pool.map


def _examined_by_index(deep: bool, index: int) -> Finding:
    """Audit a subject by its index: its functions cannot be sent to another process."""
    return _examined(deep, subjects.library()[index])


def _examined(deep: bool, subject: Subject) -> Finding:
    return examine(subject, DEEP if deep else QUICK)


def _examined_alone(deep: bool, subject: Subject) -> Finding:
    """Audit a question of another package. If it raises, it is refused, and the audit goes on."""
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
    """How much privacy loss can be shown of one question, beside its claim?

    Parameters
    ----------
    question : Question
        About an Interval axis "x" from 0 to 3 with step 1, as its ``examples`` are. It need not be
        registered.
    unit : Unit or None
        What one person can change. None: one row, added or removed.
    cost : PureDP, ApproxDP or ZCDP, or None
        The claim. None: epsilon = 1.
    deep : bool
        Use larger data sets and four times as many runs.

    Returns
    -------
    Finding
        Its ``failed`` says whether the question exceeds its claim.

    >>> from sfumato.questions.histogram import Histogram
    >>> audit_question(Histogram("x", bins=3)).verdict
    'ok'
    """
    return _examined(deep, of_example(question, unit or Unit(), cost or PURE))


def examine(subject: Subject, effort: Effort = QUICK) -> Finding:
    """Audit one subject."""
    started = time.perf_counter()
    exact, pair = _exact(subject, effort)
    runs = effort.runs * subject.runs
    gain = _gain(subject.claim)
    sampled = sampled_loss(subject.mechanism, *pair, runs=runs, gain=gain)
    if sampled > claimed(subject.claim):
        # The smaller of two lower bounds is one, too, so that a false alarm has to happen twice.
        sampled = min(sampled, sampled_loss(subject.mechanism, *pair, runs=runs, gain=gain))
    fault = None if isinstance(exact, float) else of_samples(subject, pair, runs, gain)
    return Finding(
        subject.name,
        subject.unit,
        subject.claim,
        exact,
        round(sampled, 6),
        ok=True,
        seconds=round(time.perf_counter() - started, 3),
        fault=fault,
    )


def sentence(findings: Sequence[Finding]) -> str:
    """Return the outcome in one sentence, and in a second one how many rows had no power."""
    failed = [finding for finding in findings if finding.failed]
    powerless = [finding for finding in findings if finding.verdict == "no power"]
    outcome = f"None of {len(findings)} subjects was found to exceed its claim."
    if failed:
        first = failed[0]
        fault = f"exceeds its {first.claim}" if first.exceeds else "could not be audited"
        outcome = f"{len(failed)} of {len(findings)} subjects fail: {first.subject} {fault}."
    if not powerless:
        return outcome
    names = list(dict.fromkeys(finding.subject for finding in powerless))
    shown = ", ".join(names[:3])
    if len(names) > 3:
        shown += f" and {len(names) - 3} more"
    return (
        f"{outcome} For {len(powerless)} of them this says nothing: half the noise would not have "
        f"been detected, either ({shown})."
    )


def _chosen(only: str | None) -> list[Subject]:
    known = subjects.every()
    text = only or ""
    chosen = [subject for subject in known if text.lower() in subject.name.lower()]
    if not chosen:
        names = dict.fromkeys(subject.name for subject in known)
        raise UsageError(
            f"an audit of {only!r}",
            f"no subject has that in its name; {nearest(text, names)}",
            "Leave it out for all",
        )
    return chosen


def _exact(subject: Subject, effort: Effort) -> tuple[Exact, Pair]:
    """Return the exact loss, and the pair of data sets for the sampled audit.

    That is the pair with the largest exact loss; without an exact loss, a pair that differs in all
    rows of one person.
    """
    if subject.exact is None:
        return None, _usual(subject)
    # More rows of a person make many more pairs; fewer of other persons keep them countable.
    others = effort.others if subject.unit.rows_per_person == 1 else max(0, effort.others - 1)
    pairs = list(subject.pairs) or neighbours(subject.universe, subject.unit, others)
    try:
        largest = subject.exact(subject.mechanism, pairs, subject.claim, effort.alphas)
    except NotAdditive:
        return None if subject.may_be_sampled else "refused", _usual(subject)
    return largest.loss if math.isfinite(largest.loss) else "unbounded", largest.pair


def _usual(subject: Subject) -> Pair:
    """Return the first pair, or one whose person goes from one end of the universe to the other."""
    if subject.pairs:
        return subject.pairs[0]
    rows_per_person = subject.unit.rows_per_person
    person = rows_per_person * subject.universe[:1]
    if subject.unit.neighbours == "replace":
        return person, rows_per_person * subject.universe[-1:]
    return person, ()


def _gain(claim: CentralMeasure) -> Gain:
    match claim:
        case ZCDP():
            return rho_gain
        case ApproxDP(delta=delta):
            return epsilon_gain(float(delta))
        case PureDP():
            return epsilon_gain()
