"""The previews of a plan's questions, with what was picked for the plan."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import msgspec

from sfumato.answers.preview import Preview
from sfumato.privacy.alike import common_cost
from sfumato.publishing.plan_choice import PlanChoice


class PlanPreviews(tuple[Preview, ...]):
    """One preview for each question, in the order of the plan.

    ``print`` shows them as people read them, what was picked for the plan first, and what all of
    them have in common once.

    Attributes
    ----------
    choice : PlanChoice or None
        What was picked, and why; None: the plan is answered as it is stated.
    """

    choice: PlanChoice | None

    def __new__(cls, previews: Iterable[Preview], choice: PlanChoice | None = None) -> PlanPreviews:
        """Make them of previews in their order."""
        made = super().__new__(cls, previews)
        made.choice = choice
        return made

    def answers(self) -> list[str]:
        """Each preview as text; then what is true of all of them, if there are several."""
        if len(self) < 2:
            return list(map(str, self))
        common = common_cost([one.cost for one in self])
        is_one_unit = len({one.unit for one in self}) == 1
        shared = [each for each in self[0].remarks() if all(each in one.remarks() for one in self)]
        costs = f"has {common}" if common is not None else ""
        protects = f"protects {self[0].unit}" if is_one_unit else ""
        has = " and ".join(filter(None, [costs, protects]))
        lines = [f"Each of the {len(self):,} answers {has}:" if has else "For all of them:"]
        if common is not None and is_one_unit:
            lines.append(msgspec.structs.replace(self[0], cost=common.cost).risk)
        texts = []
        for one in self:
            head = one.question
            head += "" if common is not None else f" at {one.cost}"
            head += "" if is_one_unit else f", for {one.unit}"
            risk = [] if len(lines) > 1 else [one.risk]
            remarks = [each for each in one.remarks() if each not in shared]
            texts.append("\n  ".join([f"{head}:", *one.lines(), *risk, *remarks]))
        return [*texts, "\n  ".join([*lines, *shared])]

    def __str__(self) -> str:
        said = [] if self.choice is None else [str(self.choice)]
        return "\n".join([*said, *self.answers()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        said = "" if self.choice is None else f"<p>{escape(str(self.choice))}</p>"
        return said + "".join(one._repr_html_() for one in self)
