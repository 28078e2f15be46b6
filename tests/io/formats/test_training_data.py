"""Models of other programs can be certified after their support vectors are matched with training samples."""

import contextlib
import io
import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.cli import main
from mercer.exceptions import InvalidInputError, ModelFileError
from mercer.io import with_training_data
from mercer.io.libsvm import read_model, write_model
from mercer.io.onnx_models import read_onnx

X, THREE = load_iris(return_X_y=True)
X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
X[3] = X[4]  # the same sample twice
TWO = np.where(THREE == 1, 1, -1)
REAL = X[:, 0] * X[:, 1]
MACHINES = [
    (svm.SVC(C=3.0), TWO, {"C": 3.0}),
    (svm.SVC(C=3.0, kernel="poly", coef0=1.0), THREE, {"C": 3.0}),
    (svm.SVC(C=30.0, kernel="linear"), THREE, {"C": 30.0}),
    (svm.NuSVC(nu=0.2), THREE, {"nu": 0.2}),
    (svm.SVR(C=2.0, epsilon=0.3), REAL, {"C": 2.0, "epsilon": 0.3}),
    (svm.NuSVR(C=2.0, nu=0.4), REAL, {"C": 2.0, "nu": 0.4}),
    (svm.OneClassSVM(nu=0.3, gamma=0.5), None, {"nu": 0.3}),
]
machines = pytest.mark.parametrize(("model", "y", "parameters"), MACHINES, ids=lambda v: type(v).__name__)


def text_of(model):
    out = io.StringIO()
    write_model(mercer.from_sklearn(model), out)
    return out.getvalue()


def rounded(text, digits=8):
    """Vectors rounded to eight digits, as LIBSVM writes them."""
    head, _, rest = text.partition("SV\n")
    lines = []
    for line in rest.splitlines():
        words = line.split()
        lines.append(
            " ".join(f"{w.split(':')[0]}:{float(w.split(':')[1]):.{digits}g}" if ":" in w else w for w in words)
        )
    return head + "SV\n" + "\n".join(lines) + "\n"


@machines
def test_libsvm(model, y, parameters):
    """A model read from a file has the certificate of the original model, also if its vectors were rounded."""
    model.fit(X, y)
    expected = mercer.certify(model, X, y)
    for text in (text_of(model), rounded(text_of(model))):
        read = read_model(io.StringIO(text))
        assert not read.certificate_.valid
        found = with_training_data(read, X, y, **parameters)
        order = np.sort(found.support_)
        assert np.array_equal(np.unique(order), order) and np.array_equal(order, np.sort(model.support_))
        proof = mercer.certify(found, X, y)
        assert proof.valid and abs(proof.relative_gap - expected.relative_gap) < 1e-5
        np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_samples_with_other_targets(sparse):
    """Among equal samples, larger targets get larger coefficients."""
    random = np.random.default_rng(1)
    data, y = np.repeat(random.normal(size=(25, 3)), 6, axis=0), random.normal(size=150)
    data = sp.csr_array(data) if sparse else data
    model = mercer.SVR(C=0.3, epsilon=0.4, tol=1e-7).fit(data, y)
    out = io.StringIO()
    write_model(model, out)
    for text in (out.getvalue(), rounded(out.getvalue())):
        found = with_training_data(read_model(io.StringIO(text), 3), data, y, C=0.3, epsilon=0.4)
        assert mercer.certify(found, data, y).relative_gap < 1e-5


def test_sparse_samples():
    """Sparse samples are matched like dense ones."""
    data = np.where(X > 1.5, X, 0.0)
    model = svm.SVC().fit(data, THREE)
    found = with_training_data(read_model(io.StringIO(text_of(model)), 4), sp.csr_array(data), THREE, C=1.0)
    assert mercer.certify(found, sp.csr_array(data), THREE).relative_gap < 1e-2


