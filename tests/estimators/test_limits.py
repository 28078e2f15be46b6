"""A fit always returns: limits, Ctrl-C and callbacks leave a usable, certified model and a warning with numbers."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, PegasosClassifier, Perceptron
from mercer._compiled.blas import one_blas_thread
from mercer.kernels import Polynomial
from mercer.losses import EpsilonInsensitive
from mercer.problems.clock import SECOND_PRESS, Clock
from mercer.problems.solution import Options, Status
from mercer.svm.dense import MOST_INTERIOR_STEPS, DenseRun
from mercer.svm.interior_qp import interior_point

ESTIMATORS = [SVC(C=1e4), NuSVC(nu=0.2), SVR(C=1e4), NuSVR(C=1e4), OneClassSVM(nu=0.3)]
NUMBERS = (
    r"The model is (within \d\.\de[+-]\d\d of the optimum \(relative gap|not solved \(relative gap \d\.\de[+-]\d\d); "
    r"primal -?\d\S*, dual -?\d\S*\), KKT violation "
    r"\d\.\de[+-]\d\d, infeasibility (0|\d\.\de[+-]\d\d); tol is \S+\."
)
SCALE = "Consider pre-processing your data with StandardScaler or MinMaxScaler."


def noise(n=3000, d=5, seed=0):
    """Labels that depend on nothing: a problem that takes long."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


def assert_usable(model, X):
    """It predicts, and its certificate bounds the distance to the optimum."""
    assert np.isfinite(model.predict(X[:10])).all()
    assert model.certificate_.valid
    assert 0.0 <= model.certificate_.gap < np.inf
    assert model.fit_status_ == 1


