"""Fits in several processes and threads, however they are started: none hangs, aborts or finds another model.

Each case is a program of its own with a time limit, as a hang would stop the tests. Fits are large enough for threads
that share loops, which do not survive a fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

SECONDS = 300
HEAD = """
import os, sys, warnings
import numpy as np
from mercer import SVC

rng = np.random.default_rng(0)
X = rng.normal(size=(2600, 30))
y = X[:, 0] * X[:, 1] > 0


def work(seed=0):
    model = SVC(n_jobs=2).fit(X, y)
    return float(model.certificate_.dual), model.predict(X[:50]).tolist()


def check(found, expected):
    assert abs(found[0] - expected[0]) <= 1e-6 * abs(expected[0]) and found[1] == expected[1], (found, expected)
"""
# several children at once, after a fit and a prediction of the parent
FORK = """
expected, children = work(), []
for _ in range(3):
    child = os.fork()
    if child == 0:
        try:
            check(work(), expected)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
check(work(), expected)  # the parent goes on, too
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
"""
# a server that loads its model, then forks workers that only predict, as gunicorn does with --preload
PREFORK = """
model = SVC(n_jobs=2).fit(X, y)
expected = model.predict(X).tolist()
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(model.predict(X).tolist() == expected for _ in range(5)) else 1)
    assert os.waitpid(child, 0)[1] == 0
"""
# children of a process whose other threads fit: what these hold at that moment stays held in the child
FORK_WHILE_FITTING = """
import signal, threading

expected, stop = work(), threading.Event()


def repeat():
    while not stop.is_set():
        work()


threads = [threading.Thread(target=repeat) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        check(work(), expected)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
"""
# another thread is in its first fit, which imports numba: the child would wait for the end of that import
FORK_WHILE_IMPORTING = """
import signal, threading, time

assert "numba" not in sys.modules
thread = threading.Thread(target=lambda: found.append(work()))
found = []
thread.start()
while "numba" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    signal.alarm(120)
    work()
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0
check(work(), found[0])
"""
# a thread that imports a module of its own, whose end waits for the fork
FORK_WITHIN_AN_IMPORT = """
import signal, threading

with open("waiting_module.py", "w") as file:
    file.write("import __main__; __main__.begun.set(); __main__.forked.wait()")
begun, forked = threading.Event(), threading.Event()
sys.path.insert(0, "")
thread = threading.Thread(target=__import__, args=("waiting_module",))
thread.start()
begun.wait()
signal.alarm(120)
child = os.fork()
if child == 0:
    os._exit(0)
forked.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""
# numba compiles in one thread while another one forks; a fork inside of a compilation goes on, too
FORK_WHILE_COMPILING = """
import signal, threading

import mercer._compiled.compile as compiling
from numba.core import event


def double(x):
    return x * 2


children = []


class Fork(event.Listener):
    def on_start(self, event):
        if started.is_set():  # in a child, too, where the lock of this event may be held by a thread that is gone
            return
        started.set()
        if inside:
            child()

    def on_end(self, event):
        pass


def child():
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        os._exit(0 if compiling.compiled()(double)(theirs) == 2 else 1)
    children.append(pid)


for inside, ours, theirs in ((False, 1, 1.0), (True, 1j, np.float32(1.0))):  # all are compiled
    started = threading.Event()
    with event.install_listener("numba:compile", Fork()):
        thread = threading.Thread(target=compiling.compiled()(double), args=(ours,))
        thread.start()
        started.wait()
        if not inside:
            child()
        thread.join()
assert children and all(os.waitpid(pid, 0)[1] == 0 for pid in children)
"""
# another thread is inside of LLVM, as when it frees compiled functions; then it holds llvmlite's lock, not numba's
FORK_WHILE_LLVM_IS_USED = """
import signal, threading

import mercer._compiled.compile as compiling
from llvmlite import binding
from llvmlite.binding.ffi import register_lock_callback


def double(x):
    return x * 2


def hold():
    if threading.current_thread() is thread:
        held.set()
        end.wait()


held, end = threading.Event(), threading.Event()
register_lock_callback(hold, lambda: None)
thread = threading.Thread(target=binding.get_process_triple)
thread.start()
held.wait()
threading.Timer(1.0, end.set).start()  # if the fork does not wait, it happens before
child = os.fork()
if child == 0:
    signal.alarm(120)
    os._exit(0 if compiling.compiled()(double)(1) == 2 else 1)
assert end.is_set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""
# other threads hold the locks of mercer's buffers and of BLAS, and one is in a block in which BLAS has one thread
FORK_WHILE_LOCKED = """
import signal, threading

from mercer._compiled import blas
from mercer.gram import memory


def numbers():
    return [library.num_threads for library in blas._controller().lib_controllers if library.user_api == "blas"]


def hold():
    with blas.one_blas_thread(), blas._lock, memory._lock:
        held.set()
        end.wait()


for library in blas._controller().lib_controllers:
    library.set_num_threads(2)
held, end = threading.Event(), threading.Event()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(120)
    memory.Loan(memory.HUGE_PAGE, np.dtype("f8"))
    with blas.one_blas_thread():
        inside = numbers()
    os._exit(0 if set(inside) == {1} and set(numbers()) == {2} else 1)
end.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert set(numbers()) == {2}
"""
JOBLIB = """
from joblib import Parallel, delayed

expected = work()
for found in Parallel(n_jobs=2, backend={backend!r})(delayed(work)(seed) for seed in range(4)):
    check(found, expected)
"""
POOL = """
import multiprocessing

if __name__ == "__main__":
    expected = work()
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        for found in pool.map(work, range(4)):
            check(found, expected)
"""
THREADS = """
from concurrent.futures import ThreadPoolExecutor

expected = work()
with ThreadPoolExecutor(4) as pool:
    for found in pool.map(work, range(8)):
        check(found, expected)
"""
SEARCH = """
from sklearn.model_selection import GridSearchCV

alone, both = (
    GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, cv=3, n_jobs=n_jobs).fit(X[:300], y[:300]) for n_jobs in (1, 2)
)
assert alone.best_params_ == both.best_params_
assert np.array_equal(alone.cv_results_["mean_test_score"], both.cv_results_["mean_test_score"])
"""
PROGRAMS = {
    "fork": FORK,
    "prefork": PREFORK,
    "fork while threads fit": FORK_WHILE_FITTING,
    "fork while a thread imports": FORK_WHILE_IMPORTING,
    "fork within an import": FORK_WITHIN_AN_IMPORT,
    "fork while LLVM is used": FORK_WHILE_LLVM_IS_USED,
    "fork while threads hold locks": FORK_WHILE_LOCKED,
    "loky": JOBLIB.format(backend="loky"),
    "joblib multiprocessing": JOBLIB.format(backend="multiprocessing"),
    "joblib threading": JOBLIB.format(backend="threading"),
    "spawn": POOL.format(method="spawn"),
    "forkserver": POOL.format(method="forkserver"),
    "threads": THREADS,
    "grid search": SEARCH,
}
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def with_empty_cache(cache):
    """An environment whose machine code is in this folder alone: code of NUMBA_OPT=2 is nowhere else."""
    return dict(os.environ, NUMBA_CACHE_DIR=str(cache), NUMBA_OPT="2")


def run(tmp_path, program, environment=None, name="program.py"):
    """Run a program, which must end by itself."""
    path = tmp_path / name  # a file: spawned processes import it
    path.write_text(HEAD + program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)], timeout=SECONDS, capture_output=True, text=True, env=environment, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_fork if "fork" in name else ()) for name in PROGRAMS])
def test_fits_elsewhere(tmp_path, name):
    """It ends, and a fit has the same optimum and labels as in the first process."""
    run(tmp_path, PROGRAMS[name])


@needs_fork
def test_a_fork_while_numba_compiles(tmp_path):
    """It waits for the compilation of another thread, and the child can compile."""
    run(tmp_path, FORK_WHILE_COMPILING, with_empty_cache(tmp_path / "cache"))


STORM = """
from mercer import KernelCentroid
from mercer._compiled.compile import functions_compiled

