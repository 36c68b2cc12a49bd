"""The parts of a ledger, each opened when it is needed: public rows, secrets, and an anchor."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial

from sfumato.basics.processes import renewed_in_children
from sfumato.errors import LedgerError
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.audit import first_fault
from sfumato.ledger.secrets import Secrets, new_identity
from sfumato.ledger.store import SecretRows, Store
from sfumato.ledger.stream_record import StreamRecord


class Parts:
    """The parts of one ledger, which everything that a `Book` does shares.

    Attributes
    ----------
    store : Store
        The public rows. Whoever reads or verifies a copy of a ledger needs no more.
    anchor : Anchor or None
    """

    def __init__(self, store: Store, anchor: Anchor | None) -> None:
        self.store = store
        self.anchor = anchor
        self._secrets: Secrets | None = None
        self._examined = False
        self._renew()
        renewed_in_children(self, Parts._renew)

    def _renew(self) -> None:
        """Begin with a new lock, as a child process must: its parent may hold the old one."""
        self._opening = threading.RLock()

    def close(self) -> None:
        """Close both parts; closing twice is harmless."""
        if self._secrets is not None:
            self._secrets.close()
        self.store.close()

    # --- secrets ----------------------------------------------------------------------------------

    def secrets(self) -> Secrets:
        """The secrets, opened before any transaction that needs them begins."""
        if self._secrets is None:
            # Without the lock, two threads would make two secrets for one ledger in memory.
            with self._opening:
                self._secrets = self._secrets or self._open_secrets()
        return self._secrets

    def _open_secrets(self) -> Secrets:
        known = self.store.reading(lambda rows: rows.identity())
        identity = known or self.store.writing(new_identity)
        # A ledger that was charged had secrets. New ones would let its streams begin again under
        # their old charge, with new noise for steps that are already published.
        create = not self.store.reading(lambda rows: rows.charged())
        return Secrets(self.store.secrets(create=create), identity, create=create)

    def secrets_if_any(self) -> Secrets | None:
        """The secrets; None where the ledger has none, as an auditor's copy."""
        if self._secrets is None and not self.store.has_secrets():
            return None
        return self.secrets()

    def examined_secrets(self) -> Secrets:
        """The secrets, after one check of the whole ledger that must come before any change."""
        secrets = self.secrets()
        self._examine(secrets)
        return secrets

    def examine(self) -> None:
        """Check the whole ledger once, as must be done before any change.

        It finds what a damaged or an older ledger shows at once; `audit` finds the rest. A caller
        who may not read the secrets looks at the public part.
        """
        self._examine(self.secrets() if self.store.caller(None).is_custodian else None)

    def _examine(self, secrets: Secrets | None) -> None:
        if self._examined:
            return
        fault = self.store.reading(first_fault)
        if fault is not None:
            remedy = "Restore a copy that verifies; do not publish from this one"
            raise LedgerError(self.store.label, fault, remedy)
        if secrets is not None and secrets.store.reading(lambda rows: rows.any_stream()):
            self.store.require_private()
        if self.anchor is not None:
            self._require_anchored(self.anchor, secrets)
        self._examined = True

    # --- the anchor -------------------------------------------------------------------------------

    def _require_anchored(self, anchor: Anchor, secrets: Secrets | None) -> None:
        fault = self.anchor_fault(anchor, secrets)
        if fault is not None:
            raise LedgerError(self.store.label, fault, "Restore the latest copy, with its secrets")
        anchor.require_writable()

    def anchor_fault(self, anchor: Anchor, secrets: Secrets | None) -> str | None:
        """What the anchor remembers and the ledger lacks, as a sentence; None if nothing.

        Without the secrets, only entries are compared: steps of streams are among the secrets.
        """
        reached = anchor.read()
        sequence, digest = reached.entry
        agrees = sequence == 0 or self.hash_of(sequence) == digest
        if agrees and secrets is not None:
            agrees = secrets.store.reading(partial(_has_steps, reached=reached.streams))
        if agrees:
            return None
        obstacle = "an older copy was put back, or its history was rewritten"
        return f"it is not the ledger that {anchor.label} knows: {obstacle}"

    def hash_of(self, sequence: int) -> str | None:
        """The hash of the entry of a number; None where there is no such entry."""
        entry = self.store.reading(lambda rows: rows.entry(sequence))
        return None if entry is None else entry.hash

    def anchor_last_entry(self) -> None:
        """Append the last entry to the anchor, if there is one."""
        if self.anchor is not None:
            tip = self.store.reading(lambda rows: rows.tip(""))
            self.anchor.note(f"entry {tip.sequence} {tip.hash}")

    def anchor_last_steps(self, streams: list[StreamRecord]) -> None:
        """Append the last step of each stream that has taken one to the anchor, if there is one."""
        if self.anchor is None:
            return
        lines: list[str] = []
        for stream in streams:
            step, digest = stream.head()
            if step:
                lines.append(f"stream {stream.entry.sequence} {step} {digest}")
        if lines:
            self.anchor.note(*lines)


def _has_steps(rows: SecretRows, reached: Mapping[int, tuple[int, str]]) -> bool:
    """Whether each stream has the step, with the hash, that the anchor remembers."""
    for number, (step, digest) in reached.items():
        found = rows.step(number, step)
        if step and (found is None or found.hash != digest):
            return False
    return True
