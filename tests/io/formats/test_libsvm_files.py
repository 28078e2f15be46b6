"""mercer and LIBSVM or LIBLINEAR predict the same from the same model file, whichever has written it."""

import io
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.io import make_libsvm_data
from tests.io.models import BINARY, REAL, THREE, X

import mercer
from mercer.exceptions import InvalidInputError, ModelFileError
from mercer.io.libsvm import read_data, read_model, write_data, write_model
from mercer.svm.batch import class_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "libsvm.json").read_text())
TRAIN, NEW = make_libsvm_data.samples()
every_case = pytest.mark.parametrize("name", CASES)


def samples_for(name):
    return NEW @ TRAIN.T if "precomputed" in name else NEW


def read(name):
    return read_model(io.StringIO(CASES[name]["model"]), n_features=samples_for(name).shape[1])


def written(model):
    file = io.StringIO()
    write_model(model, file)
    return file.getvalue()


class TestRead:
    @pytest.mark.filterwarnings("ignore")
    @every_case
    def test_predictions(self, name):
        """Labels equal LIBSVM's; values agree up to rounding errors."""
        case, model, data = CASES[name], read(name), samples_for(name)
        data = sp.csr_array(data) if getattr(model, "_sparse", False) else data
        labels = model.predict(data)
        if hasattr(model, "classes_") or "one_class" in name:
            assert labels.tolist() == case["labels"]
        else:
            np.testing.assert_allclose(labels, case["labels"], rtol=1e-9, atol=1e-9)
        if hasattr(model, "_values") and not name.startswith("liblinear"):
            values = model._values(data)
            # our two classes are in ascending order, so the sign of the value may differ
            flip = -1.0 if values.shape[1] == 1 and "label 1 -1" in case["model"] else 1.0
            np.testing.assert_allclose(flip * values, case["values"], rtol=1e-9, atol=1e-9)
        if "probabilities" in case:
            order = np.argsort([int(v) for v in case["model"].split("label ")[1].splitlines()[0].split()])
            ours = np.argsort(model.classes_)
            expected = np.array(case["probabilities"])[:, order]
            # LIBSVM's coupling of several classes is accurate to 0.005
            np.testing.assert_allclose(model.predict_proba(data)[:, ours], expected, atol=0.01)

    @pytest.mark.filterwarnings("ignore")
    @every_case
    def test_there_and_back(self, name):
        """A model that is read, written and read again has bit-identical predictions."""
        model, data = read(name), samples_for(name)
        data = sp.csr_array(data) if getattr(model, "_sparse", False) else data
        again = read_model(io.StringIO(written(model)), n_features=data.shape[1])
        assert np.array_equal(model.predict(data), again.predict(data))
        assert type(again) is type(model)
        if not name.startswith("liblinear"):
            texts = (written(model), CASES[name]["model"])
            ours, theirs = ([line for line in text.splitlines() if line.startswith("label")] for text in texts)
            assert ours == theirs
        assert np.array_equal(getattr(again, "_probA", 0), getattr(model, "_probA", 0))

    def test_certificate(self):
        """The distance from the optimum is unknown until certify computes it."""
        model = read("c_svc rbf three classes")
        assert not model.certificate_.valid and "LIBSVM files do not tell" in model.certificate_.reason
        y = make_libsvm_data.targets(TRAIN, "c_svc", True)
        with pytest.raises(InvalidInputError, match="X has 36 samples"):
            mercer.certify(model, TRAIN, y)
        linear = read("liblinear 1 three classes bias 1").set_params(C=2.0)
        assert linear.classes_.tolist() != sorted(linear.classes_.tolist())
        assert mercer.certify(linear, TRAIN, y).relative_gap < 0.02

    def test_width(self):
        """The caller can give the number of features, which the file does not contain."""
        model = read_model(io.StringIO(CASES["c_svc rbf"]["model"]), n_features=10)
        assert model.predict(np.zeros((2, 10))).shape == (2,)
        with pytest.raises(InvalidInputError, match="n_features=2 was given"):
            read_model(io.StringIO(CASES["c_svc rbf"]["model"]), n_features=2)

    def test_saved(self, tmp_path):
        """A model of LIBSVM can be saved as a mercer model file."""
        model = read("c_svc rbf three classes")
        mercer.save(model, tmp_path / "m.mercer")
        assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict(NEW), model.predict(NEW))


