"""How the streams of a ledger are recomputed from their steps, and compared with their charges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sfumato.ledger.chain import linked, opened, payload_digest, sealed
from sfumato.ledger.entries import Step
from sfumato.ledger.store import SecretRows, StreamRow


def faults(
    rows: SecretRows,
    paid: Mapping[int, str],
    begun: Mapping[int, str],
    last: int,
) -> Iterator[str]:
    """What is wrong with any stream, as sentences that quote neither states nor outputs.

    Parameters
    ----------
    rows : SecretRows
    paid : mapping
        The hash of each reservation, by its number.
    begun : mapping
        For each reservation of a stream that was begun, the hash of what it was opened with.
    last : int
        The last entry of the ledger that ``paid`` and ``begun`` cover. A stream with a later number
        was paid for since they were read, and is not judged.
    """
    streams = rows.streams()
    tallies = rows.tallies()
    yield from _strays({row.number for row in streams}, rows.stepped(), set(tallies), begun)
    for row in streams:
        if row.number > last:
            continue
        if row.number not in paid:
            yield f"stream {row.number} has no charge"
            continue
        yield from _opening(row, begun)
        reached = (row.at.step, row.at.head)
        yield from _chain_faults(row.number, paid[row.number], rows.steps(row.number), reached)
        if tallies.get(row.number, 0) != row.at.tallied:
            yield f"the tallies of stream {row.number} were edited: their sum does not match"


def _strays(
    named: set[int],
    stepped: set[int],
    tallied: set[int],
    begun: Mapping[int, str],
) -> Iterator[str]:
    """Steps and tallies without their stream, and streams that an entry names and that are gone."""
    for table, owners in (("steps", stepped), ("tallies", tallied)):
        for number in sorted(owners - named):
            yield f"{table} belong to stream {number}, which is missing"
    for number in sorted(begun.keys() - named):
        yield f"stream {number} is missing from the secrets"


def _opening(row: StreamRow, begun: Mapping[int, str]) -> Iterator[str]:
    """What is wrong with a stream's own row."""
    at = row.at
    # The file may have been edited, and hold anything.
    sound = all(isinstance(part, bytes) for part in (row.spec, row.secret, at.state))
    sealing = (at.step, at.state, at.tallied, at.head)
    if not sound or sealed(row.number, opened(row.spec, row.secret), *sealing) != at.seal:
        yield f"the state of stream {row.number} was edited: its hash does not match"
    if sound:
        spec = payload_digest(row.spec)
        if begun.get(row.number, spec) != spec:
            yield f"stream {row.number} was opened with something else than its entry says"


def _chain_faults(
    stream: int, head: str, steps: Iterable[Step], last: tuple[int, str]
) -> Iterator[str]:
    """Follow the chain of one stream to the step that its state has reached.

    Parameters
    ----------
    stream : int
    head : str
        The hash of the stream's charge, which its first step continues.
    steps : iterable of Step
    last : tuple of int and str
        The number and hash of the last step, as the stream's own row has them.
    """
    at = 0
    for step in steps:
        if step.number != at + 1:
            obstacle = "steps are missing or were moved"
            yield f"step {step.number} of stream {stream} follows step {at}: {obstacle}"
        whole = isinstance(step.output, bytes)
        if not whole or step.hash != linked(head, stream, step.number, step.event, step.output):
            yield f"step {step.number} of stream {stream} was edited: its hash does not match"
        at = step.number
        head = step.hash
    if (at, head) != last:
        obstacle = "its state is that of another step: it was cut, or an older state put back"
        yield f"stream {stream} ends at step {at}, but {obstacle}"
