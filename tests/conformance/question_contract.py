"""What every question and release promises, whoever wrote it: each function asserts one clause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np

import sfumato as sf
from sfumato.answers import registry
from sfumato.answers.counts import Needs
from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import CountsRelease, Release, accuracy_sentence
from sfumato.audit.likelihoods import check_additive, pure_loss
from sfumato.audit.runs import Mechanism, NotAdditive, count_needs, of_question, published
from sfumato.basics.structs import from_bytes, from_plain, to_bytes
from sfumato.charts import style
from sfumato.errors import UsageError
from sfumato.privacy.measures import PureDP, total_of
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from sfumato.reports import sections
from sfumato.reports.headings import heading_of

LINE = sf.Domain(x=sf.Interval(0, 3, step=1))
ROWS = ((0.5,), (1.0,), (1.5,), (3.0,))
COST = PureDP("2")
FEW = Unit(rows_per_person=2)
PAIRS = ((ROWS[:1], ()), ((), ROWS[:1]))
DECIDED = (0, 40)
"""Values of the first draw, where it decides what comes next."""


def unit_of(question: AnyQuestion) -> Unit:
    """Two rows of a person; or, of a question about persons, all rows of one named by a column."""
    if question.needs(LINE).of_each_person:
        return Unit(person="who").of_all_rows
    return FEW


def drawn(question: AnyQuestion, seed: int = 1) -> Release:
    """What a question answers about the rows above, from a public seed."""
    counts = count_needs(ROWS, question.needs(LINE), LINE)
    return question.answer(counts, unit_of(question), COST, PublicSeed(seed))


@cache
def answered(question: AnyQuestion) -> Release:
    """The same, drawn once for all clauses that look at it."""
    return drawn(question)


# --- questions ------------------------------------------------------------------------------------


def is_a_value(question: AnyQuestion) -> None:
    """It is frozen, equal to its copy, and can be looked up in a dict."""
    copy = msgspec.structs.replace(question)
    assert copy == question
    assert {question: 1}[copy] == 1
    for field in question.__struct_fields__:
        try:
            setattr(question, field, None)
        except (AttributeError, FrozenInstanceError):
            continue
        raise AssertionError(f"{field} can be changed")


def is_registered(question: AnyQuestion) -> None:
    """It is registered, has a title, and states a proof."""
    assert type(question) in registry.questions()
    assert issubclass(type(answered(question)), registry.releases())
    assert question.title.strip()
    assert all(
        (
            question.proof.sensitivity,
            question.proof.because,
            question.proof.not_covered,
            question.proof.source,
        )
    )


def survives_serialization(question: AnyQuestion) -> None:
    """Written as JSON or as plain values of TOML, it is read back equal."""
    assert from_bytes(to_bytes(question), registry.question_type()) == question
    assert from_plain(msgspec.json.decode(to_bytes(question)), registry.question_type()) == question


def has_one_canonical_form(question: AnyQuestion) -> None:
    """Its canonical form is canonical, needs the same cells, and is written in one way."""
    canonical = question.canonical(LINE)
    assert canonical.canonical(LINE) == canonical
    assert to_bytes(canonical) == to_bytes(canonical.canonical(LINE))
    assert canonical.needs(LINE) == question.needs(LINE)
    assert to_bytes(canonical.asks(LINE)) == to_bytes(question.asks(LINE))


def is_laid_out_as_it_asks(question: AnyQuestion) -> None:
    """The answer is laid out in the order of the question, and stays so."""
    answer = answered(question)
    assert answer.layout == question.layout
    assert answer.arranged(question.layout) == answer


def is_the_same_under_other_words(question: AnyQuestion) -> None:
    """Words for people change nothing about what is asked."""
    named = msgspec.structs.replace(question, heading="What there is", measured_in="metres")
    assert named.uncaptioned() == question
    assert named.title == question.title
    assert named.needs(LINE) == question.needs(LINE)
    released = msgspec.structs.replace(answered(question), captions=named.captions)
    assert released.heading == "What there is"
    assert np.array_equal(released.for_people().values, released.values, equal_nan=True)


def needs_public_things_only(question: AnyQuestion) -> None:
    """What is counted follows from the question and the domain: asked twice, it is the same."""
    needs = question.needs(LINE)
    assert isinstance(needs, Needs)
    assert needs == question.needs(LINE)
    # Numbers of rows are counted on an axis that is no column.
    assert needs.of_each_person or set(needs.lattice.names) <= set(LINE)
    assert needs.numbers >= 1
    # The cost may decide how finely values are added up, and nothing else.
    at_cost = question.needs_at(LINE, unit_of(question), COST)
    assert msgspec.structs.replace(at_cost, sums=needs.sums) == needs


def reads_the_columns_that_axes_name(question: AnyQuestion) -> None:
    """An axis says which column it is about; a column of the axis' own name is another one."""
    for step in (1, None):
        elsewhere = sf.Domain(x=sf.Interval(0, 3, step=step, column="measured"))
        for needs in (
            question.needs(elsewhere),
            question.needs_at(elsewhere, unit_of(question), COST),
        ):
            assert {axis.column_name for axis in needs.columns} <= {"measured"}


