"""The previews of a plan's questions, with what was picked for the plan."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import msgspec

from sfumato.answers.preview import Preview
from sfumato.answers.release import which_answers
from sfumato.privacy.measures import CommonCost, common_cost
from sfumato.privacy.unit import Unit
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
        """Each preview as text; then what is true of several of them, once."""
        if len(self) < 2:
            return list(map(str, self))
        common = common_cost([one.cost for one in self])
        groups: dict[Unit, list[int]] = {}
        for at, one in enumerate(self):
            groups.setdefault(one.unit, []).append(at)
        texts = [""] * len(self)
        for together in groups.values():
            shared = self._shared(together)
            for at in together:
                one = self[at]
                number = f"{at + 1}. " if len(groups) > 1 else ""
                cost = "" if common is not None else f" at {one.cost}"
                lines = [*one.lines(), *([] if common is not None else [one.risk])]
                lines += [each for each in one.remarks() if each not in shared]
                texts[at] = "\n  ".join([f"{number}{one.question}{cost}:", *lines])
        return [*texts, *(self._in_common(together, common) for together in groups.values())]

    def _shared(self, together: list[int]) -> list[str]:
        """What each of these previews remarks."""
        first, *others = [self[at].remarks() for at in together]
        return [each for each in first if all(each in other for other in others)]

    def _in_common(self, together: list[int], common: CommonCost | None) -> str:
        """What is true of all of these previews, which have one unit."""
        which = which_answers(together, len(self))
        one = len(together) == 1 or len(together) == len(self)
        has, protects = ("has", "protects") if one else ("have", "protect")
        cost = "" if common is None else f"{has} {common} and "
        lines = [f"{which} {cost}{protects} {self[together[0]].unit}:"]
        if common is not None:
            lines.append(msgspec.structs.replace(self[together[0]], cost=common.cost).risk)
        return "\n  ".join([*lines, *self._shared(together)])

    def __str__(self) -> str:
        said = [] if self.choice is None else [str(self.choice)]
        return "\n".join([*said, *self.answers()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        said = "" if self.choice is None else f"<p>{escape(str(self.choice))}</p>"
        return said + "".join(one._repr_html_() for one in self)
