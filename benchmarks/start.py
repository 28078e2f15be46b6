"""How long a new process waits for its first fit: from source and from a wheel, with an empty and a full cache.

    python benchmarks/start.py [--wheel dist/mercer-….whl] [--repeats 5] [--jobs iris]

Each figure is the median of new processes, in seconds: the first fit and predict after the import. With an empty cache
a process is run once, since it takes so long. The columns of scikit-learn, and of scikit-learn-intelex if it is
installed, are their own first fit and predict.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
TWO = "X = rng.standard_normal(({n}, {d})); y = X[:, 0] * X[:, 1] > 0"
CURVE = "X = rng.standard_normal(({n}, {d})); y = np.sin(X[:, 0])"


@dataclass(frozen=True)
class Job:
    """Data, and the expressions of the model in mercer and in scikit-learn; "" where it has none."""

    name: str
    data: str
    model: str
    peer: str


JOBS = [
    Job("SVC, iris", "from sklearn.datasets import load_iris; X, y = load_iris(return_X_y=True)", "SVC()", "svm.SVC()"),
    Job("SVC 2,000×10, two classes", TWO.format(n=2000, d=10), "SVC()", "svm.SVC()"),
    Job("SVC 10,000×10, two classes", TWO.format(n=10_000, d=10), "SVC()", "svm.SVC()"),
    Job(
        "SVC 6,000×16, six classes",
        "X = rng.standard_normal((6000, 16)); y = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])",
        "SVC()", "svm.SVC()",
    ),
    Job(
        "SVC CSR 3,000×50",
        "import scipy.sparse as sp; X = sp.random(3000, 50, 0.1, format='csr', random_state=0); "
        "y = np.asarray(X.sum(1)).ravel() > 2.4",
        "SVC()", "svm.SVC()",
    ),
    Job("SVR 2,000×8", CURVE.format(n=2000, d=8), "SVR()", "svm.SVR()"),
    Job(
        "LinearSVC 5,000×20",
        "X = rng.standard_normal((5000, 20)); y = X[:, 0] > 0.1 * rng.standard_normal(5000)",
        "LinearSVC()", "svm.LinearSVC()",
    ),
    Job(
        "KernelRidge 1,000×8", CURVE.format(n=1000, d=8),
        "KernelRidge(kernel='rbf')", "kernel_ridge.KernelRidge(kernel='rbf')",
    ),
    Job(
        "SVCCV 500×10", TWO.format(n=500, d=10), "SVCCV()",
        "model_selection.GridSearchCV(svm.SVC(), {'C': np.logspace(-2, 3, 8), 'gamma': np.logspace(-3, 1, 8)})",
    ),
    Job(
        "GaussianProcessRegressor 300×2", CURVE.format(n=300, d=2),
        "GaussianProcessRegressor()", "gaussian_process.GaussianProcessRegressor()",
    ),
    Job(
        "SVC(kernel=Spectrum(3)), 200 strings",
        "X = [''.join(rng.choice(list('ACGT'), 60)) for _ in range(200)]; y = [s.count('AC') > 3 for s in X]",
        "SVC(kernel=mercer.kernels.Spectrum(3))", "",
    ),
    Job("OneClassSVM 1,000×5", "X = rng.standard_normal((1000, 5)); y = None", "OneClassSVM()", "svm.OneClassSVM()"),
]  # fmt: skip

PROCESS = """
import json, sys, warnings
from time import perf_counter
warnings.simplefilter("ignore")
library, data, expression = sys.argv[1:]
start = perf_counter()
if library == "mercer":
    import mercer
    exec("from mercer import " + expression.partition("(")[0])
else:
    if library == "intelex":
        import sklearnex
        sklearnex.patch_sklearn(verbose=False)
    from sklearn import gaussian_process, kernel_ridge, model_selection, svm
imported = perf_counter() - start
import numpy as np
rng = np.random.default_rng(0)
exec(data)
times = []
for _ in range(2):
    model = eval(expression)
    start = perf_counter()
    model.fit(X, y).predict(X)
    times.append(perf_counter() - start)
compiled = 0
if library == "mercer":
    from mercer._compiled.compile import functions_compiled
    compiled = functions_compiled()
print(json.dumps({"import": imported, "first": times[0], "warm": times[1], "compiled": compiled}))
"""


def measure(python: str, job: Job, library: str, cache: str, path: str = "") -> dict[str, float]:
    """The times of one process, and the functions that it has compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache} | ({"PYTHONPATH": path} if path else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # imports would compile bytecode in each process
    expression = job.model if library == "mercer" else job.peer
    done = subprocess.run(
        [python, "-c", PROCESS, library, job.data, expression],
        env=environment, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{job.name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="a wheel with machine code, for this Python")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", default="", help="only jobs with this text in their names")
    arguments = parser.parse_args()
    from table import table

    peers = ["scikit-learn", *(["intelex"] if find_spec("sklearnex") else [])]
    rows, imports = [], {"mercer": [], "scikit-learn": []}
    with tempfile.TemporaryDirectory() as folder:
        # a copy: machine code is also found beside the source
        source, wheel = f"{folder}/source", f"{folder}/wheel"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if arguments.wheel:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
            subprocess.run([*pip, "--target", wheel, str(arguments.wheel)], check=True)
        for job in JOBS:
            if arguments.jobs not in job.name:
                continue
            cache = f"{folder}/{len(rows)}"
            empty = measure(sys.executable, job, "mercer", cache, source)
            full = medians([measure(sys.executable, job, "mercer", cache, source) for _ in range(arguments.repeats)])
            row = [job.name, f"{empty['first']:.1f}", f"{empty['compiled']:.0f}"]
            row += [f"{full['first']:.2f}"]
            if arguments.wheel:
                shipped = medians([
                    measure(sys.executable, job, "mercer", f"{folder}/empty", wheel) for _ in range(arguments.repeats)
                ])  # fmt: skip
                row += [f"{shipped['first']:.2f}", f"{shipped['compiled']:.0f}"]
            imports["mercer"].append(full["import"])
            row += [f"{full['warm']:.3f}"]
            for peer in peers:
                if not job.peer:
                    row += ["–"]
                    continue
                found = medians([measure(sys.executable, job, peer, cache) for _ in range(arguments.repeats)])
                imports.setdefault(peer, []).append(found["import"])
                row += [f"{found['first']:.3f}"]
            rows.append(row)
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    heads = ["first fit + predict, s", "source, empty cache", "compiled", "source, full cache"]
    heads += ["wheel, empty cache", "compiled"] if arguments.wheel else []
    print(table([*heads, "warm", *peers], rows))
    print(
        "\nImport, medians: " + ", ".join(f"{name} {median(found):.2f} s" for name, found in imports.items() if found)
    )


if __name__ == "__main__":
    main()