class TestLimits:
    @pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=named)  # the fifth is done before its time
    def test_time_limit(self, estimator):
        """A time limit of 0.05 s ends a fit of minutes. How exactly it is kept is tested in ``test_time_limit.py``."""
        X, y = noise()
        clone(estimator).fit(X[:50], y[:50])  # compiles, if need be
        estimator = clone(estimator).set_params(time_limit=0.05, tol=1e-11)
        with pytest.warns(ConvergenceWarning) as found:
            estimator.fit(X, y)
        message = str(found[0].message)
        assert re.fullmatch(re.escape(f"Solver terminated early (time_limit=0.05 s).  {SCALE} ") + NUMBERS, message)
        assert found[0].filename == __file__
        assert_usable(estimator, X)

    @pytest.mark.parametrize("n", [100, 3000, 20000])
    def test_no_time_at_all(self, n):
        """time_limit=0 takes no step, and returns a model that predicts and a certificate that says how bad it is."""
        X, y = noise(n)
        with pytest.warns(ConvergenceWarning, match=r"time_limit=0.0 s"):
            model = SVC(C=1e4, time_limit=0.0, tol=1e-9).fit(X, y)
        assert model.n_iter_ == [0] and model.kernel_evaluations_ == 0
        assert_usable(model, X)

    @pytest.mark.parametrize("n", [300, 3000])
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
    def test_max_iter(self, estimator, n):
        """max_iter counts steps, for small problems and large ones."""
        X, y = noise(n)
        with pytest.warns(ConvergenceWarning) as found:
            model = clone(estimator).set_params(max_iter=7).fit(X, y)
        assert np.all(model.n_iter_ == 7)
        message = str(found[0].message)
        assert re.fullmatch(re.escape(f"Solver terminated early (max_iter=7).  {SCALE} ") + NUMBERS, message)
        assert_usable(model, X)

    @pytest.mark.parametrize("max_iter", [-1, 20_000, 60_000])
    def test_all_kinds_of_steps_count(self, max_iter):
        """n_iter_ is the sum of pair steps (with Newton's steps) and interior-point steps, at most max_iter."""
        counted = {"pair": 0, "interior": 0}

        class Counted(DenseRun):
            def _pair_steps(self, *arguments):
                taken, unbounded = super()._pair_steps(*arguments)
                counted["pair"] += taken
                return taken, unbounded

            def _interior(self, b):
                most = MOST_INTERIOR_STEPS if max_iter < 0 else min(MOST_INTERIOR_STEPS, max_iter - self.steps)
                with one_blas_thread():
                    counted["interior"] += interior_point(self.K, self.qp, max_iter=most).n_iter
                super()._interior(b)

        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 3)) * [100.0, 1.0, 0.01]
        y = X @ [0.01, 1.0, 100.0] + 0.1 * rng.normal(size=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SVR(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=1e5, max_iter=max_iter).fit(X, y)
        qp = EpsilonInsensitive(model.epsilon).box_qp(y, np.full(100, model.C), True)
        run = Counted(Polynomial(2, 1.0, 1.0)(X), qp, np.zeros(100), Options(max_iter=max_iter), Clock())
        run.run(model.tol)
        assert run.steps == sum(counted.values())
        # without a limit the run stalls, and is continued once
        assert model.n_iter_ == run.steps if max_iter > 0 else model.n_iter_ > run.steps
        assert max_iter < 0 or model.n_iter_ <= max_iter
        assert (model.n_iter_ == max_iter) == (model.fit_status_ == 1 and max_iter > 0)

    def test_more_steps_are_better(self):
        """The gap shrinks as more steps are allowed, and the dual value never falls."""
        X, y = noise(300)
        gaps, duals = [], []
        for max_iter in (10, 100, 1000, 10000):
            with pytest.warns(ConvergenceWarning):
                found = SVC(C=100.0, max_iter=max_iter, tol=1e-12).fit(X, y).certificate_
            gaps.append(found.gap)
            duals.append(found.dual)
        assert gaps == sorted(gaps, reverse=True)
        assert duals == sorted(duals)

    def test_no_step_at_all(self):
        """max_iter=0 gives the model of the start: w = 0."""
        X, y = noise(100)
        with pytest.warns(ConvergenceWarning, match="max_iter=0"):
            model = SVC(max_iter=0).fit(X, y)
        assert model.rkhs_norm_ == 0.0 and model.margin_ == np.inf
        assert_usable(model, X)

    def test_several_classes(self):
        """Every pair has its certificate, those too for which no time is left."""
        X, _ = noise(2000)
        y = np.random.default_rng(1).integers(0, 8, len(X))
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            model = SVC(C=1e6, gamma=0.1, tol=1e-9, time_limit=0.1).fit(X, y)
        assert_usable(model, X)
        assert len(model.certificates_) == 28

    def test_the_warning_points_to_the_users_line(self):
        """Also from inside a pipeline."""
        X, _ = noise(100)
        with pytest.warns(ConvergenceWarning) as found:
            make_pipeline(StandardScaler(), OneClassSVM(max_iter=1)).fit(X)
        assert found[0].filename == __file__


@pytest.fixture
def python_handles_interrupts():
    """Python's own handler, as in a program; a test runner may have another one."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are handled by the main thread alone")
    SVC().fit(*noise(500))  # loads compiled loops, so that the fit of the test has begun when it is interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed(A, B):
    """A kernel that presses Ctrl-C while a fit computes it."""
    if A is B:
        signal.raise_signal(signal.SIGINT)
    return np.asarray(A) @ np.asarray(B).T


# what a program prints, "now" being answered by Ctrl-C
PROGRAMS = {
    "loop": (
        "print('now'); hard.fit(X, y); print('fitted'); print('now'); hard.fit(X, y); print('fitted')",
        ["now", "fitted", "now", "KeyboardInterrupt"],
    ),
    "slow loop": (
        f"print('now'); hard.fit(X, y); time.sleep({SECOND_PRESS}); print('now'); hard.fit(X, y); print('fitted')",
        ["now", "now", "fitted"],
    ),
    "search": (
        "print('now'); GridSearchCV(hard, {'C': [1e4, 2e4]}, cv=2).fit(X, y); print('fitted')",
        ["now", "KeyboardInterrupt"],
    ),
    "search on two processes": (
        "print('now'); GridSearchCV(hard, {'C': [1e4, 2e4]}, cv=2, n_jobs=2).fit(X, y); print('fitted')",
        ["now", "KeyboardInterrupt"],
    ),
}


@pytest.mark.usefixtures("python_handles_interrupts")
class TestInterrupts:
    def test_the_first_one_ends_the_fit(self, ctrl_c):
        """After Ctrl-C there is a usable model, and a warning."""
        X, y = noise(1000)
        before = signal.getsignal(signal.SIGINT)
        ctrl_c(0.3)
        with pytest.warns(ConvergenceWarning) as found:
            model = SVC(C=1e9, tol=1e-12, time_limit=60.0).fit(X, y)
        assert str(found[0].message).startswith(
            "Solver was interrupted; the model fitted so far is usable. The model is "
        )
        assert_usable(model, X)
        assert signal.getsignal(signal.SIGINT) is before

    def test_pairs_side_by_side(self, ctrl_c):
        """Also where pairs of classes are solved on several threads."""
        X, _ = noise(2000)
        y = np.random.default_rng(1).integers(0, 4, len(X))
        ctrl_c(0.3)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = SVC(C=1e9, tol=1e-12, n_jobs=2, time_limit=60.0).fit(X, y)
        assert_usable(model, X)

    @pytest.mark.usefixtures("callbacks")
    def test_the_second_one_is_raised(self):
        """A second Ctrl-C during the same fit is an ordinary KeyboardInterrupt, and the handler is put back."""
        X, y = noise(200)
        before = signal.getsignal(signal.SIGINT)

        class Twice:
            """Interrupts the fit twice in its first round."""

            def setup(self, estimator, context): ...
            def teardown(self, estimator, context): ...
            def on_fit_task_begin(self, estimator, context): ...

            def on_fit_task_end(self, estimator, context):
                for _ in range(2):
                    signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            SVC().set_callbacks(Twice()).fit(X, y)
        assert signal.getsignal(signal.SIGINT) is before

    def test_one_that_compiled_code_overlooks(self):
        """Ctrl-C in Python code that C code calls, which overlooks its exception, is a KeyboardInterrupt of the fit."""
        with pytest.raises(KeyboardInterrupt), Clock():
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        with pytest.raises(SystemError), Clock():
            raise SystemError

    def test_the_second_one_is_raised_in_the_next_fit(self):
        """A second Ctrl-C soon after the first ends a loop over fits, though it falls into the next fit."""
        X, y = noise(60)
        fitted = []
        with pytest.raises(KeyboardInterrupt), pytest.warns(ConvergenceWarning, match="interrupted"):
            for C in (1.0, 10.0, 100.0):
                fitted.append(SVC(C=C, kernel=pressed).fit(X, y))
        assert [model.C for model in fitted] == [1.0]

    def test_a_late_one_is_a_first_one(self):
        """Ctrl-C long after an earlier one ends the fit at hand, and the loop goes on."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            for _ in range(3):
                with Clock(second_within=0.01) as clock:
                    signal.raise_signal(signal.SIGINT)
                assert clock.over() is Status.INTERRUPTED
                time.sleep(0.02)
            with pytest.raises(KeyboardInterrupt), Clock(second_within=60.0):
                signal.raise_signal(signal.SIGINT)
        finally:
            signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize(
        "call",
        [
            lambda X, y: GridSearchCV(SVC(kernel=pressed), {"C": [1.0, 10.0]}, cv=2, error_score="raise").fit(X, y),
            lambda X, y: cross_val_score(make_pipeline(StandardScaler(), SVC(kernel=pressed)), X, y, cv=2),
            lambda X, y: CalibratedClassifierCV(SVC(kernel=pressed), cv=2).fit(X, y),
            lambda X, y: BaggingClassifier(SVC(kernel=pressed), 2).fit(X, y),
        ],
        ids=["GridSearchCV", "cross_val_score", "CalibratedClassifierCV", "BaggingClassifier"],
    )
    def test_no_unfinished_model_is_scored(self, call):
        """Inside a search, a cross-validation or an ensemble the first Ctrl-C is a KeyboardInterrupt."""
        X, y = noise(60)
        with pytest.raises(KeyboardInterrupt):
            call(X, y)

    def test_a_pipeline_is_fitted(self):
        """A pipeline hands on the fit that was asked for: after Ctrl-C it is usable."""
        X, y = noise(60)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = make_pipeline(StandardScaler(), SVC(kernel=pressed)).fit(X, y)
        assert model.predict(X).shape == y.shape

    @pytest.mark.slow
    @pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
    @pytest.mark.parametrize(("program", "found"), PROGRAMS.values(), ids=PROGRAMS)
    def test_programs(self, program, found):
        """The same with the signals of a terminal, in programs of their own."""
        start = "import time, warnings; warnings.simplefilter('ignore'); from tests.estimators.test_limits import *; "
        start += "X, y = noise(8000); SVC(max_iter=2000).fit(X, y); hard = SVC(C=1e4, time_limit=100.0)\n"
        lines = []
        with subprocess.Popen(
            [sys.executable, "-u", "-c", start + program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            killer = threading.Timer(120.0, process.kill)
            killer.start()
            for line in process.stdout:
                lines.append(line.strip())
                if line == "now\n":
                    time.sleep(0.5)  # the fit that was announced has begun
                    process.send_signal(signal.SIGINT)
            killer.cancel()
        assert [line for line in lines if line in ("now", "fitted", "KeyboardInterrupt")] == found, lines

    @pytest.mark.usefixtures("callbacks")
    def test_other_handlers_are_left_alone(self):
        """Where a program handles Ctrl-C itself, it keeps doing so."""
        X, y = noise(100)
        calls = []
        before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
        try:
            SVC().set_callbacks(Recorder(at_round=lambda: signal.raise_signal(signal.SIGINT))).fit(X, y)
        finally:
            signal.signal(signal.SIGINT, before)
        assert calls and set(calls) == {signal.SIGINT}


class Recorder:
    """Records the calls, and stops the fit after this many rounds."""

    def __init__(self, stop_after=None, at_round=lambda: None):
        self.calls, self.rounds = [], 0
        self.stop_after, self.at_round = stop_after, at_round

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(("begin", context.task_name))
        if context.task_name == "fit":
            self.X, self.y = X, y

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(("end", context.task_name))
        if context.task_name == "fit":
            self.fitted = fitted_estimator
            return False
        self.at_round()
        self.rounds += 1
        return self.rounds == self.stop_after

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))


class Watched:
    """Keeps the models and samples of all rounds."""

    def __init__(self):
        self.models, self.given = [], []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name == "round" and fitted_estimator is not None:
            self.models.append(fitted_estimator)
            self.given.append(X)

    def teardown(self, estimator, context):
        pass


@pytest.mark.usefixtures("callbacks")
class TestCallbacks:
    @pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM()], ids=named)
    def test_the_order_of_calls(self, estimator):
        """Setup, begin of the fit, begin and end of each round, end of the fit, teardown."""
        X, y = noise(1500)
        recorder = Recorder()
        model = estimator.set_callbacks(recorder).fit(X, y)
        rounds = [("begin", "round"), ("end", "round")] * len(model.trace_)
        assert recorder.calls == [("setup", "fit"), ("begin", "fit"), *rounds, ("end", "fit"), ("teardown", "fit")]
        assert recorder.X is X

    def test_a_fitted_estimator_is_handed_over(self):
        """The copy given at the end of the fit predicts."""
        X, _ = noise(200)
        recorder = Recorder()
        model = OneClassSVM().set_callbacks(recorder).fit(X)
        np.testing.assert_array_equal(recorder.fitted.score_samples(X), model.score_samples(X))

    @pytest.mark.parametrize("n", [100, 700, 3000])
    @pytest.mark.parametrize(
        "estimator",
        [SVC(C=10.0), NuSVC(nu=0.2), SVR(C=10.0), NuSVR(C=10.0), OneClassSVM(), PegasosClassifier(), Perceptron()],
        ids=named,
    )
    def test_rounds_hand_over_models(self, estimator, n):
        """A callback that asks for a fitted estimator gets that of the round; the last one is the model, or near it."""
        X, y = noise(n)
        watched = Watched()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = estimator.set_callbacks(watched).fit(X, y)
        assert len(watched.models) > 0 and all(type(seen) is type(model) for seen in watched.models)
        assert all(given is X for given in watched.given)
        last = watched.models[-1]
        found, values = ((getattr(m, "decision_function", None) or m.predict)(X) for m in (last, model))
        # rounds are in float32 at least, the published model is refined
        np.testing.assert_allclose(found, values, atol=4e-3 * np.abs(values).max())
        assert last.predict(X[:3]).shape == (3,)

    def test_rounds_of_several_classes_have_no_model(self):
        """Pairs are solved one by one or side by side: there is no model before all are done."""
        X, _ = noise(900)
        watched = Watched()
        SVC().set_callbacks(watched).fit(X, np.arange(900) % 3)
        assert watched.models == []

    @pytest.mark.parametrize("n", [100, 3000])
    def test_true_stops_the_fit(self, n):
        """A callback that returns True ends the fit after that round, with a usable model."""
        X, y = noise(n)
        recorder = Recorder(stop_after=1)
        with pytest.warns(ConvergenceWarning, match="Solver was interrupted; the model fitted so far is usable."):
            model = SVC(C=1e6, tol=1e-16).set_callbacks(recorder).fit(X, y)
        assert recorder.rounds <= 2
        assert recorder.calls[-2:] == [("end", "fit"), ("teardown", "fit")]
        assert_usable(model, X)

    def test_an_error_tears_down(self):
        """A callback that raises ends the fit with its error, after teardown."""
        X, y = noise(100)

        def fail():
            raise RuntimeError("of the callback")

        recorder = Recorder(at_round=fail)
        with pytest.raises(RuntimeError, match="of the callback"):
            SVC().set_callbacks(recorder).fit(X, y)
        assert recorder.calls[-1] == ("teardown", "fit")

    def test_progress_bar(self, callbacks, capsys):
        """scikit-learn's progress bar shows a fit, alone and inside a grid search."""
        X, y = noise(200)
        SVC().set_callbacks(callbacks.ProgressBar()).fit(X, y)
        assert "SVC - fit" in capsys.readouterr().out
        GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).set_callbacks(callbacks.ProgressBar()).fit(X, y)
        assert "GridSearchCV - fit" in capsys.readouterr().out


