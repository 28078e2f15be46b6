"""The block of a working set agrees with the stored rows, and its solution changes β as it reports."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer._compiled.program import Program
from mercer._compiled.stored_rows import read_rows
from mercer.problems import dual_objective, feasible_start
from mercer.svm import _round_loops as rounds
from mercer.svm._block_newton_loops import newton_address
from mercer.svm._round_loops import (
    by_group,
    count_used,
    form_working_set,
    mirror_rows,
    place_members,
    select_working_set,
    solve_working_set,
    sort_members,
)
from mercer.svm._smo_loops import solve_members
from mercer.svm.decomposition import Active


class Block:
    """A block as a run keeps it, of rows that are those of a symmetric matrix."""

    def __init__(self, K, size, dtype=np.float64):
        self.K, self.m = K, 0
        self.place, self.members, self.new_places = (
            np.full(len(K) + 1, -1),
            np.empty(size, int),
            np.empty(2 * size, int),
        )
        self.values = np.full((size, size), np.nan, dtype)

    def take(self, chosen, known):
        """Exchange members; the rows of ``known`` members cannot be read. The null sample is the last one."""
        K = self.K.copy()
        K[known] = np.nan
        self.m, count = place_members(
            np.asarray(chosen), self.place, self.members, self.m, self.values, self.new_places
        )
        members = self.members[: self.m]
        rows = np.where(members < len(K), members, -1)
        order, column = np.empty(self.m, int), np.empty(self.m, int)
        sort_members(self.place, rows, order, column)
        for start, stop in [(0, count // 2), (count // 2, count)]:
            read_rows(K, rows, order, column, self.new_places, start, stop, self.values)
        mirror_rows(rows, self.new_places[:count], self.values)
        return members, self.values[: self.m, : self.m]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_after_exchanges(dtype):
    """After any exchange of members the block is that of its members, and only rows of new members are read."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40)).astype(dtype)
    K += K.T
    whole = np.zeros((41, 41), dtype)
    whole[:40, :40] = K
    block, before = Block(K, 20, dtype), np.empty(0, int)
    for count in [5, 20, 20, 3, 1, 12, 12, 0, 7, 20, 4]:
        chosen = rng.permutation(41)[:count]
        members, values = block.take(chosen, np.setdiff1d(before, [40]))
        assert sorted(members) == sorted(chosen)
        np.testing.assert_array_equal(values, whole[np.ix_(members, members)])
        np.testing.assert_array_equal(np.flatnonzero(block.place >= 0), np.sort(chosen))
        np.testing.assert_array_equal(block.place[members], np.arange(count))
        before = members.copy()


def test_members_that_stay_keep_their_places():
    """If at least as many members come as leave."""
    block = Block(np.eye(30), 10)
    first = block.take(np.arange(8), [])[0].copy()
    second = block.take([1, 3, 5, 6, 7, 20, 21, 22, 23], np.arange(8))[0]
    kept = np.isin(first, second)
    np.testing.assert_array_equal(second[:8][kept], first[kept])