@machines
def test_skl2onnx(model, y, parameters, tmp_path):
    """Graphs of skl2onnx, with or without a scaler, are certified to their precision."""
    skl2onnx = pytest.importorskip("skl2onnx")
    data = X.astype(np.float32)
    for pipeline in (make_pipeline(model), make_pipeline(StandardScaler(), model)):
        pipeline.fit(data, y)
        with warnings.catch_warnings(action="ignore"):  # it asks for probabilities that scikit-learn has deprecated
            graph = skl2onnx.to_onnx(pipeline, data[:1], target_opset=15)
        (tmp_path / "m.onnx").write_bytes(graph.SerializeToString())
        read = read_onnx(tmp_path / "m.onnx", nu="nu" in parameters)
        assert type(read).__name__ == type(model).__name__
        inside = data.astype(float) * read.before_[0] + read.before_[1]
        np.testing.assert_allclose(read.predict(inside), pipeline.predict(data), rtol=1e-4)
        found = with_training_data(read, inside, y, **parameters)
        proof = mercer.certify(found, inside, y)
        assert proof.valid and proof.relative_gap < 1e-2


def classifier_graph(**changed):
    """A hand-made SVMClassifier with two strings as classes."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    model = svm.SVC(gamma=0.5, C=2.0, tol=1e-6).fit(X, np.where(TWO > 0, "in", "out"))
    attributes = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "vectors_per_class": model.n_support_.tolist(),
        "coefficients": model._dual_coef_.ravel().tolist(), "rho": model._intercept_.tolist(),
        "support_vectors": model.support_vectors_.ravel().tolist(), "classlabels_strings": ["in", "out"],
        "post_transform": "NONE",
    }  # fmt: skip
    attributes |= changed
    node = helper.make_node("SVMClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info("X", 1, ["n", 4])]
    outputs = [helper.make_tensor_value_info("label", 8, ["n"]), helper.make_tensor_value_info("scores", 1, ["n", 2])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return model, helper.make_model(graph).SerializeToString()


def test_command_onnx(tmp_path, capsys):
    """`mercer certify model.onnx data.csv --C 2` succeeds, and fails for a smaller tolerance."""
    _, data = classifier_graph()
    (tmp_path / "m.onnx").write_bytes(data)
    names = np.where(TWO > 0, "in", "out")
    lines = ["a,b,c,d,y", *(",".join([*map(repr, x), name]) for x, name in zip(X.tolist(), names, strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    arguments = ["certify", str(tmp_path / "m.onnx"), str(tmp_path / "d.csv")]
    assert main([*arguments, "--C", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["within"] and found["relative_gap"] < 1e-4
    assert main([*arguments, "--C", "2", "--tol", "1e-12"]) == 1
    assert "NOT within" in capsys.readouterr().out
    for more, words in (
        ([], "give C."),
        (["--C", "0.5"], "its largest coefficient is 2"),
        (["--C", "2", "--nu", "0.1"], "give only nu, not C"),
        (
            ["--C", "2", "--class-weight", "between", "2"],
            "but the classes are ['in', 'out']: remove it, or use the label as it is in y.",
        ),
    ):
        assert main([*arguments, *more]) == 1
        assert words in capsys.readouterr().err
    assert main(["inspect", str(tmp_path / "m.onnx")]) == 0
    assert "SVC" in capsys.readouterr().out


def test_command_libsvm(tmp_path, capsys):
    """The same for LIBSVM's model and data files, with class weights."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    dump_svmlight_file(X, TWO, str(tmp_path / "d.svm"), zero_based=False)
    y, samples = svmutil.svm_read_problem(str(tmp_path / "d.svm"))
    model = svmutil.svm_train(y, samples, "-c 5 -w1 2 -g 0.5 -q")
    svmutil.svm_save_model(str(tmp_path / "m.model"), model)
    arguments = ["certify", str(tmp_path / "m.model"), str(tmp_path / "d.svm"), "--C", "5"]
    assert main([*arguments, "--class-weight", "1", "2"]) == 0
    assert "SVC: within" in capsys.readouterr().out
    assert main(["convert", str(tmp_path / "m.model"), str(tmp_path / "m.mercer")]) == 0
    converted = ["certify", str(tmp_path / "m.mercer"), str(tmp_path / "d.svm")]
    assert main(converted) == 1
    assert "give C." in capsys.readouterr().err
    assert main([*converted, "--C", "5", "--class-weight", "1", "2"]) == 0
    assert main(arguments) == 1
    assert "coefficients are at most C times the class weight" in capsys.readouterr().err


