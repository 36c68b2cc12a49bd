"""What a release promises, as data: printed the same in docstring, receipt and report."""

from __future__ import annotations

import msgspec

from sfumato.errors import printable
from sfumato.privacy.measures import Measure
from sfumato.privacy.unit import Unit

EXACT = "none: integer samplers, no floating point"


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a question keeps its promise. Each question class has one, and its docstring holds the same sentences."""

    sensitivity: str
    because: str
    not_covered: str
    source: str

    def __str__(self) -> str:
        return f"Sensitivity: {self.sensitivity}\nHolds because: {self.because}\nNot covered: {self.not_covered}\nSource: {self.source}"


class Guarantee(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A promise about one release or plan.

    Attributes
    ----------
    measure : PureDP, ApproxDP, ZCDP or MetricDP
    unit : Unit
    mechanism : str
        What adds the randomness, in words.
    proof : Proof
    assumptions : tuple of str
        What must be true of the world for the promise to hold.
    slack : str
        What finite arithmetic adds; "none" where the noise is exact.
    private : bool
        False if the noise came from a public seed: then nothing is promised at all.
    """

    measure: Measure
    unit: Unit
    mechanism: str
    proof: Proof
    assumptions: tuple[str, ...] = ()
    slack: str = EXACT
    private: bool = True

    def sentence(self) -> str:
        """The promise in one sentence."""
        if not self.private:
            return "NOT PRIVATE: the noise came from a public seed, for testing only."
        names = {"pure": "Pure differential privacy", "approx": "Approximate differential privacy"}
        names |= {"zcdp": "Zero-concentrated differential privacy", "metric": "Metric privacy"}
        kind = names[str(self.measure.__struct_config__.tag)]
        return f"{kind}, {self.measure}, for {self.unit}."

    def __str__(self) -> str:
        lines = [f"Guarantee: {self.sentence()}", f"Mechanism: {self.mechanism}", str(self.proof), f"Numerical slack: {self.slack}"]
        lines += [f"Assumes: {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def assumptions_of(unit: Unit) -> tuple[str, ...]:
    """What every central release assumes."""
    if unit.person is not None:
        whose = f"The column {printable(unit.person)} names the person behind each row."
    elif unit.rows_per_person == 1:
        whose = "Each row is one person."
    else:
        whose = f"Nobody has more than {unit.rows_per_person} rows: the holder states it, and nothing enforces it."
    return whose, "The domain was chosen without looking at the data.", "AES and the operating system's random seed are sound."
