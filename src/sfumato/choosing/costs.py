"""The least cost of several questions, and the shares that make each accurate enough."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.answers.accuracy import AccuracyRequest, Kind, kind_of, least, least_alone
from sfumato.publishing.plan import Plan

# Shares of delta follow shares of epsilon, and what a question needs depends on its delta.
ROUNDS = 8


def with_shares(plan: Plan, requests: Sequence[AccuracyRequest], kind: Kind) -> Plan:
    """Give each question of a plan the share that it needs by itself.

    Shares that the plan states are kept.

    Delta is divided by the same shares, and what a question needs depends on its delta. So shares
    and needs are computed in turn, until they agree.
    """
    if plan.shares is not None or len(requests) == 1:
        return plan
    weights = [1] * len(requests)
    for _ in range(ROUNDS if kind.delta else 1):
        costs = Plan(plan.questions, weights).costs(kind.cost(kind.units))
        found = [
            least_alone(request, kind_of(cost))
            for request, cost in zip(requests, costs, strict=True)
        ]
        if found == weights:
            break
        weights = found
    return Plan(plan.questions, weights)


def least_total(plan: Plan, requests: Sequence[AccuracyRequest], kind: Kind) -> int:
    """The least units at which every question of a plan is as accurate as requested."""

    def are_met(units: int) -> bool:
        costs = plan.costs(kind.cost(units))
        return all(request.is_met(cost) for request, cost in zip(requests, costs, strict=True))

    # The shares are what each question needs by itself, so their sum is close to the answer.
    start = kind.units if plan.shares is None else max(1, int(sum(plan.proportions)))
    accuracies = dict.fromkeys(str(request.accuracy) for request in requests)
    return least(are_met, start, kind.most, "; ".join(accuracies))
