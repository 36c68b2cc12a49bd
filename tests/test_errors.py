"""Every refusal has three parts, an exit code, and survives a process boundary."""

import pickle

import pytest

from sfumato import errors
from sfumato.errors import (
    BoundsRequired,
    BudgetExceeded,
    DataError,
    Infeasible,
    InternalError,
    LedgerError,
    SfumatoError,
    UsageError,
    nearest,
    without_frames,
)


def tree(kind=SfumatoError):
    return [kind] + [
        below
        for child in kind.__subclasses__()
        if child.__module__ == errors.__name__
        for below in tree(child)
    ]


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_three_parts(kind):
    error = kind("bins = 1", "a histogram has at least 2 bins", "Choose more")
    assert (error.asked, error.obstacle, error.remedy) == (
        "bins = 1",
        "a histogram has at least 2 bins",
        "Choose more",
    )
    assert str(error) == "bins = 1: a histogram has at least 2 bins. Choose more."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_exit_codes():
    kinds = [
        UsageError,
        BoundsRequired,
        Infeasible,
        BudgetExceeded,
        DataError,
        LedgerError,
        InternalError,
    ]
    assert [kind.exit_code for kind in kinds] == [2, 2, 2, 3, 4, 5, 70]
    assert not issubclass(InternalError, SfumatoError)


def test_the_tree_is_drawn_at_the_top():
    assert all(kind.__name__ in errors.__doc__ for kind in tree())


def test_objects_travel_with_the_refusal():
    error = BudgetExceeded("a", "b", "c", requested=2, remaining=1, account="x")
    assert (error.requested, error.remaining, error.account) == (2, 1, "x")
    again = pickle.loads(pickle.dumps(error))
    assert (again.requested, again.remaining, again.account) == (2, 1, "x")
    assert LedgerError("a", "b", "c", account="x").account == "x"


def test_nearest():
    assert nearest("carier", ["carrier", "hour"]) == "did you mean 'carrier'?"
    assert nearest("cost (eur)", ["Ward", "Cost (EUR)"]) == "did you mean 'Cost (EUR)'?"
    assert nearest("AGE", ["page", "age"]) == "did you mean 'age'?"
    assert nearest("zzz", []) == "there are none"
    assert nearest("zzz", map(str, range(20))).endswith("'11' and 8 more")


@pytest.mark.parametrize(
    ("code", "left"), [(0, 0), (143, 143), (None, 1), ("87654321", 1), (31_973, 1)]
)
def test_a_program_that_is_told_to_end_ends(code: object, left: int) -> None:
    """As by a signal handler in the middle of a scan.

    What an engine says by it is not passed on.
    """

    @without_frames
    def ends() -> None:
        raise SystemExit(code)

    with pytest.raises(SystemExit) as ended:
        ends()
    assert ended.value.code == left


def test_arguments_that_do_not_fit_are_an_error_of_the_caller() -> None:
    @without_frames
    def takes_nothing() -> None:
        raise ValueError("87654321")

    with pytest.raises(TypeError, match="by position") as refusal:
        takes_nothing(1)  # type: ignore[call-arg]
    assert isinstance(refusal.value, UsageError)
    assert len(refusal.value.args) == 3
    with pytest.raises(InternalError) as fault:
        takes_nothing()
    assert "87654321" not in str(fault.value)
    assert fault.value.__cause__ is fault.value.__context__ is None