def holds_no_more_than_it_said(question: AnyQuestion) -> None:
    """The answer holds at most the numbers that were checked before the charge."""
    assert np.size(answered(question).values) <= question.needs(LINE).numbers


def previews_alike(question: AnyQuestion) -> None:
    """A preview is the same every time, spends at most the cost it is given, and states both."""
    unit = unit_of(question)
    preview = question.preview(LINE, unit, COST, len(ROWS))
    assert isinstance(preview, Preview)
    assert to_bytes(preview) == to_bytes(question.preview(LINE, unit, COST, len(ROWS)))
    assert preview.unit == unit
    spent = total_of(preview.cost)
    given = total_of(COST)
    assert all(part <= whole for part, whole in zip(spent, given, strict=True))
    assert str(preview).startswith(f"{preview.question} at {preview.cost}")
    assert str(preview.unit.counted) in str(preview)


def previews_its_accuracy(question: AnyQuestion) -> None:
    """No number is less accurate than the preview says.

    Counts of which the number is known are exactly as accurate. If the preview depends on the
    number of rows, nothing is certain beforehand, and nothing is asserted.
    """
    previews = [question.preview(LINE, unit_of(question), COST, rows) for rows in (None, 1, 10**6)]
    release = answered(question)
    if not (release.states_accuracy and all(preview.states_accuracy for preview in previews)):
        return
    for simultaneous in (False, True):
        previewed = {_accuracy(preview, simultaneous) for preview in previews}
        most = previewed.pop()
        if previewed or most is None:
            continue
        found = np.max(release.accuracy("0.9", simultaneous))
        assert 0 <= found <= most
        if isinstance(release, CountsRelease) and previews[0].cells == len(release.counts):
            assert found == most


def _accuracy(preview: Preview, simultaneous: bool) -> float | None:
    """The accuracy that a preview states; None if it depends on a number of rows."""
    try:
        return preview.accuracy("0.9", simultaneous)
    except UsageError:
        return None


def spends_what_it_says(question: AnyQuestion) -> None:
    """The guarantee is the one previewed, for the unit asked for, and stamped as not private."""
    release = answered(question)
    assert release.guarantee.measure == question.preview(LINE, unit_of(question), COST).cost
    assert release.cost == release.guarantee.measure
    assert release.guarantee.unit == unit_of(question)
    assert not release.guarantee.private
    assert release.receipt is None


def draws_from_the_noise_it_is_given(question: AnyQuestion) -> None:
    """The same random bits give the same bytes, and other bits give others."""
    first = to_bytes(drawn(question))
    assert first == to_bytes(drawn(question))
    assert any(first != to_bytes(drawn(question, seed)) for seed in range(2, 12))


def of_one_row(question: AnyQuestion) -> Mechanism:
    """The question's code, asked where a person is one row of the data set."""
    unit = unit_of(question) if unit_of(question).person is not None else Unit()
    return of_question(question, LINE, unit, COST)


def survives_the_exact_audit(question: AnyQuestion) -> None:
    """Where the exact audit applies, the loss between neighbours is at most the cost."""
    if is_additive(question):
        loss = pure_loss(of_one_row(question), PAIRS, DECIDED).loss
        assert loss <= float(COST.epsilon) * (1 + 1e-9)


