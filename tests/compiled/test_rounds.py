"""The block of a working set is what the stored rows say, and its solution moves as it reports."""

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance

from mercer._compiled.program import Program
from mercer._compiled.stored_rows import read_rows
from mercer.problems import dual_objective, feasible_start
from mercer.svm import _round_loops as rounds
from mercer.svm._newton_loops import newton_address
from mercer.svm._round_loops import by_group, choose, form_set, line_up, reflect, seat, solve_set
from mercer.svm._smo_loops import solve_members
from mercer.svm.active import Active


class Block:
    """A block as a run keeps it, of rows that are those of a symmetric matrix."""

    def __init__(self, K, size, dtype=np.float64):
        self.K, self.m = K, 0
        self.place, self.members, self.fresh = np.full(len(K) + 1, -1), np.empty(size, int), np.empty(2 * size, int)
        self.values = np.full((size, size), np.nan, dtype)

    def take(self, chosen, known):
        """Exchange members; rows of those known before may have been given up. The null sample is the last one."""
        K = self.K.copy()
        K[known] = np.nan
        self.m, count = seat(np.asarray(chosen), self.place, self.members, self.m, self.values, self.fresh)
        members = self.members[: self.m]
        rows = np.where(members < len(K), members, -1)
        order, column = np.empty(self.m, int), np.empty(self.m, int)
        line_up(self.place, rows, order, column)
        for start, stop in [(0, count // 2), (count // 2, count)]:
            read_rows(K, rows, order, column, self.fresh, start, stop, self.values)
        reflect(rows, self.fresh[:count], self.values)
        return members, self.values[: self.m, : self.m]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_after_exchanges(dtype):
    """Whoever comes and goes, the block is that of its members, and only rows of newcomers are read."""
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


def test_those_who_stay_keep_their_places():
    """As long as no fewer come than leave."""
    block = Block(np.eye(30), 10)
    first = block.take(np.arange(8), [])[0].copy()
    second = block.take([1, 3, 5, 6, 7, 20, 21, 22, 23], np.arange(8))[0]
    kept = np.isin(first, second)
    np.testing.assert_array_equal(second[:8][kept], first[kept])


def test_members_by_group():
    """The first group first, each in the order given."""
    group = np.array([1, 0, 1, 0, 0], np.int8)
    np.testing.assert_array_equal(by_group(np.array([2, 4, 0, 1]), group), [4, 1, 2, 0])


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
    newton, room, score = newton_address(block.dtype, block.dtype), np.empty((6, 16)), np.empty(16)
    _, gained, unbounded = solve_members(members, block, program, beta, F, 1e-6, 1000, newton, room, score, change)
    assert not unbounded
    np.testing.assert_allclose(beta[members], before[members] + change, atol=1e-15)
    assert np.all(beta >= qp.lower) and np.all(beta <= qp.upper)
    for g in range(max(1, qp.n_groups)):
        assert change[qp.group[members] == g].sum() == pytest.approx(0, abs=1e-12)
    risen = dual_objective(qp, beta, problem.F(beta)) - dual_objective(qp, before, F)
    assert gained == pytest.approx(risen, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_rounds_are_their_pieces(loss, intercept):
    """form_set chooses, seats and lines up, solve_set reflects and solves; both say what a run asks next."""
    n, size = 40, 16
    problem = instance(loss, intercept, n=n, seed=3)
    beta = feasible_start(problem.qp, near=np.random.default_rng(0).normal(size=problem.qp.n_vars))
    active = Active.of(problem.qp, np.arange(n), beta, problem.F(beta))
    K = np.zeros((n + 1, n + 1))  # with the null sample
    K[:n, :n] = problem.K
    place, seats, fresh = np.full(len(active.beta), -1), np.empty((6, size), np.intp), np.empty(2 * size, np.intp)
    block, change, m, previous = np.full((size, size), np.nan), np.empty(size), 0, np.empty(0, np.int64)
    for n_new in (8, 6, 16, 4):
        look = active.look()
        worst = choose(
            look.up, look.low, active.program.group, active.n_groups, look.extremes, previous, n_new, size, active.null
        )
        before = np.flatnonzero(place >= 0) if active.n_groups == 1 else []
        chosen, m, newcomers, n_wanted = form_set(
            look.up, look.low, active.program, look.extremes, previous, n_new, size, active.null, place, seats, m,
            block, fresh,
        )  # fmt: skip
        np.testing.assert_array_equal(chosen, worst)
        members, positions = seats[rounds.MEMBERS, :m].copy(), seats[rounds.POSITIONS, :m].copy()
        assert sorted(members) == sorted(chosen) and np.all(np.diff(active.program.group[members]) >= 0)
        samples = active.program.sample[members]
        np.testing.assert_array_equal(positions, np.where(samples < n, samples, -1))
        np.testing.assert_array_equal(np.sort(fresh[:newcomers]), np.flatnonzero(~np.isin(members, before)))
        wanted = seats[rounds.WANTED, :n_wanted]
        np.testing.assert_array_equal(wanted, fresh[:newcomers][positions[fresh[:newcomers]] >= 0])
        np.testing.assert_array_equal(seats[rounds.ASKED, :n_wanted], positions[wanted])
        np.testing.assert_array_equal(members[seats[rounds.ORDER, :m]], np.sort(members))

        read_rows(K, positions, seats[rounds.ORDER], seats[rounds.COLUMN], wanted, 0, n_wanted, block)
        whole, moves, then = K[np.ix_(samples, samples)], np.empty(m), active.beta.copy()
        newton = newton_address(whole.dtype, whole.dtype)
        room, score = np.empty((6, size)), np.empty(size)
        expected = solve_members(
            members, whole, active.program, then, active.F, 1e-6, 1000, newton, room, score, moves
        )  # fmt: skip
        found = solve_set(
            seats, m, newcomers, block, fresh, active.program, active.beta, active.F, 1e-6, 1000, newton, room, score,
            chosen, previous, change,
        )  # fmt: skip
        np.testing.assert_array_equal(block[:m, :m], whole)
        assert found[:3] == expected
        np.testing.assert_array_equal(active.beta, then)
        moved = (moves != 0) & (positions >= 0)
        assert found[3] == np.count_nonzero(moved)
        np.testing.assert_array_equal(seats[rounds.ASKED, : found[3]], positions[moved])
        np.testing.assert_array_equal(change[: found[3]], moves[moved])
        new = np.setdiff1d(chosen, previous)
        assert found[4:] == (len(new), np.count_nonzero(then[new]))
        active.F += change[: found[3]] @ K[seats[rounds.ASKED, : found[3]]]
        previous = chosen
