"""The driver: rounds of working sets until no variable violates the optimality conditions by more than tol.

    min  1/2 b'Kb - linear'b + sum l1|b| + 1/2 sum ridge b^2     s.t.  lower <= b <= upper,  sum over each group fixed

Each round chooses a working set, reads its block of K, solves it by SMO and updates F = Kb (Joachims, "Making
large-scale SVM learning practical", 1999). K comes from a *row source*, whose type decides which loops are compiled: a
stored matrix, or two classes whose values are computed on demand (`_lazy_pair_loops.LazyPair`). All rounds are one
compiled call: a round takes less time than the calls from Python that it would need, and threads that solve several
problems never wait for the interpreter. `mercer.svm.decomposition` takes the same rounds one by one, where Python
computes rows in between.
"""

from typing import Any, NamedTuple

import numpy as np

from mercer._compiled.compile import compiled
from mercer._compiled.stored_rows import read_rows
from mercer._compiled.tiles import add_rows_product
from mercer.svm._block_newton_loops import NEEDS_NEWTON
from mercer.svm._lazy_pair_loops import add_lazy, read_lazy
from mercer.svm._round_loops import (
    COLUMN,
    MEMBERS,
    ORDER,
    POSITIONS,
    SAMPLES,
    STEPS_PER_MEMBER,
    form_working_set,
    score_and_extremes,
    solve_working_set,
)

# The values differ from those of `Decomposition`, where kernel rows are costly (decision 029).
# a block is solved to this share of the violation, or of tol if that is more
DRIVER_BLOCK_TOL, LAST_TOL = 0.06, 0.8
# new members of a working set: one per this many variables, but at least DRIVER_FEWEST_NEW
VARIABLES_PER_NEW, DRIVER_FEWEST_NEW = 32, 32
# or one per this many free variables, if that is more
FREE_PER_NEW = 2
# a run is stuck after this many rounds without a violation below this share of the smallest one so far
DRIVER_PATIENCE, IMPROVED = 40, 0.95
# how a call ended: as NEEDS_NEWTON, or
CONVERGED, UNFINISHED, STUCK = range(3)


class Space(NamedTuple):
    """The working set of a run and its scratch space, for n variables and sets of at most ``size`` members.

    Attributes
    ----------
    n_members : an array of one number, the members of the last set.
    progress : the smallest violation so far, and the rounds since it improved.
    place : the place of each variable in the block; -1 for none.
    layout, new_places : see `form_working_set`.
    previous : n + size numbers.
    block, score : the matrix of the set, and a vector with its dtype.
    scratch, change : six rows and one row of size numbers.
    up, low, extremes : see `score_and_extremes`.
    """

    n_members: Any
    progress: Any
    place: Any
    layout: Any
    new_places: Any
    previous: Any
    block: Any
    score: Any
    scratch: Any
    change: Any
    up: Any
    low: Any
    extremes: Any


def space_for(n: int, size: int, n_groups: int, memory: Any) -> Space:
    """The space for n variables; the block is in ``memory``, which has at least size squared entries."""
    layout, scratch = np.empty((6, size), np.int64), np.empty((7, size))
    up, low = np.empty((2, n))
    return Space(
        np.zeros(1, np.int64), np.array([np.inf, 0.0]), np.full(n, -1), layout, np.empty(2 * size, np.int64),
        np.empty(n + size, np.int64), memory[: size * size].reshape(size, size), np.empty(size, memory.dtype),
        scratch[:6], scratch[6], up, low, np.empty((n_groups, 2)),
    )  # fmt: skip


@compiled()
def _list_previous(program, beta, members, previous):
    """Fill ``previous`` with the candidates to stay, the free variables and then the last members; the number free."""
    lower, upper, l1, n_free = program.lower, program.upper, program.l1, 0
    for v in range(beta.shape[0]):
        previous[n_free] = v
        n_free += (lower[v] < beta[v]) & (beta[v] < upper[v]) & ((beta[v] != 0.0) | (l1[v] == 0.0))
    for t in range(members.shape[0]):
        previous[n_free + t] = members[t]
    return n_free


@compiled(compact=True)
def drive(K, ranges, lazy, program, null, beta, F, tol, newton, max_rounds, space):
    """Solve a program from a feasible beta, in at most ``max_rounds`` rounds: (how it ended, rounds, steps).

    Give K (a stored matrix) or ``lazy`` (a `LazyPair`), and None for the other: numba compiles only the branch of the
    one given. F is kept at the columns of K in ``ranges``, (start, stop). ``null`` is the variable of the null sample,
    the last one, or -1. ``newton`` is the address of Newton's step, or 0: see `solve_block`. Another call continues the
    run. Edits beta, F = K beta and space.
    """
    n, size = beta.shape[0], space.block.shape[0]
    layout, new_places, previous, block = space.layout, space.new_places, space.previous, space.block
    up, low, extremes, change = space.up, space.low, space.extremes, space.change
    progress, rounds, steps, ended, too_many = space.progress, 0, 0, UNFINISHED, False
    while True:
        violation = score_and_extremes(program, beta, F, up, low, extremes)
        if not violation > tol:
            ended = CONVERGED if violation == violation else STUCK
            break
        progress[1] = 0.0 if violation < IMPROVED * progress[0] else progress[1] + 1.0
        progress[0] = min(progress[0], violation)
        if progress[1] > DRIVER_PATIENCE or violation == np.inf or too_many:
            ended = STUCK
            break
        if rounds == max_rounds:
            break
        rounds += 1
        m = space.n_members[0]
        n_free = _list_previous(program, beta, layout[MEMBERS, :m], previous)
        n_new = min(max(DRIVER_FEWEST_NEW, n // VARIABLES_PER_NEW, n_free // FREE_PER_NEW), max(2, size // 2))
        _, m, n_added, _ = form_working_set(
            up, low, program, extremes, previous[: n_free + m], n_new, min(size, n_free + n_new), null, space.place,
            layout, m, block, new_places,
        )  # fmt: skip
        space.n_members[0] = m
        if K is not None:  # numba drops the branches of a source that is None
            read_rows(K, layout[POSITIONS, :m], layout[ORDER], layout[COLUMN], new_places, np.int64(0), n_added, block)
        if lazy is not None:
            read_lazy(lazy, layout[MEMBERS, :m], new_places[:n_added], block)
        taken, _, unbounded, n_moved = solve_working_set(
            layout, m, n_added, block, new_places, program, beta, F, max(LAST_TOL * tol, DRIVER_BLOCK_TOL * violation),
            STEPS_PER_MEMBER * m, newton, space.scratch, space.score, change,
        )  # fmt: skip
        if taken == NEEDS_NEWTON:
            ended = NEEDS_NEWTON
            break
        steps += taken
        if unbounded:
            ended = STUCK
            break
        moved = layout[SAMPLES, :n_moved]
        if K is not None:
            for r in range(ranges.shape[0]):
                add_rows_product(K, moved, change[:n_moved], ranges[r, 0], ranges[r, 1], F)
        if lazy is not None:
            too_many = not add_lazy(lazy, moved, change[:n_moved], F)
    return ended, rounds, steps
