"""Where a release stands in the ledger."""

from __future__ import annotations

import datetime as dt
import re
from typing import NamedTuple

from sfumato.basics import ExplainedStruct
from sfumato.errors import UsageError, explained_methods, printable
from sfumato.privacy import CentralMeasure, measure_of

_NUMBER = r"([0-9.]{1,40})"
_CHARGED = re.compile(rf"(?:epsilon = {_NUMBER}(?:, delta = {_NUMBER})?|rho = {_NUMBER})")


# What stands between the name of the data and their version in a label.
VERSION = ", version "


# What is said of an answer that was asked for as it is stored.
LATER = "the data may have changed since, and nothing was counted again"


class DataName(NamedTuple):
    """What the data are called: their name or the name of their file, and their version."""

    name: str
    version: str | None

    def __str__(self) -> str:
        texts = [printable(text) for text in self if text is not None]
        # In quotes where it would not be clear which part is the version.
        if any(VERSION in text for text in texts):
            texts = [f"'{text}'" for text in texts]
        return VERSION.join(texts)


@explained_methods
class Receipt(ExplainedStruct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a release stands in the ledger.

    Nothing in it depends on the data: key (unless the user named it) and digest are random, and the
    time is that of the charge, before a row was read.

    Attributes
    ----------
    account, key, digest : str
        ``digest`` is a random number that stands for question, cost, unit, source and account. What
        it stands for is known to the ledger's secrets only.
    entry : int
        Sequence number of the charge in the ledger.
    entry_hash : str
        Hash of that entry, which chains to all earlier ones.
    time : str
        UTC time of the charge.
    charged : str
        What the whole plan cost the account.
    part : str
        Which answer of the plan this is, such as "1 of 3".
    source : str
        The label of the data.
    version : str
        Of the library.
    signature, signer : str
        An Ed25519 signature of the release without it, and the public key, where the ledger has
        one; else "".
    picked : str
        What was picked for the plan, noise or shares, and why, in sentences; "" if nothing was.
    budget : str
        What all answers of the account may ever cost together, where costs add up; "" in receipts
        of before.
    named : str
        The label without the version of the data, if the label alone does not show which part of it
        is the version; else "".
    as_of : str
        The day of the charge, where the answer was asked for as it is stored, whatever has become
        of the data since; else "".
    by_curves : str
        The total of the account, which holds for all its answers together, if it adds up by curves;
        else "".

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> publisher = sf.Publisher(src, account="ward 3", budget="1")
    >>> receipt = publisher.release(sf.Histogram("age", bins=4), epsilon="0.5").receipt
    >>> receipt.account, receipt.charged, receipt.part, receipt.source
    ('ward 3', 'epsilon = 0.5', '1 of 1', 'ages')
    """

    account: str
    key: str
    digest: str
    entry: int
    entry_hash: str
    time: str
    charged: str
    part: str
    source: str
    version: str
    signature: str = ""
    signer: str = ""
    picked: str = ""
    named: str = ""
    as_of: str = ""
    by_curves: str = ""
    budget: str = ""

    def data(self, conditions: str = "") -> DataName:
        """The name of the data and their version, as two texts.

        ``conditions`` is what the label says of public conditions on the rows; it is left out.

        >>> base = Receipt("a", "k", "d", 1, "h", "t", "c", "1 of 1", "visits, version 2", "0.2.0")
        >>> base.data()
        DataName(name='visits', version='2')
        """
        label = self.source
        if conditions:
            label = label.removesuffix(f", rows{conditions}")
        # A name may hold the mark itself: where the name is known, the mark is not looked for.
        if self.named:
            version = label.removeprefix(self.named).removeprefix(VERSION)
            return DataName(self.named, version or None)
        name, mark, version = label.rpartition(VERSION)
        return DataName(name, version) if mark else DataName(label, None)

    @property
    def cost(self) -> CentralMeasure | None:
        """What was charged, as a measure; None where a file holds another text."""
        return _measure(self.charged)

    @property
    def total(self) -> CentralMeasure | None:
        """What an account by curves promises for all its answers; None of any other."""
        return _measure(self.by_curves)

    @property
    def most(self) -> CentralMeasure | None:
        """What the account may ever spend, as a measure; None where it is not known."""
        return _measure(self.budget)

    @property
    def moment(self) -> str:
        """The time for people: the day and the second, in UTC."""
        time = self.time
        is_time = len(time) >= 19 and time[10] in "T "
        return f"{time[:10]}, {time[11:19]} UTC" if is_time else time

    @property
    def date(self) -> dt.datetime | None:
        """The second as a datetime in UTC, without a zone; None where a file holds another text."""
        try:
            moment = dt.datetime.fromisoformat(self.time)
        except ValueError:
            return None
        return moment.replace(tzinfo=None, microsecond=0)

    def lines(self) -> list[tuple[str, str]]:
        """What it says, as names and texts for people."""
        picked = [("Picked", self.picked)] if self.picked else []
        if self.by_curves:
            picked.append(("Together", f"{self.by_curves}, by curves: all answers of the account"))
        return [
            ("Account", self.account),
            ("Charged", f"{self.charged}; this is answer {self.part}"),
            *([("Budget of the account", self.budget)] if self.budget else []),
            *picked,
            ("Time", self.moment),
            *([("As of", f"{self.as_of}: {LATER}")] if self.as_of else []),
            ("Data", self.source),
            ("Key", self.key),
            ("Ledger entry", f"{self.entry}, hash {self.entry_hash}"),
            ("Digest", self.digest),
            ("Made by", f"Sfumato {self.version}"),
        ]


def _measure(text: str) -> CentralMeasure | None:
    """Read an amount as receipts say it; None of another text."""
    amount = _CHARGED.fullmatch(text)
    if amount is None:
        return None
    epsilon, delta, rho = amount.groups()
    try:
        return measure_of("a charge", epsilon=epsilon, delta=delta or 0, rho=rho)
    except UsageError:
        return None