def test_command_novelty(tmp_path, capsys):
    """A one-class machine uses all columns of a table, and arrays without y."""
    write_model(mercer.OneClassSVM(nu=0.3, gamma=0.5).fit(X), tmp_path / "m.model")
    lines = ["a,b,c,d", *(",".join(map(repr, x)) for x in X.tolist())]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    np.savez(tmp_path / "d.npz", X=X)
    mercer.save(mercer.OneClassSVM(nu=0.3, gamma=0.5).fit(X), tmp_path / "m.mercer")
    for name in ("d.csv", "d.npz"):
        assert main(["certify", str(tmp_path / "m.model"), str(tmp_path / name), "--nu", "0.3"]) == 0
        assert main(["certify", str(tmp_path / "m.mercer"), str(tmp_path / name)]) == 0
    assert capsys.readouterr().out.count("OneClassSVM: within") == 4
    assert main(["certify", str(tmp_path / "m.model"), str(tmp_path / "d.csv")]) == 1
    assert "give nu." in capsys.readouterr().err


def test_refused():
    """One sentence for each way in which samples do not match the model."""
    text = text_of(svm.SVC(C=3.0).fit(X, TWO))
    for data, y, words in (
        (2.0 * X, TWO, "is not among the samples: the nearest sample differs from it by up to"),
        (X[:3], TWO[:3], "support vectors of a class, but there are only"),
        (X[:, :3], TWO, "The samples have 3 features, but the support vectors have 4"),
        (X, THREE, "y contains the label"),
        (X, TWO[:20], r"X has 150 samples, but y has 20: give one label for each sample\.$"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            with_training_data(read_model(io.StringIO(text)), data, y, C=3.0)
    with pytest.raises(InvalidInputError) as found:
        with_training_data(read_model(io.StringIO(text)), X, TWO, C=3.0, class_weight={2: 5.0})
    assert str(found.value) == (
        "class_weight has a weight for 2, but the classes are [-1, 1]: remove it, or use the label as it is in y."
    )
    with pytest.raises(InvalidInputError, match="was given a KernelRidge"):
        with_training_data(mercer.KernelRidge().fit(X, REAL), X, REAL)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kernel_type": "MAGIC"}, "kernel_type is 'MAGIC'"),
        ({"kernel_params": [1.0]}, "with 1 kernel_params"),
        ({"coefficients": [1.0]}, "do not fit"),
        ({"rho": [float("nan")]}, "not finite"),
        ({"vectors_per_class": [1, -1]}, "vectors_per_class"),
        ({"support_vectors": [1.0, 2.0, 3.0]}, "which do not form .* support vectors"),
        ({"classlabels_strings": ["in", "in"]}, "named twice"),
    ],
)
def test_hostile_graphs(changed, words, tmp_path):
    """A graph with inconsistent numbers is refused."""
    _, data = classifier_graph(**changed)
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ModelFileError, match=words):
        read_onnx(tmp_path / "m.onnx")


def test_damaged_graphs(tmp_path):
    """Truncated and changed files raise a MercerError, or are read as other numbers."""
    _, data = classifier_graph()
    random = np.random.default_rng(0)
    for k in range(60):
        broken = bytearray(data[: random.integers(len(data))] if k % 2 else data)
        for place in random.integers(len(broken), size=3) if broken else ():
            broken[place] ^= 1 << int(random.integers(8))
        (tmp_path / "m.onnx").write_bytes(bytes(broken))
        with contextlib.suppress(ModelFileError):
            read_onnx(tmp_path / "m.onnx")


def test_our_own_graphs(tmp_path):
    """The error for graphs without support vectors tells what to do."""
    from mercer.io.onnx import to_onnx

    pytest.importorskip("onnx")
    (tmp_path / "m.onnx").write_bytes(to_onnx(mercer.SVC().fit(X, TWO)).SerializeToString())
    with pytest.raises(ModelFileError, match="Certify the model from which it was exported"):
        read_onnx(tmp_path / "m.onnx")