def is_additive(question: AnyQuestion) -> bool:
    """Whether each published number moves one for one with its draw: the exact audit applies.

    Questions that select, or test what they do not publish, are audited by their laws and by
    samples.
    """
    try:
        check_additive(of_one_row(question), PAIRS[0][0], DECIDED)
    except NotAdditive:
        return False
    return True


# --- releases -------------------------------------------------------------------------------------


def comes_back_bit_for_bit(release: Release) -> None:
    """Its JSON is read back as an equal value, which is written as the same bytes."""
    again = from_bytes(to_bytes(release), registry.release_type())
    assert type(again) is type(release)
    assert to_bytes(again) == to_bytes(release) == to_bytes(release)
    assert again == release
    assert hash(again) == hash(release)


def cannot_be_changed(release: Release) -> None:
    """Every field is frozen."""
    for field in release.__struct_fields__:
        try:
            setattr(release, field, None)
        except (AttributeError, FrozenInstanceError):
            continue
        raise AssertionError(f"{field} can be changed")


def says_what_it_is(release: Release) -> None:
    """Its texts are there, and show when it is not private."""
    words = (
        release.title,
        release.noun,
        release.about,
        release.measured_against,
        release.guarantee.counted,
    )
    assert all(isinstance(word, str) and word for word in words)
    assert isinstance(release.unknowns, str)
    assert release.title in repr(release)
    assert ("NOT PRIVATE" in repr(release)) == (not release.guarantee.private)


def means_what_its_intervals_say(release: Release) -> None:
    """Intervals have the shape of the values, and widen with confidence and for all at once."""
    if not release.states_accuracy:
        assert accuracy_sentence(release) is None
        return
    shape = np.shape(release.values)
    asked = (("0.5", False), ("0.95", False), ("0.95", True))
    ends = [release.interval(confidence, together) for confidence, together in asked]
    for low, high in ends:
        assert np.shape(low) == np.shape(high) == shape
        assert np.all(np.asarray(low) <= np.asarray(high))
    for (low, high), (lower, higher) in pairwise(ends):
        assert np.all(lower <= low)
        assert np.all(high <= higher)
    for together in (False, True):
        half = release.accuracy("0.95", together)
        assert np.shape(half) == shape
        assert np.all(np.asarray(half) >= 0)
    assert np.all(release.accuracy("0.95", False) <= release.accuracy("0.95", True))
    sentence = accuracy_sentence(release)
    assert sentence is not None
    assert f"each {release.noun} is within" in sentence
    assert release.about in sentence


def shows_its_numbers(release: Release) -> None:
    """Its numbers are integers, counts are among them, and an audit compares all of it."""
    numbers = release.numbers()
    assert isinstance(numbers, tuple)
    assert all(type(number) is int for number in numbers)
    assert numbers == release.numbers()
    if isinstance(release, CountsRelease):
        last = numbers[len(numbers) - len(release.counts) :]
        assert sorted(last) == sorted(release.counts.tolist())
    assert published(release).numbers == numbers
    assert published(release).everything == to_bytes(release)


def has_forms(release: Release) -> None:
    """It has a table with a row for each number, a picture and a section, as it declares."""
    if release.has_table:
        assert release.to_frame().num_rows == np.size(release.values)
    if release.has_picture:
        ax = style.figure(200)[1]
        assert release.plot(ax) is ax
    (section,) = sections.of_answers([release], ["answer"])
    assert section.title == heading_of(release)
    assert (section.accuracy is None) == (accuracy_sentence(release) is None)
    assert (section.table is None and not section.family) == (not release.has_table)
    assert bool(section.charts) == release.has_picture


QUESTIONS: tuple[Callable[[AnyQuestion], None], ...] = (
    is_a_value,
    is_registered,
    survives_serialization,
    has_one_canonical_form,
    is_laid_out_as_it_asks,
    is_the_same_under_other_words,
    needs_public_things_only,
    reads_the_columns_that_axes_name,
    holds_no_more_than_it_said,
    previews_alike,
    previews_its_accuracy,
    spends_what_it_says,
    draws_from_the_noise_it_is_given,
    survives_the_exact_audit,
)
RELEASES: tuple[Callable[[Release], None], ...] = (
    comes_back_bit_for_bit,
    cannot_be_changed,
    says_what_it_is,
    means_what_its_intervals_say,
    shows_its_numbers,
)