KernelCentroid().fit(X[:100], y[:100]).predict(X[:100])
print(functions_compiled())
"""


def test_an_empty_cache_that_several_processes_fill(tmp_path):
    """Each function is compiled by one process, which the others wait for; then nothing is left but the cache."""
    cache = tmp_path / "cache"
    environment = with_empty_cache(cache)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda k: run(tmp_path, STORM, environment, f"program_{k}.py"), range(3)))
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert sum(int(each.stdout) for each in done) == len(files) > 0 and {path.suffix for path in files} == {".nbc"}
    assert int(run(tmp_path, STORM, environment).stdout) == 0


HELD = """
import subprocess, sys, threading
from pathlib import Path
import numba
import mercer._compiled.compile as compiling
from mercer._compiled import machine_code

HOLD = '''
import fcntl, sys, time

with open(sys.argv[1], "wb") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    time.sleep(300)
'''


def double(x):
    return x * 2


ends, shown = {ends}, []
machine_code.Cache.patience = 100.0 if ends else 0.2
loop = compiling.compiled()(double)
path = loop._cache._path(machine_code.cache_directory(), loop._cache._key((numba.int64,))).with_suffix(".lock")
path.parent.mkdir(parents=True, exist_ok=True)
with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as other:
    try:
        assert other.stdout.readline() == "locked\\n"
        if ends:
            threading.Timer(0.3, other.kill).start()
        with compiling.compilations_shown(shown.append):
            assert loop(4) == 8
    finally:
        other.kill()
assert (machine_code.Cache.patience > 0) == ends and shown == ["double in another process", ""], shown
"""


@pytest.mark.parametrize("ends", [True, False])
def test_another_process_that_does_not_go_on(tmp_path, ends):
    """If it dies, its turn ends at once; if it hangs, this process compiles after some time. It shows that it waits."""
    pytest.importorskip("fcntl")
    run(tmp_path, HELD.replace("{ends}", str(ends)), with_empty_cache(tmp_path / "cache"))


XDIST = """
import pytest
from mercer import SVC


@pytest.mark.parametrize("shift", range(4))
def test_fit(shift):
    X = [[float(k % 7), float(k % 5 + shift)] for k in range(40)]
    y = [k % 7 > 3 for k in range(40)]
    assert SVC(C=100.0).fit(X, y).score(X, y) == 1.0
"""


@pytest.mark.slow
def test_pytest_xdist_with_an_empty_cache(tmp_path):
    """Its workers neither hang nor abort."""
    pytest.importorskip("xdist")
    (tmp_path / "test_fits.py").write_text(XDIST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = with_empty_cache(tmp_path / "cache")
    done = subprocess.run(
        [*command, str(tmp_path / "test_fits.py")],
        timeout=SECONDS, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
