"""The previews of a plan's questions, with what was picked for the plan."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from sfumato.answers.preview import Preview
from sfumato.publishing.plan_choice import PlanChoice


class PlanPreviews(tuple[Preview, ...]):
    """One preview for each question, in the order of the plan.

    ``print`` shows them as people read them, what was picked for the plan first.

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

    def __str__(self) -> str:
        said = [] if self.choice is None else [str(self.choice)]
        return "\n".join([*said, *map(str, self)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        said = "" if self.choice is None else f"<p>{escape(str(self.choice))}</p>"
        return said + "".join(one._repr_html_() for one in self)
