"""What is said of a choice is what led to it."""

import pytest

import sfumato as sf

DOMAIN = sf.Domain({f"x{i}": sf.Interval(0, 10, step=1) for i in range(20)} | {"k": sf.Keys()})
TENS = [sf.Histogram(f"x{i}") for i in range(20)]
UNEQUAL = [sf.Histogram("x0"), sf.Histogram(["x0", "x1"]), sf.Histogram(["x0", "x1", "x2"])]
APPROX = {"epsilon": 1, "delta": "1e-6"}


def said(plan, **cost) -> str:
    return str(sf.preview(plan, domain=DOMAIN, unit=sf.Unit(), **cost).choice)


@pytest.mark.parametrize(
    ("plan", "cost", "text"),
    [
        (
            sf.Plan(TENS),
            APPROX,
            "Gaussian noise, because 20 questions have +-40 at epsilon = 1, delta = 0.000001 with "
            "it and +-60 with Laplace noise.",
        ),
        (
            sf.Plan(TENS[:2]),
            APPROX,
            "Laplace noise, because 2 questions have +-6 at epsilon = 1, delta = 0.000001 with it "
            "and +-13 with Gaussian noise.",
        ),
        (
            sf.Plan(UNEQUAL),
            {"rho": "0.02"},
            "The shares make the half-widths of all counts add up to the least (+-11 to +-51): "
            "with equal shares, shares=[1, 1, 1], they add up to 1.36 times as much (+-17).",
        ),
        (
            sf.Plan(UNEQUAL, weights=[9, 1, 1], minimise="squared"),
            {"epsilon": 1},
            "The shares make the weighted squares of the half-widths of all counts add up to the "
            "least (+-6 to +-13): with equal shares, shares=[1, 1, 1], they add up to 1.47 times "
            "as much (+-9).",
        ),
        (
            sf.Plan(TENS, accuracy=50),
            {"delta": "1e-6"},
            "Gaussian noise, because the accuracy that is asked for needs epsilon = 0.773412633, "
            "delta = 0.000001 with it and epsilon = 1.1862545 with Laplace noise. Epsilon = "
            "0.773412633, delta = 0.000001 is the least cost at which every answer is as accurate "
            "as requested.",
        ),
        (
            sf.Plan(TENS[:3], accuracy=50),
            {"epsilon": 1},
            "Each question has what it needs for the accuracy that is asked for, and epsilon = "
            "0.177938175 would be enough.",
        ),
        (
            sf.Plan(TENS[:3], accuracy=[50, None, None]),
            {"epsilon": 1},
            "Questions with an accuracy have what they need; with the rest, the half-widths of all "
            "counts of the others add up to the least.",
        ),
        (sf.Plan(TENS, noise="laplace", minimise="absolute"), APPROX, "Laplace noise, as the plan"),
        (
            sf.Plan([*TENS, sf.Histogram("k")]),
            APPROX,
            "Gaussian noise for 20 of 21 questions, because at epsilon = 1, delta = 0.000001 "
            "errors are",
        ),
        (
            sf.Plan(TENS, shares=[99, *[1] * 19]),
            APPROX,
            "Laplace noise, because with any other some answer would be less accurate, at the",
        ),
    ],
)
def test_the_sentences(plan, cost, text: str) -> None:
    assert said(plan, **cost).startswith(text)


def test_what_is_quoted_is_what_the_other_choice_leads_to():
    other = sf.Plan(TENS, noise="laplace", minimise="absolute")
    found = sf.preview(other, domain=DOMAIN, unit=sf.Unit(), **APPROX)
    assert f"+-{found[0].accuracy()} with Laplace noise" in said(sf.Plan(TENS), **APPROX)
