"""Regions of several classes: leads against votes, and grids between whose points borders are smooth."""

import numpy as np
import pytest

from mercer.estimators.prediction import votes
from mercer.studio.panels.class_regions import finer_labels, leads, regions_json

SIZE = 40


def circle_of_ties():
    """Values of three pairs: class 2 beats all outside the unit circle; inside the votes tie and class 0 wins."""
    axis = np.linspace(-2, 2, SIZE)
    x, y = (one.ravel() for one in np.meshgrid(axis, axis))
    return np.column_stack([np.full(SIZE**2, -1.0), 1 - x**2 - y**2, np.full(SIZE**2, -1.0)])


@pytest.mark.parametrize("n_classes", [3, 4, 7, 10])
def test_the_winner_alone_has_a_positive_lead(n_classes):
    """The class with the most votes, the first of equal ones, leads; no other class does."""
    pairwise = np.random.default_rng(n_classes).normal(size=(4000, n_classes * (n_classes - 1) // 2))
    lead = leads(pairwise, n_classes)
    winner = votes(pairwise, n_classes).argmax(axis=1)
    assert np.array_equal(lead > 0, np.arange(n_classes) == winner[:, None])


def test_a_lead_is_worked_out_by_hand():
    """f₀₁ = 2, f₀₂ = 0.5, f₁₂ = 3: class 1 wins once f₀₁ has lost 2, class 2 once f₀₂ and f₁₂ have lost up to 3."""
    assert leads(np.array([[2.0, 0.5, 3.0]]), 3)[0].tolist() == [2.0, -2.0, -3.0]


def test_the_winner_leads_by_at_least_its_smallest_margin():
    """Where a class beats all others, its lead is no smaller than the least of its decision values."""
    pairwise = np.random.default_rng(0).normal(size=(1000, 6))
    all_beaten = (pairwise[:, :3] > 0).all(axis=1)
    lead = leads(pairwise, 4)[all_beaten, 0]
    assert all_beaten.any() and (lead >= pairwise[all_beaten, :3].min(axis=1)).all()


@pytest.mark.parametrize("n_classes", [3, 5, 10])
def test_a_lead_changes_no_faster_than_the_values(n_classes):
    """If each decision value changes by at most 0.1, each lead does; so the winner stays while its lead is larger."""
    rng = np.random.default_rng(0)
    pairwise = rng.normal(size=(3000, n_classes * (n_classes - 1) // 2))
    moved = pairwise + rng.uniform(-0.1, 0.1, size=pairwise.shape)
    before, after = leads(pairwise, n_classes), leads(moved, n_classes)
    assert np.abs(after - before).max() <= 0.1 + 1e-12
    safe = before.max(axis=1) > 0.1
    assert safe.any() and np.array_equal(before[safe].argmax(axis=1), after[safe].argmax(axis=1))


def test_leads_of_other_classes_are_known_at_every_border():
    """Where two neighbours on the grid, also across a corner, have different labels, each knows the other's lead."""
    pairwise = np.random.default_rng(1).normal(size=(20 * 30, 6))
    drawn = regions_json(pairwise, np.array([1, 3, 5, 9]), (30, 20))
    labels = np.array(drawn["labels"])
    places = {label: set(at) for label, at, _ in drawn["others"]}
    values = {
        (label, at): value for label, found, leads in drawn["others"] for at, value in zip(found, leads, strict=True)
    }
    for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
        for r in range(20 - dr):
            for c in range(max(0, -dc), 30 - max(0, dc)):
                a, b = labels[r, c], labels[r + dr, c + dc]
                if a != b:
                    assert 30 * (r + dr) + c + dc in places[a] and 30 * r + c in places[b]
    assert max(values.values()) < 0 < np.min(drawn["values"])


def test_finer_labels_follow_a_border_of_ties():
    """On a grid four times as fine, labels near a circle inside which votes tie are right up to a hundredth."""
    drawn = regions_json(circle_of_ties(), np.arange(3), (SIZE, SIZE))
    labels = finer_labels(drawn, 4)
    axis = np.linspace(-2, 2, 4 * (SIZE - 1) + 1)
    radius = np.hypot(*np.meshgrid(axis, axis))
    assert set(labels[radius < 0.99]) == {0} and set(labels[radius > 1.01]) == {2}
    assert np.array_equal(labels[::4, ::4], drawn["labels"])