MODELS = {
    "SVC": lambda kernel: mercer.SVC(kernel=kernel, coef0=0.3).fit(X, np.where(BINARY == "yes", 5, -3)),
    "SVC three classes": lambda kernel: mercer.SVC(kernel=kernel, coef0=0.3).fit(X, THREE),
    "NuSVC": lambda kernel: mercer.NuSVC(kernel=kernel, nu=0.2).fit(X, THREE),
    "SVR": lambda kernel: mercer.SVR(kernel=kernel).fit(X, REAL),
    "NuSVR": lambda kernel: mercer.NuSVR(kernel=kernel).fit(X, REAL),
    "OneClassSVM": lambda kernel: mercer.OneClassSVM(kernel=kernel).fit(X),
}


class TestWrite:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
    @pytest.mark.parametrize("name", MODELS)
    def test_libsvm_reads_it(self, name, kernel, tmp_path):
        """LIBSVM predicts the same as mercer from a file that mercer has written."""
        svmutil = pytest.importorskip("libsvm.svmutil")
        model = MODELS[name](kernel)
        write_model(model, tmp_path / "model.txt")
        theirs = svmutil.svm_load_model(str(tmp_path / "model.txt"))
        found = make_libsvm_data.libsvm_values(theirs, make_libsvm_data.rows(X), False)
        if hasattr(model, "decision_function"):
            assert found["labels"] == model.predict(X).tolist()
        # sums of large coefficients of both signs are rounded in a different order
        rounding = 1e-9 + 1e-14 * np.abs(model._dual_coef_).max()
        np.testing.assert_allclose(
            np.array(found["values"]).reshape(len(X), -1), model._values(X), rtol=1e-9, atol=rounding
        )

    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
    @pytest.mark.parametrize("name", MODELS)
    def test_we_read_it(self, name, kernel):
        """A written file can be read again without LIBSVM."""
        model = MODELS[name](kernel)
        again = read_model(io.StringIO(written(model)))
        np.testing.assert_allclose(again._values(X), model._values(X), rtol=1e-12, atol=1e-12)
        assert np.array_equal(again.predict(X), model.predict(X)) or not hasattr(model, "decision_function")

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(("target", "labels"), [(BINARY == "yes", [1, 0]), (THREE, [2, 0, 1]), (THREE, [1, 2, 0])])
    def test_order_of_labels(self, target, labels):
        """Another order of the labels changes only the order and the sign of the values of pairs."""
        model = mercer.SVC(probability=True, random_state=0).fit(X, target.astype(int))
        file = io.StringIO()
        write_model(model, file, labels=labels)
        again = read_model(io.StringIO(file.getvalue()), file_order=True)
        assert again.classes_.tolist() == labels
        value = dict(zip(class_pairs(len(labels)), model._values(X).T, strict=True))
        expected = [value[i, j] if i < j else -value[j, i] for i, j in combinations(labels, 2)]
        np.testing.assert_allclose(again._values(X), np.transpose(expected), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X)[:, labels], atol=1e-6)
        assert again.n_support_.tolist() == model.n_support_[labels].tolist()
        ascending = read_model(io.StringIO(file.getvalue()))
        assert written(ascending) == file.getvalue()

    def test_wrong_labels(self):
        """An order of labels must contain each class once."""
        model = mercer.SVC().fit(X, THREE)
        with pytest.raises(InvalidInputError, match=r"labels=\[0, 1\] must be the classes of the model, \[0, 1, 2\]"):
            write_model(model, io.StringIO(), labels=[0, 1])
        with pytest.raises(InvalidInputError, match="labels was given for a SVR"):
            write_model(mercer.SVR().fit(X, REAL), io.StringIO(), labels=[0, 1])

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
    @pytest.mark.parametrize("labels", [np.where(BINARY == "yes", 5, -3), THREE], ids=["two", "three"])
    @pytest.mark.parametrize("scaling", [1.0, 3.0])
    def test_liblinear(self, multi_class, labels, scaling, tmp_path):
        """LIBLINEAR and mercer predict the same as the model from a file that mercer has written."""
        model = mercer.LinearSVC(multi_class=multi_class, intercept_scaling=scaling).fit(X, labels)
        write_model(model, tmp_path / "model.txt")
        again = read_model(tmp_path / "model.txt")
        assert np.array_equal(again.predict(X), model.predict(X))
        np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-12, atol=1e-12)
        util = pytest.importorskip("liblinear.liblinearutil")
        theirs = util.load_model(str(tmp_path / "model.txt"))
        found, _, _ = util.predict([0] * len(X), make_libsvm_data.rows(X), theirs, "-q")
        assert found == model.predict(X).tolist()

    def test_liblinear_regression(self, tmp_path):
        """The same for regression, with and without an intercept."""
        for params in ({}, {"fit_intercept": False}, {"loss": "squared_epsilon_insensitive"}):
            model = mercer.LinearSVR(**params).fit(X, REAL)
            write_model(model, tmp_path / "model.txt")
            np.testing.assert_allclose(
                read_model(tmp_path / "model.txt").predict(X), model.predict(X), rtol=1e-12, atol=1e-12
            )

    @pytest.mark.parametrize(
        ("model", "target", "words"),
        [
            (mercer.SVC(), BINARY, "must be integers"),
            (mercer.SVC(), THREE + 0.5, "must be integers"),
            (mercer.SVC(kernel=mercer.Matern()), THREE, "LIBSVM does not support the kernel Matern"),
            (mercer.SVC(kernel=mercer.Gaussian((1.0, 2.0, 1.0, 1.0))), THREE, "with one gamma"),
            (mercer.RampSVC(), THREE, "LIBSVM has no RampSVC"),
            (mercer.LinearSVC(), BINARY, "must be integers"),
        ],
        ids=["text", "fractions", "kernel", "widths", "machine", "linear"],
    )
    def test_refused(self, model, target, words, tmp_path):
        """A model that the format cannot represent is refused, and no file is written."""
        target = np.unique(target, return_inverse=True)[1] if words == "with one gamma" else target
        target = target.astype(str) if target.dtype.kind == "f" else target
        model.fit(X, target)
        with pytest.raises(InvalidInputError, match=words):
            write_model(model, tmp_path / "model.txt")
        assert not list(tmp_path.iterdir())


