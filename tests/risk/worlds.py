"""Worlds one by one, by definition: slow, plain, and written without the library."""

import itertools

import numpy as np

QUERIES = [
    "mean",
    "median",
    "sum",
    "count",
    "var",
    "std",
    ("percentile", 25),
    ("percentile", 90),
    ("percentile", 0),
    ("percentile", 100),
]
FUNCTIONS = {
    "mean": np.mean,
    "median": np.median,
    "sum": np.sum,
    "count": len,
    "var": np.var,
    "std": np.std,
}


def ask(query, records):
    if isinstance(query, tuple):
        return float(np.percentile(records, query[1]))
    return float(FUNCTIONS[query](records))


def answers(universe, size, query):
    return np.array([ask(query, world) for world in itertools.combinations(universe, size)])


def unbounded(universe, size, query, distance=1):
    worst = 0.0
    every = range(len(universe))
    pick = lambda places: [universe[i] for i in places]  # noqa: E731
    for world in itertools.combinations(every, size):
        here = ask(query, pick(world))
        rest = [i for i in every if i not in world]
        fewer = itertools.combinations(world, size - distance)
        more = (world + added for added in itertools.combinations(rest, distance))
        worst = max(
            [
                worst,
                *(abs(here - ask(query, pick(other))) for other in itertools.chain(fewer, more)),
            ]
        )
    return worst


def bounded(universe, size, query, distance=1):
    worlds = [set(world) for world in itertools.combinations(range(len(universe)), size)]
    asked = [ask(query, [universe[i] for i in sorted(world)]) for world in worlds]
    pairs = itertools.combinations(range(len(worlds)), 2)
    return max(
        [
            0.0,
            *(
                abs(asked[a] - asked[b])
                for a, b in pairs
                if len(worlds[a] & worlds[b]) == size - distance
            ),
        ]
    )


def tight(universe, size, query, epsilon, sensitivity, prior=None):
    found = answers(universe, size, query)
    weight = np.full(len(found), 1 / len(found)) if prior is None else np.asarray(prior)
    kernel = np.exp(-epsilon * np.abs(found[:, None] - found) / sensitivity)
    return float((weight / (kernel @ weight)).max())
