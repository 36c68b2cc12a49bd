"""The durable account of what has been spent on a data set: bytes in, bytes out."""

from typing import TypeAlias

from sfumato.ledger.book import Book, open_ledger
from sfumato.ledger.charge import Hold
from sfumato.ledger.entries import (
    LARGEST,
    Account,
    Amount,
    Binding,
    Entry,
    Spender,
    Step,
    Verification,
    stated_terms,
    written,
)
from sfumato.ledger.store import Store
from sfumato.ledger.stream_record import StreamRecord

Ledger: TypeAlias = Book
"""What users call a book in annotations, whatever store it is kept in."""

__all__ = [
    "LARGEST",
    "Account",
    "Amount",
    "Binding",
    "Book",
    "Entry",
    "Hold",
    "Ledger",
    "Spender",
    "Step",
    "StreamRecord",
    "Store",
    "Verification",
    "open_ledger",
    "stated_terms",
    "written",
]
