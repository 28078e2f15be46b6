"""How a kernel machine is solved: every choice that depends on sizes, kernel, precision and threads.

`plan_problem` plans one quadratic program, `plan_pairs` all pairs of classes. A `Plan` is frozen and prints as one
line, which ``verbose=1`` logs and ``model.plan_`` keeps. To force another route, pass another plan (``Options.plan``).

No other file of the kernel-machine solver chooses a route by comparing sizes with constants. `COSTLY_TERMS` and
`THREADS_FROM` stand in `mercer.gram`, which knows what a kernel value costs. When a loop stops, and how its working
sets grow, is decided beside the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from mercer._compiled.thread_pool import value_nanoseconds
from mercer.gram.operator import THREADS_FROM, Data, GramOperator, check_finite, terms_of
from mercer.kernels import Linear
from mercer.kernels.features import Vector
from mercer.losses.base import BoxQP, Loss
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options

# bytes of a float64
BYTES = 8

# ---- presolve --------------------------------------------------------------------------------------------------------

# fewest samples, and samples per feature, from which a linear kernel is solved over its features: SMO needs many rounds
FEATURES_FROM, FEATURES_FROM_EACH = 400, 4
# with more features the factorisations of the interior-point method take longer than SMO
FEATURES_UP_TO = 500
# fewest samples among which equal ones are searched for: with fewer the search costs more than it saves
MERGE_FROM = 4096
# equal samples are merged if at most this share is distinct
MERGED_SHARE = 0.97
# most samples at kinks whose matrix is factored when β is recovered from w over features
FACE_UP_TO = 1500

# ---- storage and precision -------------------------------------------------------------------------------------------

# up to this many variables the matrix is float64: float32 and its verification take as long, and need more loops
DOUBLE_UP_TO = 500
# up to this many variables SMO runs on the dense matrix; beyond, working sets need fewer kernel values
DENSE_UP_TO = 1536
# most variables of a stalled run that continues on the dense float64 matrix, with the interior-point method
RESCUE_UP_TO = 2048
# most variables for solver="coordinate" and "smo": they keep the dense matrix, 200 MB
STEPWISE_UP_TO = 5_000
# most variables for solver="qp": it factors a dense matrix in every step
QP_UP_TO = 5000
# below this tol the rounding of float32 rows costs more rounds than it saves
SINGLE_FROM_TOL = 2e-6
# above this tol float32 scores are accurate enough, too
SINGLE_SCORES_FROM_TOL = 1e-4
# largest kernel value for float32 rows: their sums must not overflow
SINGLE_UP_TO_VALUE = 1e30
# largest range of the targets, relative to tol, for float32 rows: with a larger one runs stall above tol
SINGLE_UP_TO_SPREAD = 1e6
# nanoseconds for all kernel values from which threads spin between the loops of a round: below, one thread is as quick
SPIN_FROM = 4e6
# dense SMO: after this many pair steps per variable the settled variables are shrunk once, if at most this share
# remains: the rows of a smaller matrix are shorter and stay in the cache
SETTLED_AFTER, MOST_UNSETTLED = 3.0, 0.7
# separability: up to this many dimensions (or samples of a kernel without explicit features) and entries of the feature
# matrix, the finite algorithm takes only seconds
FINITE_UP_TO, FINITE_NUMBERS_UP_TO = 300, 2_000_000

# runs on float32 values aim at this share of tol: the rest is left for their rounding
SHARE_OF_TOL = 0.9

# ---- working sets ----------------------------------------------------------------------------------------------------

# members of a working set: most, fewest, variables per member. A larger set computes rows that are never needed
LARGEST_SET, SMALLEST_SET, VARIABLES_PER_MEMBER = 1024, 64, 6
# members of the first working set: at beta = 0 all scores are alike and do not tell which samples matter. The limit
# doubles each round
FIRST_MEMBERS = 64
# most members of a working set in a search, where the matrix is stored and rows cost nothing; see CACHE_CONFLICT
CHAIN_SET_UP_TO = 1528
# smallest working set: a pair for each of two groups; for more groups, a pair for each
FEWEST_MEMBERS = 4
# entries of a column of a block compete for the same cache sets if the row length is a multiple of this
CACHE_CONFLICT = 128
# from PART_FROM samples on, a run starts on a part of them: one in PART_SHARE, but at least PART_AT_LEAST
PART_FROM, PART_AT_LEAST, PART_SHARE = 8192, 2048, 16
# active samples from which the row of a new member is computed only when it moves: half of the new members never do
ROWS_WAIT_FROM = 6144
# the same for costly kernel values, per member of the working set
COSTLY_ROWS_WAIT_FROM = 3
# costly kernel values: no sample becomes inactive if this share of all rows fits the budget
KEPT_SHARE = 0.2

# ---- pairs of classes ------------------------------------------------------------------------------------------------

# up to this many samples of all classes, one float64 matrix serves all pairs
ONE_MATRIX_UP_TO = 2048
# up to this many samples of two classes, their float32 matrix is joined from class blocks that pairs share
CLASS_BLOCKS_UP_TO = 2560
# the same for costly kernel values with a lazy cross block
LAZY_BLOCKS_UP_TO = 6144
# the cross blocks are lazy if the matrices of all pairs would take this many nanoseconds: below, there is little to
# save, and the loops for lazy blocks take seconds to compile
LAZY_BLOCKS_FROM = 2e7
# samples of two classes from which pairs are solved in several threads: smaller pairs wait for the interpreter lock
SIDE_BY_SIDE_FROM = 600
# and only if there are at least this many pairs for each thread
PAIRS_PER_THREAD = 2
# pairs in one compiled call, and most variables of pairs whose programs are built together
PAIRS_PER_TASK, VARIABLES_AT_ONCE = 8, 1 << 18

Precision = Literal["float32", "float64"]
# the dense Gram matrix, or kernel rows within a budget
Storage = Literal["matrix", "rows"]
# no presolve, over the features of a linear kernel, or merging equal samples
Presolve = Literal["none", "features", "merge"]
# one matrix for all pairs, matrices joined from class blocks, lazy cross blocks, or a run for each pair
Pairs = Literal["one matrix", "class blocks", "lazy class blocks", "one by one", "side by side"]


@dataclass(frozen=True)
class Plan:
    """How one problem, or all pairs of classes, is solved.

    Attributes
    ----------
    n_samples : samples of the problem, or of the two largest classes.
    presolve : "features" solves a linear kernel over its features, "merge" merges equal samples.
    storage : "matrix" stores the dense Gram matrix, "rows" the rows of samples that move, within the memory budget.
    precision : dtype of the stored values. The certificate is always computed in float64.
    working_set : members of a working set; 0 for all variables at once.
    n_threads : threads for kernel values and products.
    spin : whether the threads spin between compiled loops, so that even loops of less than a millisecond are shared.
    shrinking : whether samples that seem settled become inactive.
    first_samples : samples that are active at the start; 0 for all.
    keeps_active : whether samples stay active as long as their rows fit the budget.
    rows_wait_from : active samples from which the row of a new member is computed only when it moves.
    settled_after : pair steps per variable, on all variables at once, after which settled variables are removed once.
    most_unsettled : the largest share of variables that may remain then; if more would, all remain.
    pairs : how the problems of several classes share kernel values; None for one problem.
    """

    n_samples: int = 0
    presolve: Presolve = "none"
    storage: Storage = "rows"
    precision: Precision = "float32"
    working_set: int = 0
    n_threads: int = 1
    spin: bool = False
    shrinking: bool = False
    first_samples: int = 0
    keeps_active: bool = True
    rows_wait_from: int = ROWS_WAIT_FROM
    settled_after: float = SETTLED_AFTER
    most_unsettled: float = MOST_UNSETTLED
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64"):
            raise ValueError(f"precision={self.precision!r} of a Plan is not 'float32' or 'float64'")
        if self.storage not in ("matrix", "rows"):
            raise ValueError(f"storage={self.storage!r} of a Plan is not 'matrix' or 'rows'")
        if self.pairs is None and self.presolve != "features":
            if self.storage == "rows" and self.working_set < 1:
                raise ValueError("a Plan with storage='rows' needs a working_set of at least 1")
            if self.storage == "matrix" and (self.shrinking or self.first_samples):
                raise ValueError("shrinking and first_samples of a Plan need storage='rows'")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the stored values."""
        return np.dtype(self.precision)

    def __str__(self) -> str:
        spinning = "spinning " if self.spin and self.n_threads > 1 else ""
        threads = f"{self.n_threads} {spinning}thread" + "s" * (self.n_threads != 1)
        if self.presolve == "features":
            return f"{self.n_samples:,} samples, over the features of the linear kernel, {threads}"
        words = [f"{self.n_samples:,} samples"]
        if self.pairs is not None:
            words = [f"pairs of up to {self.n_samples:,} samples {_PAIRS_IN_WORDS[self.pairs]}"]
            if self.pairs in ("one matrix", "class blocks", "lazy class blocks"):
                return ", ".join([*words, self.precision, threads])
        if self.presolve == "merge":
            words.append("equal ones merged")
        if self.first_samples:
            words.append(f"starting with {self.first_samples:,}")
        stored = "dense matrix" if self.storage == "matrix" else "rows"
        words.append(f"{stored} in {self.precision}")
        words.append(f"working sets of {self.working_set:,}" if self.working_set else "all variables at once")
        if self.shrinking:
            words.append("shrinking")
        return ", ".join([*words, threads])