class TestLog:
    def test_verbose(self, caplog, capfd):
        """verbose=True logs the plan and each round under the name mercer, and prints nothing."""
        X, y = noise(1500)
        with caplog.at_level(logging.INFO, logger="mercer"):
            model = SVC(verbose=True).fit(X, y)
        plan, *lines = [record.getMessage() for record in caplog.records if record.name == "mercer"]
        assert plan == f"plan: {model.plan_}"
        assert len(lines) == len(model.trace_) > 0
        pattern = r" +\d+\.\d\d s +\d+ steps  violation \d\.\d{3}e[+-]\d\d  dual \S+  active \d+"
        assert all(re.fullmatch(pattern, line) for line in lines)
        assert capfd.readouterr().out == ""

    def test_silence(self, caplog, capfd):
        """Without verbose nothing is logged or printed."""
        X, y = noise(300)
        with caplog.at_level(logging.DEBUG):
            SVC().fit(X, y).predict(X)
        assert caplog.records == []
        assert capfd.readouterr() == ("", "")

    def test_trace(self):
        """trace_ is what the log shows: time and steps grow, the dual value, too; the last violation is within tol."""
        X, y = noise(3000)
        trace = SVC(tol=1e-3, cache_size=5).fit(X, y).trace_
        assert len(trace) > 1
        for name in ("seconds", "steps"):
            column = [getattr(point, name) for point in trace]
            assert column == sorted(column)
        duals = np.array([point.dual for point in trace])
        assert (np.diff(duals) >= -1e-6 * duals[-1]).all()
        assert trace[-1].violation <= 1e-3
