"""The durable account of what has been spent on a data set: bytes in, bytes out."""

from sfumato.ledger.ledger import Account, Amount, Binding, Entry, Hold, Ledger, Verification, open_ledger
from sfumato.ledger.steps import Step, Steps

__all__ = ["Account", "Amount", "Binding", "Entry", "Hold", "Ledger", "Step", "Steps", "Verification", "open_ledger"]