_PAIRS_IN_WORDS = {
    "one matrix": "on one matrix",
    "class blocks": "on matrices of shared class blocks",
    "lazy class blocks": "on class blocks, values between classes on demand",
    "one by one": "one by one",
    "side by side": "side by side",
}


# ---- one problem -----------------------------------------------------------------------------------------------------


def plan_problem(data: Data, problem: DualProblem, options: Options, left: float = np.inf, begun: bool = False) -> Plan:
    """The plan of one quadratic program; ``left``: seconds until its time limit, ``begun``: whether it has a start."""
    if options.plan is not None and options.plan.pairs is None:
        return options.plan
    if not begun and over_features(data, problem.qp.n_vars, problem.qp, options):
        return Plan(data.n, "features", n_threads=options.n_threads, precision="float64")
    plan = plan_descent(data, problem.qp, options, left, begun)
    return replace(plan, presolve="merge") if _may_merge(data, problem) else plan


def over_features(data: Data, n: int, qp: BoxQP, options: Options) -> bool:
    """Whether solving n of these samples, or copies of them, over their features is possible and quicker than SMO."""
    return can_use_features(data, qp, options) and n > max(
        FEATURES_FROM, FEATURES_FROM_EACH * data.samples.shape[1] - 1
    )


def can_use_features(data: Data, qp: BoxQP, options: Options) -> bool:
    """Whether the problem can be solved over the features of a linear kernel.

    There must not be too many features; the program must have zero sums and bounded boxes. If samples have copies, each
    with its threshold, their loss must have one kink. ``max_iter`` counts pair steps, so a limit excludes this route.
    """
    if not isinstance(data.kernel, Linear) or options.max_iter >= 0:
        return False
    if qp.sums.any() or qp.has_open_box:
        return False
    if qp.sample is not None or qp.n_groups > 1:
        # each copy gets a row of its own
        copied = BYTES * qp.n_vars * (data.samples.shape[1] + qp.n_groups)
        if qp.l1.any() or qp.ridge.any() or copied > options.budget:
            return False
    return bool(data.samples.shape[1] <= FEATURES_UP_TO)


