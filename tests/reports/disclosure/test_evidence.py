"""Releases are disclosed together only if they belong together and nobody edited them."""

from __future__ import annotations

import shutil
from fractions import Fraction

import msgspec
import pytest

import sfumato as sf
from reports.disclosure import visits
from sfumato.answers.release import marked
from sfumato.ledger import open_ledger
from sfumato.privacy.measures import approx_to_zcdp
from sfumato.reports.disclosure.evidence import gathered, measure_of_money, shortened
from support.tampering import unguarded


def receipt(release, **changes):
    """The release with an edited receipt."""
    return msgspec.structs.replace(
        release, receipt=msgspec.structs.replace(release.receipt, **changes)
    )


def test_what_was_charged_is_added_up(releases, ledger):
    with open_ledger(ledger, create=False) as book:
        found = gathered(releases, ledger=book)
        assert found.charged == book.account("a").spent == (2 * 10**9, 10**12)
        assert found.head == book.verify().head
    assert [str(charge) for charge in found.charges] == [
        "epsilon = 1, delta = 0",
        "epsilon = 1, delta = 0.000001",
    ]
    assert str(found.loss) == "epsilon = 2, delta = 0.000001"
    assert (found.others, found.sources, found.verified) == (0, (visits.NAME,), True)


def test_answers_that_are_left_out_are_counted(releases, ledger):
    with open_ledger(ledger, create=False) as book:
        found = gathered(releases[-1:], ledger=book)
    assert found.others == 1
    assert str(found.loss) == "epsilon = 2, delta = 0.000001"
    alone = gathered(releases[-1:])
    assert str(alone.loss) == "epsilon = 1, delta = 0.000001"


def test_releases_of_different_accounts_or_versions_are_refused(releases):
    for changes, said in (
        ({"account": "b"}, "of different accounts, such as 'a' and 'b'"),
        ({"version": "0.1.0"}, "of different versions of Sfumato, such as"),
    ):
        with pytest.raises(sf.UsageError, match=said):
            gathered([releases[0], receipt(releases[-1], **changes)])
    with pytest.raises(sf.UsageError, match="paid for by the account 'a'"):
        gathered(releases, account="b")
    assert gathered(releases, account="a").account == "a"


def test_releases_that_protect_different_persons_are_refused(releases):
    guarantee = releases[-1].guarantee
    other = msgspec.structs.replace(
        guarantee, unit=msgspec.structs.replace(guarantee.unit, person="ward")
    )
    with pytest.raises(sf.UsageError, match="of different privacy units"):
        gathered([releases[0], msgspec.structs.replace(releases[-1], guarantee=other)])


def edited(release):
    """The release with one count more."""
    return msgspec.structs.replace(release, counts=release.counts + 1)


def test_an_edited_release_is_refused(releases, ledger, tmp_path):
    with open_ledger(ledger, create=False) as book:
        with pytest.raises(sf.DataError, match="it differs from the answer that is stored"):
            gathered([*releases[1:], edited(releases[0])], ledger=book)
        with pytest.raises(sf.DataError, match="the ledger has no such answer under entry 99"):
            gathered([receipt(releases[0], entry=99)], ledger=book)
    with pytest.raises(sf.DataError, match="another one says that it is the same answer"):
        gathered([releases[0], edited(releases[0])])


@pytest.mark.parametrize(
    "changes",
    [
        {"charged": "epsilon = 0.1, delta = 0"},
        {"charged": "epsilon = 1, delta = 2"},
        {"charged": "nothing"},
        {"charged": "rho = 0"},
        {"part": "4 of 3"},
        {"part": "one"},
        {"time": "yesterday"},
    ],
    ids=str,
)
def test_a_receipt_that_no_ledger_writes_is_refused(releases, changes):
    with pytest.raises(sf.DataError, match="the disclosure of Histogram of ward x age"):
        gathered([receipt(releases[0], **changes)])


@pytest.mark.parametrize("name", ["key", "digest", "entry_hash", "source", "charged"])
def test_two_receipts_of_one_entry_agree(releases, name):
    changed = "epsilon = 3, delta = 0" if name == "charged" else "other"
    with pytest.raises(sf.DataError, match="another receipt of entry"):
        gathered([releases[0], receipt(releases[1], **{name: changed})])


def test_a_guarantee_that_says_more_than_was_paid_for_is_refused(releases):
    guarantee = msgspec.structs.replace(releases[0].guarantee, measure=sf.PureDP("2"))
    with pytest.raises(sf.DataError, match="costs more than its receipt says"):
        gathered([msgspec.structs.replace(releases[0], guarantee=guarantee)])


def test_answers_in_rho_may_be_charged_as_an_epsilon_and_a_delta(releases):
    answer = releases[-1]
    rho = approx_to_zcdp(Fraction(1), Fraction("1e-6")).rho
    assert answer.receipt.charged == "epsilon = 1, delta = 0.000001"

    def of(rho):
        guarantee = msgspec.structs.replace(answer.guarantee, measure=sf.ZCDP(rho))
        return msgspec.structs.replace(answer, guarantee=guarantee)

    assert str(gathered([of(rho)]).loss) == "epsilon = 1, delta = 0.000001"
    for release in (of(rho * 2), receipt(of(rho), charged="epsilon = 1, delta = 0")):
        with pytest.raises(sf.DataError, match="costs more than its receipt says"):
            gathered([release])


def test_a_signature_vouches_for_a_release(tmp_path):
    with sf.Publisher(visits.source(), budget="1") as publisher:
        publisher.ledger.signer(create=True)
        release = publisher.release(sf.Histogram("age"), epsilon="1")
    loaded = sf.load(release.save(tmp_path / "r.json"))
    found = gathered([loaded])
    assert found.verified
    assert loaded.receipt.signer in found.standing
    with pytest.raises(sf.DataError, match="it does not match its signature"):
        gathered([edited(loaded)])


def test_it_says_where_nobody_vouches(releases):
    assert gathered(releases).standing == (
        "The answers were handed over by the program that published them."
    )
    loaded = [marked(msgspec.structs.replace(one), loaded=True) for one in releases]
    assert gathered(loaded).standing.startswith("No answer was verified: they were read from files")
    assert gathered([loaded[0], releases[1]]).standing.startswith("Not every answer was verified")


def test_a_ledger_that_was_edited_is_refused(releases, ledger, tmp_path):
    for file in ledger.parent.glob("b.db*"):
        shutil.copy(file, tmp_path)
    with unguarded(tmp_path / "b.db") as db:
        db.execute("UPDATE entries SET cost_first = 1 WHERE kind = 'reserve'")
    with (
        open_ledger(tmp_path / "b.db", create=False) as book,
        pytest.raises(sf.LedgerError, match="a disclosure from this ledger"),
    ):
        gathered(releases, ledger=book)


def test_amounts_are_read_as_measures():
    assert measure_of_money("pure", (5 * 10**8, 0)) == sf.PureDP("0.5")
    assert measure_of_money("zcdp", (15 * 10**9, 0)) == sf.ZCDP("0.015")
    assert measure_of_money("approx", (10**9, 10**12)) == sf.ApproxDP(1, "1e-6")


def test_long_names_are_cut():
    assert shortened("a" * 120) == "a" * 120
    assert shortened("a" * 121) == "a" * 120 + "..."