def test_members_by_group():
    """The first group first, then the next ones, each in the order given."""
    group = np.array([1, 0, 1, 0, 0], np.int8)
    np.testing.assert_array_equal(by_group(np.array([2, 4, 0, 1]), group), [4, 1, 2, 0])
    np.testing.assert_array_equal(by_group(np.array([2, 4, 0, 1]), np.array([3, 1, 0, 2, 1], np.int8)), [2, 4, 1, 0])


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_the_gain_is_what_the_dual_gains(loss, intercept):
    """beta moves by change, within the box and its sums, and the dual by what is reported."""
    problem = instance(loss, intercept, n=40, seed=3)
    qp, K = problem.qp, problem.K
    beta = feasible_start(qp, near=np.random.default_rng(0).normal(size=qp.n_vars))
    sample = np.arange(40) if qp.sample is None else qp.sample
    F = problem.F(beta)
    members = by_group(np.random.default_rng(1).permutation(qp.n_vars)[:16], qp.group)
    before, change = beta.copy(), np.empty(16)
    block = K[np.ix_(sample[members], sample[members])]
    program = Program(sample, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
    newton, scratch, score = newton_address(block.dtype, block.dtype), np.empty((6, 16)), np.empty(16)
    _, gained, unbounded = solve_members(members, block, program, beta, F, 1e-6, 1000, newton, scratch, score, change)
    assert not unbounded
    np.testing.assert_allclose(beta[members], before[members] + change, atol=1e-15)
    assert np.all(beta >= qp.lower) and np.all(beta <= qp.upper)
    for g in range(max(1, qp.n_groups)):
        assert change[qp.group[members] == g].sum() == pytest.approx(0, abs=1e-12)
    risen = dual_objective(qp, beta, problem.F(beta)) - dual_objective(qp, before, F)
    assert gained == pytest.approx(risen, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_rounds_are_their_pieces(loss, intercept):
    """form_working_set and solve_working_set are the same as their steps, and return what the run needs next."""
    n, size = 40, 16
    problem = instance(loss, intercept, n=n, seed=3)
    beta = feasible_start(problem.qp, near=np.random.default_rng(0).normal(size=problem.qp.n_vars))
    active = Active.of(problem.qp, np.arange(n), beta, problem.F(beta))
    K = np.zeros((n + 1, n + 1))  # with the null sample
    K[:n, :n] = problem.K
    place, layout, new_places = np.full(len(active.beta), -1), np.empty((6, size), np.intp), np.empty(2 * size, np.intp)
    block, change, m, previous = np.full((size, size), np.nan), np.empty(size), 0, np.empty(0, np.int64)
    for n_new in (8, 6, 16, 4):
        scores = active.scores()
        worst = select_working_set(
            scores.up,
            scores.low,
            active.program.group,
            active.n_groups,
            scores.extremes,
            previous,
            n_new,
            size,
            active.null,
        )
        before = np.flatnonzero(place >= 0) if active.n_groups == 1 else []
        chosen, m, n_added, n_rows = form_working_set(
            scores.up, scores.low, active.program, scores.extremes, previous, n_new, size, active.null, place, layout,
            m, block, new_places,
        )  # fmt: skip
        np.testing.assert_array_equal(chosen, worst)
        members, positions = layout[rounds.MEMBERS, :m].copy(), layout[rounds.POSITIONS, :m].copy()
        assert sorted(members) == sorted(chosen) and np.all(np.diff(active.program.group[members]) >= 0)
        samples = active.program.sample[members]
        np.testing.assert_array_equal(positions, np.where(samples < n, samples, -1))
        np.testing.assert_array_equal(np.sort(new_places[:n_added]), np.flatnonzero(~np.isin(members, before)))
        new = layout[rounds.NEW, :n_rows]
        np.testing.assert_array_equal(new, new_places[:n_added][positions[new_places[:n_added]] >= 0])
        np.testing.assert_array_equal(layout[rounds.SAMPLES, :n_rows], positions[new])
        np.testing.assert_array_equal(members[layout[rounds.ORDER, :m]], np.sort(members))

        read_rows(K, positions, layout[rounds.ORDER], layout[rounds.COLUMN], new, 0, n_rows, block)
        whole, moves, then = K[np.ix_(samples, samples)], np.empty(m), active.beta.copy()
        newton = newton_address(whole.dtype, whole.dtype)
        scratch, score = np.empty((6, size)), np.empty(size)
        expected = solve_members(
            members, whole, active.program, then, active.F, 1e-6, 1000, newton, scratch, score, moves
        )  # fmt: skip
        found = solve_working_set(
            layout, m, n_added, block, new_places, active.program, active.beta, active.F, 1e-6, 1000, newton, scratch,
            score, change,
        )  # fmt: skip
        np.testing.assert_array_equal(block[:m, :m], whole)
        assert found[:3] == expected
        np.testing.assert_array_equal(active.beta, then)
        moved = (moves != 0) & (positions >= 0)
        assert found[3] == np.count_nonzero(moved)
        np.testing.assert_array_equal(layout[rounds.SAMPLES, : found[3]], positions[moved])
        np.testing.assert_array_equal(change[: found[3]], moves[moved])
        new = np.setdiff1d(chosen, previous)
        assert count_used(chosen, previous, then) == (len(new), np.count_nonzero(then[new]))
        active.F += change[: found[3]] @ K[layout[rounds.SAMPLES, : found[3]]]
        previous = chosen