def _may_merge(data: Data, problem: DualProblem) -> bool:
    """Whether to search for equal samples."""
    if data.n < MERGE_FROM or data.kernel.domain != "vectors":
        return False
    if not problem.loss.additive or problem.qp.sample is not None:
        return False
    return isinstance(data.samples, np.ndarray) or sp.issparse(data.samples)


def plan_descent(data: Data, qp: BoxQP, options: Options, left: float, begun: bool) -> Plan:
    """The plan of SMO on kernel values, without presolve."""
    return plan_run(data, qp, options, _precision(data, qp, options), left, begun)


def plan_run(
    data: Data,
    qp: BoxQP,
    options: Options,
    precision: Precision,
    left: float,
    begun: bool,
    dense_up_to: int = DENSE_UP_TO,
) -> Plan:
    """The plan of a run in this precision; up to ``dense_up_to`` variables on the dense matrix."""
    n, dtype = data.n, np.dtype(precision)
    known = data.matrix_dtype is not None and data.matrix_dtype == dtype
    fits = n <= dense_up_to and n**2 * dtype.itemsize <= options.budget
    if known or (fits and data.in_time(options.n_threads, left)):
        return plan_matrix(data, qp, options, precision, qp.n_vars <= dense_up_to)
    return plan_rows(data, qp, options, precision, begun)