GOOD = CASES["c_svc rbf three classes"]["model"]
LINEAR = CASES["liblinear 1 three classes bias 1"]["model"]


def changed(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


def line_of(text, word):
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.startswith(word))


class TestHostile:
    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("", 1, "the file ends too early"),
            ("hello\n", 1, "'hello' is not a line of a LIBSVM or LIBLINEAR model"),
            (changed(GOOD, "c_svc", "d_svc"), 1, "svm_type is 'd_svc', but must be one of c_svc"),
            (changed(GOOD, "kernel_type rbf", "kernel_type magic"), 2, "kernel_type is 'magic'"),
            (changed(GOOD, "gamma 0.5", "gamma nan"), 3, "gamma is 'nan', but must be a finite number"),
            (changed(GOOD, "gamma 0.5", "gamma -1"), 3, "gamma is -1, but must not be negative"),
            (changed(GOOD, "gamma 0.5", "gamma 0.5 0.6"), 3, "gamma needs one value, but has 2"),
            (changed(GOOD, "gamma 0.5\n", "gamma 0.5\ngamma 0.5\n"), 4, "gamma is given twice"),
            (changed(GOOD, "nr_class 3", "nr_class 99999999"), 4, "must be a whole number from 1 to 10000"),
            (changed(GOOD, "nr_class 3", "nr_class 1"), 4, "only one class"),
            (changed(GOOD, "nr_class 3", "nr_class 4"), line_of(GOOD, "rho"), "rho has 3 numbers, but must have 6"),
            (changed(GOOD, "total_sv ", "total_sv -"), 5, "total_sv is '-"),
            (changed(GOOD, "rho ", "rho inf "), 6, "rho has 4 numbers"),
            (changed(GOOD, "label 7 -2 4", "label 7 4 4"), 7, "a label is given twice"),
            (changed(GOOD, "label 7 -2 4", "label a 4 7"), 7, "a label is 'a'"),
            (changed(GOOD, "nr_sv ", "nr_sv 1"), 8, "nr_sv must be 3 numbers with the sum"),
            (changed(GOOD, "SV\n", "SV\n0 0 1:1 junk\n"), 10, "'junk' is not of the form index:value"),
            (changed(GOOD, "SV\n", "SV\n0 0 2:1 1:1\n"), 10, "the index 1 follows 2: indices must ascend"),
            (changed(GOOD, "SV\n", "SV\n0 0 0:1\n"), 10, "an index is '0'"),
            (changed(GOOD, "SV\n", "SV\n0 0 99999999999:1\n"), 10, "an index is '99999999999'"),
            (changed(GOOD, "SV\n", "SV\n0 0 1:1e999\n"), 10, "a value is '1e999', but must be a finite number"),
            (changed(GOOD, "SV\n", "SV\n0 x 1:1\n"), 10, "the coefficients is 'x'"),
            (changed(GOOD, "SV\n", "SV\n0\n"), 10, "the coefficients has 1 numbers, but must have 2"),
            (GOOD + "0 0 1:1\n", len(GOOD.splitlines()) + 1, "but there are more support vectors"),
            ("\n".join(GOOD.splitlines()[:-1]), len(GOOD.splitlines()), "but there are"),
            (GOOD.split("rho")[0] + "SV\n", 6, "the header has no line rho"),
            (changed(LINEAR, "L2R_L2LOSS_SVC_DUAL", "L2R_LR"), 1, "solver_type is 'L2R_LR'"),
            (changed(LINEAR, "nr_feature 3", "nr_feature 2147483647"), 4, "nr_feature is '2147483647'"),
            (changed(LINEAR, "nr_feature 3", "nr_feature 1000000000"), len(LINEAR.splitlines()) + 1,
                "1000000001 are needed"),
            (changed(LINEAR, "bias 1", "bias x"), 5, "bias is 'x'"),
            (changed(LINEAR, "w\n", "w\n1 2\n"), 7, "a line of weights has 2 numbers, but must have 3"),
            (changed(LINEAR, "label ", "label 1 "), 3, "label must be 3 different numbers"),
            (changed(LINEAR, "nr_class 3", "nr_class 3 3"), 2, "one value for nr_class"),
        ],
        ids=range(33),
    )  # fmt: skip
    def test_line_and_reason(self, text, line, words):
        """An invalid line is reported with its number and the reason."""
        with pytest.raises(ModelFileError) as found:
            read_model(io.StringIO(text))
        assert f"line {line}: " in str(found.value), str(found.value)
        assert words in str(found.value)

    def test_not_text(self, tmp_path):
        """Bytes that are not ASCII are refused, with their line."""
        path = tmp_path / "model"
        path.write_bytes(GOOD.encode()[:40] + b"\xff\xfe" + GOOD.encode()[40:])
        with pytest.raises(ModelFileError, match=r"model, line \d+: found a character that is not ASCII"):
            read_model(path)

    @pytest.mark.parametrize(
        "text", [GOOD, LINEAR, CASES["c_svc precomputed"]["model"]], ids=["svm", "linear", "precomputed"]
    )
    def test_mutations(self, text):
        """A file with random changes gives a model or a ModelFileError, nothing else."""
        rng = np.random.default_rng(0)
        alphabet = "0123456789:.-+e \n\tSVabinfx\x00"
        errors = 0
        for _ in range(300):
            letters = list(text)
            for _ in range(rng.integers(1, 6)):
                place, kind = int(rng.integers(max(1, len(letters)))), rng.integers(4)
                if kind == 0:
                    letters[place : place + 1] = alphabet[rng.integers(len(alphabet))]
                elif kind == 1:
                    del letters[place : place + int(rng.integers(1, 30))]
                elif kind == 2:
                    letters[place:place] = alphabet[rng.integers(len(alphabet))]
                else:
                    letters = letters[: max(1, place)]
            try:
                model = read_model(io.StringIO("".join(letters)))
                if model.n_features_in_ < 10**6:
                    d = model.n_features_in_
                    data = sp.csr_array((2, d)) if getattr(model, "_sparse", False) else np.zeros((2, d))
                    with np.errstate(all="ignore"):
                        model.predict(data)
            except ModelFileError:
                errors += 1
        assert 100 < errors < 300


class TestData:
    def test_there_and_back(self, tmp_path):
        """scikit-learn reads and writes data in LIBSVM's format."""
        write_data(X, THREE, str(tmp_path / "data.txt"), zero_based=False)
        again, labels = read_data(str(tmp_path / "data.txt"))
        assert np.allclose(again.toarray(), X, rtol=1e-15) and np.array_equal(labels, THREE)
