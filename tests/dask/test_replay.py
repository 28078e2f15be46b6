"""A group that is lost in the middle of a fit repeats its calls: the run is the one without a loss, pass by pass."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.landmarks.growth import LandmarkOptions
from mercer.landmarks.over_parts import solve_over_parts
from mercer.linear.linear_solution import LinearOptions
from mercer.losses import EpsilonInsensitive, Hinge, OneClass, SquaredHinge
from mercer.parts.kernel_solver import solve_kernel_parts
from mercer.parts.layout import NO_LIMIT, Held, LocalParts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_solver import solve_parts
from mercer.problems.clock import Clock
from mercer.problems.solution import Options

cluster_parts = pytest.importorskip("mercer.dask.cluster_parts")


class Reply:
    def __init__(self, value):
        self.value = value

    def result(self, timeout):
        return self.value


class Actor:
    """A group of this process that gets its messages as bytes; it is lost before some passes."""

    def __init__(self, loaders, indices, passes, lost_before):
        self.group = cluster_parts.Group.__new__(cluster_parts.Group)
        self.group.parts = LocalParts(loaders, indices=indices)
        self.group.passes, self.group.last = passes, None
        self.lost_before = lost_before

    def run(self, first, calls, question):
        if first in self.lost_before:
            self.lost_before.discard(first)
            raise RuntimeError("Actor was lost")
        return Reply(pickle.loads(pickle.dumps(self.group.run(*pickle.loads(pickle.dumps((first, calls, question)))))))


class Losing(cluster_parts.ClusterParts):
    """Two groups, the second of which is lost before some passes."""

    def __init__(self, chunks, lost_before=frozenset()):
        self.client, self.without_workers = None, 1.0
        self.chunks, self.n, self.budget = chunks, sum(chunk.n for chunk in chunks), NO_LIMIT
        self.passes = self.first = self.made = 0
        self.traffic, self.calls = {}, []
        self.members, self.groups = [[0], list(range(1, len(chunks)))], [None, None]
        self.lost_before = set(lost_before)
        self.actors = [self._actor(k) for k in range(2)]

    def _submit(self, members, address):
        return None

    def _actor(self, k):
        self.made += 1
        members = self.members[k]
        loaders = [self.chunks[index] for index in members]
        return Actor(loaders, members, self.first, self.lost_before if k == 1 else set())


def chunks_of(n, d, real=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    y = f if real else np.where(f > 0, 1.0, -1.0)
    cuts = [0, n // 5, n // 2, n]
    return [Held(X[a:b], y[a:b]) for a, b in pairwise(cuts)]


def taken(solution):
    """The number of steps."""
    return getattr(solution, "n_iter", None) or solution.steps


def linear(loss, intercept=True):
    def solve(parts):
        return solve_parts(parts, Statement(loss, 1.0, intercept), LinearOptions(tol=1e-5), Clock())

    return solve


def passes_only(solve):
    """No rows but those of the random sample come to the caller."""

    def without(parts):
        parts.path_numbers = 0
        return solve(parts)

    return without


def landmarks(loss):
    def solve(parts):
        choice = LandmarkOptions(count=40)
        return solve_over_parts(parts, Gaussian(0.5), Statement(loss, 1.0, True), Options(), Clock(), choice)

    return solve


def exact(loss):
    def solve(parts):
        return solve_kernel_parts(parts, Gaussian(0.5), Statement(loss, 1.0, True), Options(), Clock(), 128)

    return solve


@pytest.mark.parametrize(
    ("solve", "n", "d", "real"),
    [
        pytest.param(linear(Hinge()), 600, 5, False, id="central path"),
        pytest.param(passes_only(linear(Hinge())), 600, 5, False, id="central path, rows stay"),
        pytest.param(linear(SquaredHinge()), 600, 5, False, id="newton"),
        pytest.param(linear(Hinge(), False), 200, 2100, False, id="rounds of coordinate descent"),
        pytest.param(landmarks(Hinge()), 400, 3, False, id="landmarks"),
        pytest.param(landmarks(EpsilonInsensitive(0.1)), 400, 3, True, id="landmarks, regression"),
        pytest.param(exact(Hinge()), 400, 3, False, id="exact"),
        pytest.param(exact(OneClass(0.3)), 400, 3, True, id="exact, one class"),
    ],
)
def test_a_run_with_losses_is_the_run_without(solve, n, d, real):
    """The same steps and certificate to the last bit, although a group is made again before every third pass."""
    chunks, runs = chunks_of(n, d, real), []
    for lost_before in (range(0), range(2, 10_000, 3)):
        parts = Losing(chunks, lost_before)
        # what depends on the budget of the caller and the size of its random sample is the same as in one process
        parts.budget, parts.sample_numbers = LocalParts(chunks).budget, LocalParts.sample_numbers
        runs.append(solve(parts))
        assert (parts.made > 2) == bool(lost_before)
    without, found = runs
    assert (found.status, taken(found)) == (without.status, taken(without))
    assert found.certificate == without.certificate
    # in one process sums are added in another order
    expected = solve(LocalParts(chunks))
    gap = found.certificate.gap + expected.certificate.gap
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-10, abs=gap)


def test_only_the_calls_of_the_last_problem_are_kept():
    """A second machine begins anew, and questions are not kept at all."""
    parts = Losing(chunks_of(400, 3), range(2, 10_000, 3))
    exact(Hinge())(parts)
    assert len(parts.calls) == 1  # that which ends the problem