def plan_matrix(data: Data, qp: BoxQP, options: Options, precision: Precision, at_once: bool = True) -> Plan:
    """The plan of a run on the dense matrix, on all variables at once or on working sets."""
    size = 0 if at_once else working_set_size(qp, options)
    return Plan(data.n, "none", "matrix", precision, size, options.n_threads if data.n**2 >= THREADS_FROM else 1)


def plan_rows(data: Data, qp: BoxQP, options: Options, precision: Precision, begun: bool = False) -> Plan:
    """The plan of a run on working sets, with kernel rows within the memory budget."""
    n, itemsize = data.n, np.dtype(precision).itemsize
    n_threads, spin = _threads(data, options)
    costly = GramOperator(data.kernel, data.features(precision)).costly
    # the rows of one working set must fit in the budget
    budget = max(options.budget, options.costly_budget if costly else 0)
    size = working_set_size(qp, options)
    size = int(max(min(max(FEWEST_MEMBERS, 2 * qp.n_groups), size), min(size, budget // max(1, n * itemsize))))
    kept_rows = min(n, max(min(size, n) * n, min(n * n, budget // itemsize)) // max(1, n))
    keeps_active = costly and kept_rows >= KEPT_SHARE * n
    # if all rows fit the budget, shrinking a few thousand samples saves less than activating them again costs
    shrinking = options.shrinking and not qp.has_open_box and (n >= PART_FROM or kept_rows < n)
    starts_on_part = shrinking and n >= PART_FROM and not begun and not keeps_active
    return Plan(
        n,
        storage="rows",
        precision=precision,
        working_set=size,
        n_threads=n_threads,
        spin=spin,
        shrinking=shrinking,
        first_samples=max(PART_AT_LEAST, n // PART_SHARE) if starts_on_part else 0,
        keeps_active=keeps_active,
        rows_wait_from=COSTLY_ROWS_WAIT_FROM * size if costly else ROWS_WAIT_FROM,
    )


def working_set_size(qp: BoxQP, options: Options) -> int:
    """Members of a working set, as far as memory for their rows allows."""
    size = options.working_set or max(SMALLEST_SET, min(LARGEST_SET, qp.n_vars // VARIABLES_PER_MEMBER))
    if not options.working_set and size % CACHE_CONFLICT == 0:
        size -= CACHE_CONFLICT // 16
    return min(max(FEWEST_MEMBERS, 2 * qp.n_groups, size), qp.n_vars + (qp.n_groups == 0))


def in_double(plan: Plan, data: Data, qp: BoxQP, options: Options, left: float, rescue: bool) -> Plan:
    """The plan for continuing a run in float64; ``rescue`` if it has stalled."""
    if options.plan is None or options.plan.pairs is not None:
        return plan_run(data, qp, options, "float64", left, True, RESCUE_UP_TO if rescue else DENSE_UP_TO)
    if rescue and qp.n_vars <= RESCUE_UP_TO:
        return replace(plan, precision="float64", storage="matrix", working_set=0)
    return replace(plan, precision="float64")


def _precision(data: Data, qp: BoxQP, options: Options) -> Precision:
    """The precision of stored values: float32 if refinement can correct its rounding and float64 is slower."""
    if options.precision != "auto":
        return "float32" if options.precision == "float32" else "float64"
    if qp.has_open_box:
        return "float64"
    if data.matrix_dtype is not None:
        return "float32" if data.matrix_dtype == np.dtype(np.float32) else "float64"
    if qp.n_vars <= DOUBLE_UP_TO or options.tol < SINGLE_FROM_TOL:
        return "float64"
    if np.ptp(qp.linear) > SINGLE_UP_TO_SPREAD * options.tol:
        return "float64"
    diagonal = data.kernel.diagonal(data.features(np.float32))
    check_finite(diagonal)
    return "float32" if np.abs(diagonal).max() < SINGLE_UP_TO_VALUE else "float64"


def _threads(data: Data, options: Options) -> tuple[int, bool]:
    """(number of threads for rows, whether they spin); one if sharing a round's loops takes longer than it saves."""
    if options.n_threads == 1 or data.matrix_dtype is not None:
        return options.n_threads, False
    features = data.features(np.float32)
    if data.kernel.formula(features) is None:
        return options.n_threads, False
    if value_nanoseconds(data.n**2, terms_of(data.kernel, features)) < SPIN_FROM:
        return 1, False
    return options.n_threads, True


# ---- pairs of classes ------------------------------------------------------------------------------------------------


def plan_pairs(
    data: Data, members: Sequence[Vector], loss: Loss, options: Options, left: float, plain: bool, features: bool
) -> Plan:
    """The plan of all pairs of these classes.

    ``plain``: each pair is one run of the exact solver from β = 0 with an intercept. ``features``: the pairs are solved
    over the features of a linear kernel.
    """
    if options.plan is not None and options.plan.pairs is not None:
        return options.plan
    sizes = sorted((len(index) for index in members), reverse=True)
    n, largest, n_threads = sum(sizes), sizes[0] + sizes[1], options.n_threads
    plain = plain and len(members) > 2 and sizes[-1] > 0 and loss.one_by_one and options.max_iter < 0
    n_pairs = len(members) * (len(members) - 1) // 2
    alone = n_threads == 1 or n_pairs < PAIRS_PER_THREAD * n_threads or largest < SIDE_BY_SIDE_FROM
    apart = Plan(largest, pairs="one by one" if alone else "side by side", n_threads=n_threads)
    small = n <= ONE_MATRIX_UP_TO and BYTES * n**2 <= options.budget and largest <= DOUBLE_UP_TO
    if plain and small and options.precision != "float32" and data.in_time(n_threads, left):
        several = n**2 >= THREADS_FROM or n_pairs > PAIRS_PER_TASK
        return replace(
            apart, pairs="one matrix", storage="matrix", precision="float64", n_threads=n_threads if several else 1
        )
    if features or len(members) == 2:
        return apart
    single = options.precision != "float64" and options.tol >= SINGLE_FROM_TOL and largest > DOUBLE_UP_TO
    precision: Precision = "float32" if single or options.precision == "float32" else "float64"
    apart = replace(apart, precision=precision)
    lazy = plain and largest > CLASS_BLOCKS_UP_TO and _values_are_costly(data, options)
    up_to = (LAZY_BLOCKS_UP_TO if lazy else CLASS_BLOCKS_UP_TO) if single else DENSE_UP_TO
    own = sum(size**2 for size in sizes)
    fits = largest <= up_to and own * np.dtype(precision).itemsize <= options.budget
    if not fits or data.kernel.domain != "vectors" or not data.in_time(n_threads, left, own / data.n**2):
        return apart
    shared = replace(apart, pairs="class blocks", storage="matrix")
    if not plain or precision != "float32" or options.tol <= SINGLE_SCORES_FROM_TOL:
        return replace(apart, storage="matrix")
    return replace(shared, pairs="lazy class blocks") if lazy or _lazy_pays(data, sizes) else shared


def _values_are_costly(data: Data, options: Options) -> bool:
    """Whether float32 values suffice, the kernel has a compiled form, and its values take long to compute."""
    if options.precision == "float64" or options.tol <= SINGLE_SCORES_FROM_TOL or data.kernel.domain != "vectors":
        return False
    features = data.features(np.float32)
    return GramOperator(data.kernel, features).costly and data.kernel.formula(features) is not None


def _lazy_pays(data: Data, sizes: Sequence[int]) -> bool:
    """Whether the kernel has a compiled form and the matrices of all pairs would take long."""
    features = data.features(np.float32)
    if data.kernel.formula(features) is None:
        return False
    size = np.array(sizes)
    values = 0.5 * float((np.triu(size[:, None] + size, 1) ** 2).sum())
    return value_nanoseconds(values, terms_of(data.kernel, features)) >= LAZY_BLOCKS_FROM
