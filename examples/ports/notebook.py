"""The notebook on choosing epsilon (Lee and Clifton 2011), number by number.

Run it with ``python examples/ports/notebook.py``, or with the name of a file for the picture:
``python examples/ports/notebook.py figure.svg``. Each line shows the notebook's number, ours, and
whether they are the same or why ours differs.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pandas as pd
from beside import beside, holds

import sfumato as sf
from sfumato.risk import (
    bounded_sensitivity,
    confidence,
    disclosure_risk,
    optimal_epsilon,
    posterior_belief,
    prior_belief,
    tighter_upper_bound_posterior,
    unbounded_sensitivity,
    upper_bound_epsilon,
    upper_bound_posterior,
)

YEAR, DAYS = "school_year", "absence_days"

# "We define the actual dataset (conforming the universe)", and "the dataset that we will release".
df_school = pd.DataFrame(
    {
        "name": ["Chris", "Kelly", "Pat", "Terry"],
        YEAR: [1, 2, 3, 4],
        DAYS: [1, 2, 3, 10],
    }
)
df_school_release = df_school.drop([3], axis=0)
columns = [YEAR, DAYS]
universe = df_school[columns]
size = df_school_release.shape[0]


def sensitivities() -> None:
    """Both sensitivities: the notebook tries every neighbour, and we use closed forms."""
    for column in columns:
        worlds = list(itertools.combinations(df_school[column], size))
        smaller = [
            abs(np.mean(world) - np.mean(less))
            for world in worlds
            for less in itertools.combinations(world, size - 1)
        ]
        # With k = 1 the only set with one record more is the whole universe.
        larger = [abs(np.mean(world) - df_school[column].mean()) for world in worlds]
        unbounded = unbounded_sensitivity(universe, size, "mean")[column]
        beside(f"unbounded sensitivity of {column}", float(max(smaller + larger)), unbounded)
        changed = [
            abs(np.mean(one) - np.mean(other))
            for one, other in itertools.combinations(worlds, 2)
            if len(set(one) & set(other)) == size - 1
        ]
        bounded = bounded_sensitivity(universe, size, "mean")[column]
        beside(f"bounded sensitivity of {column}", float(max(changed)), bounded)


def neighbours() -> None:
    """ "x = {1, 2, 3} from universe X = {1, 2, 3, 4}": the notebook names some neighbours."""
    x, whole = {1, 2, 3}, {1, 2, 3, 4}
    changed = [set(each) for each in itertools.combinations(whole, 3) if len(x & set(each)) == 2]
    holds("{1, 2, 4} is a neighbour under bounded DP", {1, 2, 4} in changed)
    removed = [set(each) for each in itertools.combinations(x, 2)]
    holds(
        "{1, 2}, {1, 3} and {1, 2, 3, 4} are neighbours under unbounded DP",
        {1, 2} in removed and {1, 3} in removed and len(whole - x) == 1,
    )


def beliefs() -> None:
    """Prior, posterior and confidence, after the noisy mean 2.20131."""
    prior = prior_belief(universe, size)
    beside("possible worlds, 4 choose 3", 4, len(prior[DAYS]))
    beside("prior of each world", [0.25] * 4, prior[DAYS].tolist())
    posterior = posterior_belief(universe, size, "mean", result=2.20131, epsilon=2)
    beside(
        f"posterior, {YEAR}",
        [0.33898835, 0.4003158, 0.17987348, 0.08082237],
        posterior[YEAR].round(8).tolist(),
    )
    beside(
        f"posterior, {DAYS}",
        [0.61802372, 0.15816999, 0.12500781, 0.09879847],
        posterior[DAYS].round(8).tolist(),
    )
    beside("posterior of the first world in the paper", 0.618, round(float(posterior[DAYS][0]), 4))
    scale = unbounded_sensitivity(universe, size, "mean")[DAYS] / 2
    density = np.exp(-abs(2.20131 - np.mean([1, 2, 3])) / scale) / (2 * scale)
    beside("the numerator on page 333 of the paper", 0.3062, round(float(density), 4))
    holds(
        f"the attacker takes world 1 for the real one, of {DAYS}, and is right",
        int(posterior[DAYS].argmax()) == 0 and disclosure_risk(posterior)[DAYS] > 0.6,
    )
    swapped = "the notebook swaps prior and posterior, so that its figure is a loss of belief"
    gained = confidence(prior, posterior)
    lost = confidence(posterior, prior)
    beside(f"confidence, {YEAR}", 0.16917763372208006, gained[YEAR], swapped)
    beside(f"confidence, {DAYS}", 0.15120152863171882, gained[DAYS], swapped)
    beside(f"the same with the arguments swapped, {YEAR}", 0.16917763372208006, lost[YEAR])
    beside(f"the same with the arguments swapped, {DAYS}", 0.15120152863171882, lost[DAYS])


def bounds() -> None:
    """The bounds of the posterior, and the epsilon of the loose one."""
    found = upper_bound_epsilon(universe, size, "mean", risk=1 / 3)
    beside(f"upper bound of epsilon, {YEAR}", 0.3378875900901369, found[YEAR])
    beside(f"upper bound of epsilon, {DAYS}", 0.38293926876882173, found[DAYS])
    beside("the same in the paper, equation 9", 0.3829, round(found[DAYS], 4))
    tighter = tighter_upper_bound_posterior(universe, size, "mean", epsilon=0.5)
    beside(f"tighter bound at epsilon 0.5, {YEAR}", 0.3291788293012836, tighter[YEAR])
    beside(f"tighter bound at epsilon 0.5, {DAYS}", 0.3476971459619019, tighter[DAYS])
    beside("the same in the paper, equation 12", 0.3292, round(tighter[YEAR], 4))
    holds(f"epsilon 0.5 fulfils the requirement of 1/3 for {YEAR}", tighter[YEAR] < 1 / 3)
    holds(f"epsilon 0.5 is above the threshold of 1/3 for {DAYS}", tighter[DAYS] > 1 / 3)
    loose = upper_bound_posterior(universe, size, "mean", epsilon=0.5)
    holds("the upper bound is not tight", all(loose[name] > tighter[name] for name in columns))


def searched() -> None:
    """The binary search."""
    printed = "what the notebook prints as optimal is the epsilon of the loose bound"
    optimal = optimal_epsilon(universe, size, "mean", risk=1 / 3, bound="tight")
    beside(f"optimal epsilon as printed, {YEAR}", 0.3378877996541445, optimal[YEAR], printed)
    beside(f"optimal epsilon as printed, {DAYS}", 0.3829395062746971, optimal[DAYS], printed)
    loose = optimal_epsilon(universe, size, "mean", risk=1 / 3, bound="loose")
    above = "the notebook's search stops just above the risk"
    beside(f"the same by the loose bound, {YEAR}", 0.3378877996541445, loose[YEAR], above)
    beside(f"the same by the loose bound, {DAYS}", 0.3829395062746971, loose[DAYS], above)
    below = "the notebook's search stops just below the largest epsilon"
    beside(f"tight bound in the plot, {YEAR}", 0.525149770057615, optimal[YEAR], above)
    beside(f"tight bound in the plot, {DAYS}", 0.43171996782769506, optimal[DAYS], below)
    for column in columns:
        worst = tighter_upper_bound_posterior(universe, size, "mean", epsilon=optimal[column])
        holds(f"our epsilon of {column} is within the risk", worst[column] <= 1 / 3 + 1e-12)
    over = tighter_upper_bound_posterior(universe, size, "mean", epsilon=0.525149770057615)
    holds(f"the notebook's epsilon of {YEAR} is above the risk", over[YEAR] > 1 / 3)
    holds(
        "the tight bound allows a larger epsilon than the loose one",
        all(optimal[name] > loose[name] for name in columns),
    )


def plotted() -> None:
    """The two plots: np.linspace(0, 5, num=500), risk 1/3, the mean, and then the median."""
    epsilons = np.linspace(0, 5, num=500)
    choices = sf.choose(universe, size, query="mean", risk=1 / 3, epsilons=epsilons)
    for column in columns:
        choice = choices[column]
        holds(
            f"the curves of {column} run over the notebook's 500 epsilons",
            choice.epsilons == tuple(epsilons.tolist()),
        )
        holds(
            f"both curves of {column} begin at the prior, 1/4",
            np.allclose([choice.tight_curve[0], choice.loose_curve[0]], 0.25),
        )
        holds(f"the risk of {column} grows with epsilon", np.all(np.diff(choice.tight_curve) > 0))
    approximately = "at epsilon 5 the worst posterior is"
    for column, value in ((YEAR, 0.85), (DAYS, 0.7)):
        risk = choices[column].tight_curve[-1]
        reason = f"{approximately} {risk:.3f}, and it tends to 1 only as epsilon grows further"
        beside(f"probability of success at epsilon 5, {column}", 1.0, float(risk), reason)
        assert risk > value
    medians = sf.choose(universe, size, query="median", risk=1 / 3, epsilons=epsilons)
    for column in columns:
        choice = medians[column]
        print(f"median of {column} (a picture only) | - | {choice.quoted} | {choice.rests_on}")
    variances = sf.choose(universe, size, query="var", risk=1 / 3)
    holds(
        '"I encourage you to get my code and plot, e.g., the variance query"',
        all(part.exact for part in variances.values()),
    )
    if len(sys.argv) > 1:
        choices.plot()[0].figure.savefig(sys.argv[1])


def own_prior() -> None:
    """ "If the prior is not uniform, then you could assign a probability mass function." """
    prior = [0.3, 0.2, 0.2, 0.3]
    even = sf.choose(df_school[DAYS], size, query="mean", risk="0.4")
    uneven = sf.choose(df_school[DAYS], size, query="mean", risk="0.4", prior=prior)
    holds("an adversary with a prior of 0.3 allows less", uneven.epsilon < even.epsilon)


if __name__ == "__main__":
    neighbours()
    sensitivities()
    beliefs()
    bounds()
    searched()
    plotted()
    own_prior()
