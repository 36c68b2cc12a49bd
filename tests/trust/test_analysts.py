"""What an analyst's own SQL connection can do to a ledger: nothing but spend what is theirs.

Each statement is tried by an analyst who knows the schema, the functions and how entries are
hashed. It must fail, change nothing, and say nothing of the secrets.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from conformance.stores import public_rows
from ledger.postgres.people import BOUND, People, settle
from sfumato.errors import StoredElsewhere
from sfumato.ledger import Binding, Entry, Hold, journal
from sfumato.ledger.entries import NOTHING, binding, link_of, payload_digest
from sfumato.ledger.sql import columns_of
from support import postgres

SUMS = ", ".join(["%s"] * 19)
ENTER = (
    f"SELECT {{0}}.enter(ROW({SUMS}, '', '{{{{}}}}', '{{{{}}}}', '{{{{}}}}')::{{0}}.entries, %s)"
)
"""Enters an entry without an event."""

NAME = "SELECT verdict, name_key, name_digest FROM {0}.name_question(%s, %s, %s, %s, %s)"
FRESH = ("f" * 32, "e" * 64)

STATEMENTS = {
    "an entry": "INSERT INTO {0}.entries SELECT * FROM {0}.entries LIMIT 1",
    "an account": "INSERT INTO {0}.accounts (name, rule, total_first, total_second) "
    "VALUES ('mine', 'marbles', 100, 0)",
    "a binding": "INSERT INTO {0}.bindings VALUES ('visits', 'nobody', '')",
    "a ceiling of data": "INSERT INTO {0}.ceilings VALUES ('n', 'marbles', 1000, 0)",
    "an answer": "INSERT INTO {0}.payloads VALUES (1, 'x')",
    "a merge": "MERGE INTO {0}.accounts a USING {0}.entries e ON a.name = e.account "
    "WHEN MATCHED THEN UPDATE SET total_first = 1000",
    "raise a total": "UPDATE {0}.accounts SET total_first = 1000",
    "raise a ceiling": "UPDATE {0}.entries SET note = note WHERE kind = 'cap'",
    "lower a sum": "UPDATE {0}.entries SET own_first = 0",
    "move the counter": "UPDATE {0}.reached SET sequence = 0",
    "delete entries": "DELETE FROM {0}.entries",
    "delete answers": "DELETE FROM {0}.payloads",
    "truncate": "TRUNCATE {0}.entries CASCADE",
    "disable a rule": "ALTER TABLE {0}.entries DISABLE TRIGGER ALL",
    "drop a rule": "DROP TRIGGER entries_fit ON {0}.entries",
    "add a rule": "CREATE TRIGGER mine BEFORE INSERT ON {0}.entries FOR EACH ROW "
    "EXECUTE FUNCTION {0}.stay()",
    "add a rewrite": "CREATE RULE mine AS ON INSERT TO {0}.entries DO INSTEAD NOTHING",
    "drop a table": "DROP TABLE {0}.entries CASCADE",
    "drop the schema": "DROP SCHEMA {0} CASCADE",
    "rename": "ALTER SCHEMA {0} RENAME TO mine",
    "own it": "ALTER TABLE {0}.entries OWNER TO CURRENT_USER",
    "lock it": "DO $$ BEGIN LOCK TABLE {0}.entries IN EXCLUSIVE MODE; END $$",
    "a table in it": "CREATE TABLE {0}.mine (x int)",
    "a function in it": "CREATE FUNCTION {0}.now() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "replace a function": "CREATE OR REPLACE FUNCTION {0}.take_turn() RETURNS text "
    "LANGUAGE sql AS 'SELECT 1'",
    "the path of a function": "ALTER FUNCTION {0}.enter({0}.entries, bytea) SET search_path = ''",
    "an index that runs code": "CREATE INDEX ON {0}.entries ((lower(note)))",
    "a child table": "CREATE TEMP TABLE mine () INHERITS ({0}.entries)",
    "grant": "GRANT INSERT ON {0}.entries TO CURRENT_USER",
    "grant to all": "GRANT EXECUTE ON FUNCTION {0}.enter({0}.entries, bytea) TO PUBLIC",
    "become the owner": "SET ROLE {1}",
    "become a superuser": "SET SESSION AUTHORIZATION postgres",
    "switch rules off": "SET session_replication_role = replica",
    "copy in": "COPY {0}.entries FROM STDIN",
    "copy from a file": "COPY {0}.accounts FROM '/etc/passwd'",
    "copy by a program": "COPY {0}.entries TO PROGRAM 'cat'",
    "read the secret": "SELECT value FROM {0}_secrets.about",
    "read names": "SELECT * FROM {0}_secrets.requests",
    "read streams": "SELECT * FROM {0}_secrets.streams",
    "count people": "SELECT count(*) FROM {0}_secrets.tallies",
    "copy secrets out": "COPY {0}_secrets.about TO STDOUT",
    "write names": "INSERT INTO {0}_secrets.requests VALUES ('trips', 'k', 'x', 'd', true)",
    "a step of a stream": "SELECT {0}_secrets.take_step(1, '', 1, '', '', '', '', 0, '')",
    "the turn of the secrets": "SELECT {0}_secrets.take_turn()",
    "read by a view": "CREATE TEMP VIEW mine AS SELECT * FROM {0}_secrets.about; "
    "SELECT * FROM mine",
    "a foreign key": "CREATE TEMP TABLE mine (name text REFERENCES {0}_secrets.about (name))",
    "statistics": "SELECT 1 / count(*) FROM pg_stats WHERE schemaname = '{0}_secrets'",
    "an HMAC of one's own": "SELECT {0}.keyed('words')",
    "who may spend": "SELECT {0}.require_spender('trips')",
    "quoting": "SELECT {0}.quoted('words')",
    "faults": "SELECT {0}.analyst_fault(NULL, NULL)",
    "ceilings": "SELECT {0}.ceiling_fault('trips', 1, 0)",
    "block code": "DO $$ BEGIN UPDATE {0}.accounts SET total_first = 1000; END $$",
    "large objects": "SELECT lo_import('/etc/passwd')",
    "files": "SELECT pg_read_file('postgresql.conf')",
    "the owner's settings": "ALTER ROLE {1} SET search_path = mine",
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    """A ledger whose analyst has one charge with an answer and one without."""
    people = settle(Path(tmp_path_factory.mktemp("guard")))
    with people.book("ann") as book:
        with book.reserve("trips", "ann 1", "q", (1, 0), "", binding=BOUND) as hold:
            hold.store(b"answer")
        book.reserve("trips", "ann 2", "q", (1, 0), "")
    with people.book("ben") as book:
        book.reserve("trips", "ben 1", "q", (1, 0), "")
    return people


@pytest.fixture(scope="module")
def canaries(people: People) -> list[str]:
    """The secrets, as an error or a notice might show them."""
    with closing(people.store("carl").secrets(create=False)) as secrets:
        values = secrets.reading(lambda rows: dict(rows.values()))
        seeds = secrets.reading(lambda rows: dict(rows.seeds()))
    secret = values["secret"]
    of_another = seeds["trips", "ben 1"]
    signed = [byte - 256 if byte > 127 else byte for byte in secret]
    lists = (" ".join(map(str, each)) for each in (list(secret), signed))
    return [secret.hex(), secret[::-1].hex(), str(secret)[2:-1], of_another.hex(), *lists]


@pytest.fixture
def untouched(people: People) -> Iterator[None]:
    """Whatever the test tries, the ledger is as it was, and verifies."""
    with closing(people.store("carl")) as store:
        before = public_rows(store)
        yield
        assert public_rows(store) == before
    with people.book("carl") as book:
        assert book.verify().ok


@pytest.fixture
def tried(people: People, canaries: list[str]) -> Iterator[Callable[..., str | None]]:
    """Run a statement as the analyst; the code of its error, after a look at all that was said."""
    said: list[str] = []
    with closing(people.connect("ann")) as db:
        db.add_notice_handler(
            lambda notice: said.append(f"{notice.message_primary} {notice.message_detail}")
        )
        db.execute("SET client_min_messages = debug1")
        db.execute("SET debug_print_plan = on")

        def run(statement: str, values: tuple[object, ...] | None = None) -> str | None:
            code: str | None = None
            try:
                text = statement.format(people.schema, people.name("carl"))
                cursor = db.execute(cast("Any", text), values)
                said.append(str(cursor.fetchall() if cursor.description else ""))
            except psycopg.Error as error:
                code = error.sqlstate or "none"
                said.extend([str(error), repr(error.diag.context), repr(error.diag.message_detail)])
            return code

        yield run
    everything = "\n".join(said)
    assert "PLANNEDSTMT" in everything
    assert not [canary for canary in canaries if canary in everything]


@pytest.mark.usefixtures("untouched")
def test_no_statement_of_an_analyst_changes_the_ledger(
    tried: Callable[..., str | None],
) -> None:
    codes = {what: tried(statement) for what, statement in STATEMENTS.items()}
    # A grant by somebody who has nothing to give is a warning only; `untouched` looks at rights.
    harmless = ["grant", "grant to all"]
    assert [what for what, code in codes.items() if code is None] == harmless
    # They are refused for want of rights, and not because the test has misspelt them.
    others = {what: code for what, code in codes.items() if code not in ("42501", "22012", None)}
    assert set(others.values()) <= {"42809"}, others


def test_what_is_paid_in_another_state_is_told_to_analysts_and_custodians_alike(
    people: People,
) -> None:
    where = 'the question, "of" thé place'
    with people.book("carl") as book:
        for who in ("ann", "carl"):
            book.add_spender("visits", people.name(who), (10, 0))
        bound = Binding("é", "漢")
        with book.reserve("visits", None, "jan", (1, 0), "", binding=bound, place=where) as hold:
            hold.store(b"answer")
    with people.book("ann") as book:
        with pytest.raises(StoredElsewhere) as told:
            book.reserve("visits", None, "feb", (1, 0), "", place=where)
        assert told.value.entry == hold.entry.sequence
        replayed = book.newest_answer("visits", "feb", where)
        assert replayed is not None
        assert replayed.stored == b"answer"
        key = "b" * 16 + "+" + "c" * 16
        theirs = book.reserve("visits", key, "feb", (1, 0), "", place=where, fresh=True)
        theirs.store(b"theirs")
        assert book.reserve("visits", None, "feb", (1, 0), "", place=where).stored == b"theirs"
        assert book.newest_answer("visits", "apr", "another") is None
    with people.book("carl") as book:
        assert book.reserve("visits", None, "feb", (1, 0), "", place=where).stored == b"theirs"
        with pytest.raises(StoredElsewhere) as told:
            book.reserve("visits", None, "mar", (1, 0), "", place=where)
        assert told.value.entry == theirs.entry.sequence
        assert book.verify().ok


def test_the_seed_of_a_charge_is_its_spenders_alone(people: People) -> None:
    with people.book("ann") as book:
        seeds = []
        for _ in range(3):
            with book.reserve("trips", None, "cut", (1, 0), "", binding=BOUND) as hold:
                seeds.append(hold.seed)
        assert len(set(seeds)) == 1
        assert len(seeds[0]) == 32
        seed_of = cast("Any", f"SELECT {people.schema}.seed_of(%s, %s)")
        other = os.urandom(32)
        with closing(people.connect("ann")) as db:
            assert db.execute(seed_of, (hold.entry.sequence, other)).fetchone() == (seeds[0],)
        with closing(people.connect("ben")) as db, pytest.raises(psycopg.Error):
            db.execute(seed_of, (hold.entry.sequence, other))
        hold.store(b"answer")
        with closing(people.connect("ann")) as db:
            assert db.execute(seed_of, (hold.entry.sequence, other)).fetchone() == (None,)
    with people.book("carl") as book:
        kept = book._opened_secrets().store.reading(lambda rows: rows.seeds())
        assert ("trips", hold.entry.key) not in kept


@pytest.mark.usefixtures("untouched")
def test_what_an_auditor_or_a_stranger_may_call(people: People) -> None:
    calls = (
        "take_turn()",
        "name_question('trips', NULL, '{q}', '', '')",
        "is_of_state(4, '', true)",
        "names_of('trips', '{q}', 'q')",
        "seed_of(4, '')",
        "placed('trips', 'q')",
        "ceiling_fault('trips', 1, 0)",
    )
    for who in ("eve", "stranger"):
        with closing(people.connect(who)) as db:
            for call in (*calls, f"enter(NULL::{people.schema}.entries, NULL)"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(cast("Any", f"SELECT {people.schema}.{call}"))
    with closing(people.connect("stranger")) as db, pytest.raises(psycopg.Error):
        db.execute(cast("Any", f"SELECT * FROM {people.schema}.entries"))


# --- forged entries -------------------------------------------------------------------------------


def now(seconds: float = 0) -> str:
    return journal.stamp(datetime.now(UTC) + timedelta(seconds=seconds))


def next_entry(people: People, **changes: Any) -> Entry:
    """A charge of one unit that is right but for the changes, and hashed as it should be."""
    name = people.name("ann")
    with closing(people.store("ann")) as store:
        tip = store.reading(lambda rows: rows.tip("trips"))
        mine = store.reading(lambda rows: rows.spender("trips", name))
        first = store.reading(lambda rows: rows.of_key("trips", str(changes.get("key"))))
    assert mine is not None
    plain = Entry(
        tip.sequence + 1,
        "trips",
        "reserve",
        now(),
        FRESH[0],
        FRESH[1],
        (1, 0),
        "",
        "",
        (tip.spent[0] + 1, 0),
        now(60),
        "holder",
        tip.hash,
        "",
        name,
        (mine.spent[0] + 1, 0),
    )
    if changes.get("kind", "reserve") != "reserve":
        after = {"cost": NOTHING, "spent": tip.spent, "until": "", "holder": "", "spender": ""}
        plain = dataclasses.replace(plain, **after, own=NOTHING)
        if first:
            plain = dataclasses.replace(plain, time=first[0].time, digest=first[0].digest)
    entry = dataclasses.replace(plain, **changes)
    return dataclasses.replace(entry, hash=changes.get("hash", link_of(entry)))


def forged(people: People) -> Mapping[str, tuple[Entry, bytes | None]]:
    """Entries, each with its answer, that an analyst may not enter."""

    def of(payload: bytes | None = None, **changes: Any) -> tuple[Entry, bytes | None]:
        return next_entry(people, **changes), payload

    ben = people.name("ben")
    sum_of_ben = {"spender": ben, "own": (2, 0)}
    answer = {"kind": "store", "payload_hash": payload_digest(b"forged")}
    return {
        "for somebody else": of(**sum_of_ben),
        "for nobody": of(spender="", own=NOTHING),
        "for the custodian": of(spender=people.name("carl"), own=(1, 0)),
        "over the own ceiling": of(cost=(29, 0), spent=(32, 0), own=(31, 0)),
        "with a smaller own sum": of(own=(1, 0)),
        "with a smaller sum": of(spent=(1, 0)),
        "at a negative cost": of(cost=(-1, 0), spent=(2, 0), own=(1, 0)),
        "at no cost": of(cost=(0, 0), spent=(3, 0), own=(2, 0)),
        "in an account of others": of(account="visits", spent=(1, 0), own=(1, 0)),
        "in no account": of(account="none", spent=(1, 0), own=(1, 0)),
        "of no named question": of(key="never named"),
        "of another digest": of(digest="d" * 64),
        "with a key that is taken": of(key="ben 1"),
        "a gap": of(sequence=999),
        "another chain": of(previous="0" * 64),
        "another hash": of(hash="0" * 64),
        "an hour ago": of(time=now(-3600)),
        "in an hour": of(time=now(3600)),
        "at no time": of(time="now"),
        "leased for ever": of(until="9999"),
        "leased for two years": of(until=now(2 * 366 * 86400)),
        "a long note": of(note="x" * 5000),
        "with an answer": of(b"answer"),
        "an opening": of(kind="open", key="", note='{"rule": "marbles", "total": [1, 0]}'),
        "a ceiling of one's own": of(
            kind="cap",
            spender=people.name("ann"),
            own=(2, 0),
            note='{"rule": "marbles", "ceiling": [100, 0]}',
        ),
        "a ceiling of data": of(
            kind="cap", note='{"data": "n", "rule": "marbles", "ceiling": [1000, 0]}'
        ),
        "a second binding": of(kind="bind", key="", digest="", note=binding("others", "n")),
        "another's lease resumed": of(
            kind="resume", key="ben 1", time=now(), until=now(60), holder="mine"
        ),
        "another's lease ended": of(kind="abandon", key="ben 1"),
        "another's answer": of(b"forged", key="ben 1", **answer),
        "an answer twice": of(b"forged", key="ann 1", **answer),
        "another answer than entered": of(b"other", key="ann 2", **answer),
        "an answer that is missing": of(key="ann 2", **answer),
        "an answer that is no text": of(
            b"\xff", key="ann 2", kind="store", payload_hash=payload_digest(b"\xff")
        ),
        "the beginning of a stream": of(b"forged", key="ann 2", note="the stream began", **answer),
        "an answer later": of(b"forged", key="ann 2", time=now(), **answer),
        "handed out twice": of(kind="hand", key="ann 1"),
        "nothing handed out": of(kind="hand", key="ann 2"),
        "of no kind": of(kind="forget", key="ann 2"),
    }


@pytest.mark.usefixtures("untouched")
def test_no_forged_entry_is_taken(people: People, tried: Callable[..., str | None]) -> None:
    assert tried(NAME, ("trips", None, ["a new question"], *FRESH)) is None
    codes: dict[str, str | None] = {}
    for what, (entry, payload) in forged(people).items():
        values = (*columns_of(entry), entry.spender, *entry.own, payload)
        codes[what] = tried(ENTER, values)
    assert [what for what, code in codes.items() if code is None] == []
    assert {code for code in codes.values() if code[:2] != "23"} <= {"SFM01", "22021"}, codes
    whole = next_entry(people)
    for place in range(19):
        values = (*columns_of(whole), whole.spender, *whole.own)
        assert tried(ENTER, (*values[:place], None, *values[place + 1 :], None)) == "23000"
    assert tried("SELECT {0}.enter(NULL, NULL)") == "23000"


def test_the_entry_that_was_forged_is_taken_if_it_is_right(
    people: People, tried: Callable[..., str | None]
) -> None:
    """Or the test above would find refusals of everything."""
    assert tried(NAME, ("trips", None, ["another question"], "a" * 32, "b" * 64)) is None
    entry = next_entry(people, key="a" * 32, digest="b" * 64)
    assert tried(ENTER, (*columns_of(entry), entry.spender, *entry.own, None)) is None
    answer = next_entry(people, kind="store", key="a" * 32, payload_hash=payload_digest(b"x"))
    assert tried(ENTER, (*columns_of(answer), "", 0, 0, b"x")) is None
    with people.book("eve") as book:
        assert book.verify().ok, book.verify().faults


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_view_of_before_charges_nothing(people: People, isolation: str) -> None:
    """An analyst may choose to see an older state; what is entered must follow the newest."""
    fresh = (os.urandom(16).hex(), "d" * 64)
    with closing(people.connect("ann")) as old, closing(people.connect("ann")) as new:
        text = NAME.format(people.schema)
        old.execute(cast("Any", text), ("trips", None, [f"older {isolation}"], *fresh))
        first = next_entry(people, key=fresh[0], digest=fresh[1])
        with new.transaction(force_rollback=True):
            pass
        old.execute(cast("Any", f"BEGIN ISOLATION LEVEL {isolation}"))
        old.execute(cast("Any", f"SELECT count(*) FROM {people.schema}.entries"))
        stale = dataclasses.replace(first, sequence=first.sequence - 1)
        stale = dataclasses.replace(stale, hash=link_of(stale))
        values = (*columns_of(stale), stale.spender, *stale.own, None)
        with pytest.raises(psycopg.Error):
            old.execute(cast("Any", ENTER.format(people.schema)), values)
        old.rollback()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_nobody_charges_who_would_not_see_that_the_ledger_was_moved(
    people: People, isolation: str
) -> None:
    """A move enters nothing, so the right entry may be the next of an older state as well."""
    name = cast("Any", NAME.format(people.schema))
    with closing(people.connect("ann")) as db:
        fresh = (os.urandom(16).hex(), "d" * 64)
        db.execute(name, ("trips", None, [f"not moved yet {isolation}"], *fresh))
        right = next_entry(people, key=fresh[0], digest=fresh[1])
        values = (*columns_of(right), right.spender, *right.own, None)
        for begun in ("BEGIN ISOLATION LEVEL {}", "SET default_transaction_isolation = '{}'"):
            db.execute(cast("Any", begun.format(isolation)))
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="there now"):
                db.execute(cast("Any", ENTER.format(people.schema)), values)
            db.rollback()


def test_a_charge_is_not_resumed_for_ever(people: People, tried: Callable[..., str | None]) -> None:
    assert tried(NAME, ("trips", None, ["resumed often"], "d" * 32, "b" * 64)) is None
    first = next_entry(people, key="d" * 32, digest="b" * 64)
    assert tried(ENTER, (*columns_of(first), first.spender, *first.own, None)) is None
    codes: list[str | None] = []
    while not codes or codes[-1] is None:
        again = next_entry(people, kind="resume", key="d" * 32, time=now(), until=now(60))
        codes.append(tried(ENTER, (*columns_of(again), "", 0, 0, None)))
    assert codes == [None] * 256 + ["23000"]


# --- names ----------------------------------------------------------------------------------------


def test_the_server_computes_the_names_that_the_library_computes(people: People) -> None:
    """Whoever asks first, custodian or analyst, the other finds the answer."""
    words = 'a "question" \\ with\tsigns: é, 漢, 😀, \x7f'
    with people.book("carl") as book:
        book.add_spender("visits", people.name("ann"), (10, 0))
        book.add_spender("visits", people.name("carl"), (10, 0))
        with book.reserve("visits", None, words, (1, 0), words, binding=Binding("é", "漢")) as hold:
            hold.store(b"answer")
    with people.book("ann") as book:
        assert book.reserve("visits", None, words, (1, 0), "").stored == b"answer"
        theirs: Hold = book.reserve("visits", None, words + "!", (1, 0), words)
        theirs.store(b"theirs")
        book.note_state(theirs.entry, words)
        assert book.is_of_state(theirs.entry, words)
        assert not book.is_of_state(theirs.entry, "another")
        assert not book.is_of_state(hold.entry, words)
        book.note_state(hold.entry, "forged")
    with people.book("carl") as book:
        assert book.reserve("visits", None, words + "!", (1, 0), "").stored == b"theirs"
        assert book.is_of_state(theirs.entry, words)
        assert not book.is_of_state(hold.entry, "forged")
        assert book.verify().ok, book.verify().faults


def test_the_key_of_all_hmacs_is_used_as_it_should_be(people: People) -> None:
    with closing(people.store("carl").secrets(create=False)) as secrets:
        values = secrets.reading(lambda rows: dict(rows.values()))
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        admin.execute(f"SET search_path = {people.schema}_secrets, {people.schema}")
        for words in ("", "words", "é" * 100):
            (found,) = admin.execute("SELECT keyed(%s)", (words,)).fetchone() or (b"",)
            assert found == hmac.digest(values["secret"], words.encode(), hashlib.sha256)
        for text in ("", "plain", 'a"b\\c', "\x01\x1f\x7f\b\f\n\r\t", "é漢😀\u2028", "x" * 4000):
            (written,) = admin.execute("SELECT quoted(%s)", (text,)).fetchone() or ("",)
            assert written == json.dumps(text)


@pytest.mark.usefixtures("untouched")
def test_names_that_are_not_well_formed_are_refused(tried: Callable[..., str | None]) -> None:
    for values in (
        ("trips", None, [], *FRESH),
        ("trips", None, [None], *FRESH),
        ("trips", None, None, *FRESH),
        ("trips", None, ["q"] * 20, *FRESH),
        ("trips", None, ["q"], "short", FRESH[1]),
        ("trips", None, ["q"], FRESH[0], "short"),
        ("trips", None, ["q"], None, None),
        ("trips", "given", ["q"], *FRESH),
        ("trips", None, ["q" * 70000], *FRESH),
    ):
        assert tried(NAME, values) == "23000"
    for account in ("visits and more", None):
        assert tried(NAME, (account, None, ["q"], *FRESH)) == "SFM01"
    verdicts = [("trips", "ben 1", ["other"], "ben 1", FRESH[1])]
    assert tried(NAME, verdicts[0]) is None


def test_a_name_of_another_question_is_not_taken_over(people: People) -> None:
    """Otherwise another's stored answer would be shown as that to a question of one's own."""
    with people.book("ben") as book:
        theirs = book.reserve("trips", None, "a question of ben", (1, 0), "")
        theirs.store(b"answer")
    uncharged = ("b" * 32, "b" * 64)
    taken = (theirs.entry.key, theirs.entry.digest), uncharged
    statement = cast("Any", NAME.format(people.schema))
    with people.connect("ben") as connection:
        connection.execute(statement, ("trips", None, ["of ben, not charged"], *uncharged))
    with people.connect("ann") as connection:
        for key, digest in taken:
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="taken"):
                connection.execute(statement, ("trips", None, ["of ann"], key, digest))
        # A question that has a name keeps it, whatever key is brought along.
        found = connection.execute(statement, ("trips", None, ["of ben, not charged"], *taken[0]))
        assert found.fetchone() == ("named", *uncharged)
    with people.book("ben") as book:
        assert book.reserve("trips", None, "a question of ben", (1, 0), "").stored == b"answer"


def test_nobody_says_about_which_data_the_charge_of_another_was(people: People) -> None:
    """A charge of one's own may have the digest of another's, under which states are kept."""
    statement = cast("Any", NAME.format(people.schema))
    with people.book("ben") as book:
        theirs = book.reserve("trips", None, "about some data", (1, 0), "")
    digest = theirs.entry.digest
    with people.connect("ann") as connection:
        connection.execute(statement, ("trips", None, ["about other data"], "c" * 32, digest))
        mine = next_entry(people, key="c" * 32, digest=digest)
        values = (*columns_of(mine), mine.spender, *mine.own, None)
        connection.execute(cast("Any", ENTER.format(people.schema)), values)
        note = cast("Any", f"SELECT {people.schema}.is_of_state(%s, 'other data', true)")
        assert connection.execute(note, (mine.sequence,)).fetchone() == (False,)
    with people.book("ben") as book:
        book.note_state(theirs.entry, "some data")
        assert book.is_of_state(theirs.entry, "some data")
        assert not book.is_of_state(theirs.entry, "other data")


# --- objects that stand in the way ----------------------------------------------------------------


def test_objects_of_an_analyst_do_not_stand_in_for_those_of_the_ledger(people: People) -> None:
    """A temporary table or function of the same name, and a search path that finds it first."""
    with closing(people.connect("ann")) as db:
        for table in ("entries", "accounts", "about", "requests", "bindings", "ceilings"):
            db.execute(cast("Any", f"CREATE TEMP TABLE {table} (name text, value bytea)"))
        db.execute(
            "CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'"
        )
        db.execute(cast("Any", f"SET search_path = pg_temp, {people.schema}"))
        fresh = (os.urandom(16).hex(), "d" * 64)
        text = NAME.format(people.schema)
        found = db.execute(cast("Any", text), ("trips", None, ["shadowed"], *fresh)).fetchone()
        assert found == ("named", *fresh)
        entry = next_entry(people, key=fresh[0], digest=fresh[1])
        values = (*columns_of(entry), entry.spender, *entry.own, None)
        db.execute(cast("Any", ENTER.format(people.schema)), values)
        bad = next_entry(people, spender=people.name("ben"))
        values = (*columns_of(bad), bad.spender, *bad.own, None)
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            db.execute(cast("Any", ENTER.format(people.schema)), values)
    with people.book("carl") as book:
        assert book.verify().ok
        assert next(iter(book.log("trips", after=entry.sequence - 1))).key == fresh[0]


@pytest.mark.parametrize(
    "setting",
    [
        "standard_conforming_strings = off",
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'German, DMY'",
        "bytea_output = escape",
        "IntervalStyle = sql_standard",
        "transform_null_equals = on",
        "plpgsql.extra_errors = 'none'",
        "lc_messages = 'C'",
    ],
)
def test_settings_of_a_session_change_nothing(people: People, setting: str) -> None:
    address = people.address("ann")
    with closing(psycopg.connect(address, autocommit=True)) as db:
        try:
            db.execute(cast("Any", f"SET {setting}"))
        except psycopg.errors.InsufficientPrivilege:
            return
        fresh = (os.urandom(16).hex(), "d" * 64)
        note = 'a\\b "c" é'
        text = NAME.format(people.schema)
        db.execute(cast("Any", text), ("trips", None, [f"under {setting}"], *fresh))
        entry = next_entry(people, key=fresh[0], digest=fresh[1], note=note)
        values = (*columns_of(entry), entry.spender, *entry.own, None)
        db.execute(cast("Any", ENTER.format(people.schema)), values)
        late = next_entry(people, time=now(-7200))
        values = (*columns_of(late), late.spender, *late.own, None)
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            db.execute(cast("Any", ENTER.format(people.schema)), values)
    with people.book("eve") as book:
        assert book.verify().ok, book.verify().faults
