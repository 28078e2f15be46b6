"""Write tests/io/data/version-1.mercer and its predictions. Every later version must be able to read this file.

It is never written again. A new version of the format gets a file of its own.
"""

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import mercer

FOLDER = Path(__file__).parent / "data"


def samples():
    grid = np.arange(60).reshape(20, 3)
    return np.round(np.sin(1.0 + grid**2), 3)


def main():
    X = samples()
    labels = np.array(["blue", "green", "red"])[np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.6])]
    kernel = 0.5 * mercer.Gaussian((1.0, 0.5, 2.0)) + mercer.On((0, 2), mercer.Polynomial(2, 0.5, 1.0))
    dense = mercer.SVC(C=10.0, kernel=kernel, class_weight={"red": 2.0}, random_state=np.random.RandomState(0)).fit(
        X, labels
    )
    sparse = make_pipeline(MaxAbsScaler(), mercer.SVR(kernel="rbf")).fit(sp.csr_array(X * (X > 0)), X[:, 0])
    mercer.save(dense, FOLDER / "version-1.mercer")
    mercer.save(sparse, FOLDER / "version-1-pipeline.mercer")
    expected = {
        "labels": dense.predict(X).tolist(),
        "values": dense.decision_function(X).tolist(),
        "pipeline": sparse.predict(sp.csr_array(X * (X > 0))).tolist(),
    }
    (FOLDER / "version-1.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
