"""Write tests/io/data/libsvm.json: small models of LIBSVM and LIBLINEAR with the predictions of their own programs.

Needs libsvm-official and liblinear-official, which are compiled when they are installed; the tests do not.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

PATH = Path(__file__).parent / "data" / "libsvm.json"
TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNELS = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
# solver of LIBLINEAR, whether it is a regression
SOLVERS = {1: False, 2: False, 3: False, 4: False, 5: False, 11: True, 12: True, 13: True}


def samples():
    rng = np.random.default_rng(7)
    X = np.round(rng.normal(size=(36, 3)), 3)
    X[rng.random(X.shape) < 0.3] = 0.0
    new = np.round(rng.normal(size=(15, 3)), 3)
    return X, new


def targets(X, kind, several):
    if kind.endswith("svr"):
        return np.round(X[:, 0] - X[:, 1] ** 2, 3).tolist()
    score = X[:, 0] + 0.5 * X[:, 1]
    # in the files, the class of the first sample comes first
    return (np.array([4, 7, -2])[np.digitize(score, [-0.4, 0.4])] if several else np.where(score > 0, 1, -1)).tolist()


def rows(X, Z=None):
    if Z is None:
        return [{j + 1: v for j, v in enumerate(row) if v} for row in X.tolist()]
    K = X @ Z.T
    return [{0: i + 1, **{j + 1: v for j, v in enumerate(row)}} for i, row in enumerate(K.tolist())]


def libsvm_case(kind, kernel, several, probability):
    from libsvm.svmutil import svm_predict, svm_save_model, svm_train

    X, new = samples()
    y = targets(X, kind, several)
    precomputed = kernel == "precomputed"
    options = f"-q -s {TYPES[kind]} -t {KERNELS[kernel]} -g 0.5 -r 0.25 -d 2 -n 0.3 -c 2 -p 0.1 -b {int(probability)}"
    model = svm_train(y, rows(X, X) if precomputed else rows(X), options)
    case = libsvm_values(model, rows(new, X) if precomputed else rows(new), precomputed)
    if probability:
        case["probabilities"] = svm_predict([0] * len(new), rows(new), model, "-q -b 1")[2]
    return {**case, "model": saved(svm_save_model, model)}


def libsvm_values(model, samples, precomputed):
    """By LIBSVM's own function: its svm_predict has a buffer that is too short for ν-SVC with several classes."""
    from ctypes import c_double

    from libsvm.svm import gen_svm_nodearray, libsvm

    k = model.get_nr_class()
    out = (c_double * max(1, k * (k - 1) // 2))()
    labels, values = [], []
    for sample in samples:
        nodes, _ = gen_svm_nodearray(sample, isKernel=precomputed)
        labels.append(libsvm.svm_predict_values(model, nodes, out))
        values.append(list(out))
    return {"labels": labels, "values": values}


def liblinear_case(solver, several, bias):
    from liblinear.liblinearutil import predict, save_model, train

    X, new = samples()
    kind = "svr" if SOLVERS[solver] else "svc"
    model = train(targets(X, kind, several), rows(X), f"-q -s {solver} -B {bias} -c 2 -p 0.1")
    labels, _, values = predict([0] * len(new), rows(new), model, "-q")
    return {"labels": labels, "values": values, "model": saved(save_model, model)}


def saved(save, model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(str(path), model)
        return path.read_text()


def cases():
    found = {}
    for kind in TYPES:
        for kernel in KERNELS:
            for several in (False, True) if kind.endswith("svc") else (False,):
                name = f"{kind} {kernel}{' three classes' if several else ''}"
                found[name] = libsvm_case(kind, kernel, several, False)
    found["c_svc rbf probability"] = libsvm_case("c_svc", "rbf", False, True)
    found["nu_svc rbf three classes probability"] = libsvm_case("nu_svc", "rbf", True, True)
    for solver, regression in SOLVERS.items():
        for several in (False,) if regression else (False, True):
            for bias in (-1, 1, 2.5):
                name = f"liblinear {solver}{' three classes' if several else ''} bias {bias}"
                found[name] = liblinear_case(solver, several, bias)
    return found


if __name__ == "__main__":
    PATH.write_text(json.dumps(cases(), indent=0))
