"""A saved model is the same model; a damaged file is an error, never a model."""

import io
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from tests.io import make_version_1
from tests.io.models import HISTOGRAM_KERNELS, MODELS, VECTOR_KERNELS, X, outputs
from tests.naming import named

import mercer
from mercer.exceptions import InvalidInputError
from mercer.io import register
from mercer.io.model_file.archive import Archive, write_archive
from mercer.io.model_file.classes import _registered

DATA = Path(__file__).parents[1] / "data"


def round_trip(model):
    file = io.BytesIO()
    mercer.save(model, file)
    return mercer.load(file)


def plain(params):
    return re.sub(r"0x[0-9a-fA-F]+", "", str(params))


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a, b)


class TestRoundTrip:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", MODELS)
    def test_estimators(self, name):
        """A loaded estimator has bit-identical predictions and the same parameters and certificate."""
        model, data = MODELS[name]()
        loaded = round_trip(model)
        assert type(loaded) is type(model)
        assert_same(outputs(loaded, data), outputs(model, data))
        assert plain(loaded.get_params()) == plain(model.get_params())
        assert getattr(loaded, "certificate_", None) == getattr(model, "certificate_", None)
        assert set(vars(loaded)) == set(vars(model))

    @pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=named)
    def test_kernels(self, kernel):
        """A loaded kernel is equal."""
        loaded = round_trip(kernel)
        assert loaded == kernel and repr(loaded) == repr(kernel)


class TestWriting:
    def test_path(self, tmp_path):
        """A file is written completely and replaces an existing one; the same model gives the same bytes."""
        path = tmp_path / "model.mercer"
        mercer.save(mercer.SVC().fit(X, X[:, 0] > 0), path)
        first = path.read_bytes()
        mercer.save(mercer.SVC(C=2.0).fit(X, X[:, 0] > 0), str(path))
        assert path.read_bytes() != first
        assert mercer.load(str(path)).C == 2.0
        assert [p.name for p in tmp_path.iterdir()] == ["model.mercer"]

    def test_same_bytes(self):
        """Equal models are equal files."""
        files = [io.BytesIO(), io.BytesIO()]
        model = mercer.SVC().fit(X, X[:, 0] > 0)
        for file in files:
            mercer.save(model, file)
        assert files[0].getvalue() == files[1].getvalue()

    def test_all_or_nothing(self, tmp_path):
        """If saving fails, the existing file is unchanged and no other file remains."""
        path = tmp_path / "model.mercer"
        mercer.save(mercer.Gaussian(0.5), path)
        with pytest.raises(InvalidInputError, match=r"SVC\.kernel is the function .*: a model file holds no code"):
            mercer.save(mercer.SVC(kernel=lambda a, b: a @ b.T), path)
        assert mercer.load(path) == mercer.Gaussian(0.5)
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
    def test_permissions(self, tmp_path):
        """Permissions are those of a new file, or of the replaced file."""
        path, plain = tmp_path / "model.mercer", tmp_path / "plain"
        plain.touch()
        mercer.save(mercer.Gaussian(), path)
        assert path.stat().st_mode == plain.stat().st_mode
        path.chmod(0o600)
        mercer.save(mercer.Gaussian(), path)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_no_folder(self, tmp_path):
        """A missing folder is named."""
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            mercer.save(mercer.Gaussian(), tmp_path / "nowhere" / "model.mercer")

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            ({"a": 1}, "save writes estimators, pipelines and kernels"),
            (mercer.CallableKernel(np.dot), "holds no code"),
            (mercer.KernelRidge(kernel=max), "holds no code"),
            (mercer.SVC(class_weight={1: 1j}), "of type builtins.complex"),
            (mercer.SVC(C=np.array([None, object()])), "of type builtins.object"),
            (mercer.SVC(random_state=np.random.Generator(np.random.SFC64(0))), "cannot be stored in a model file"),
            (mercer.SVC(C=np.zeros(2, "M8[s]")), "is an array of type datetime64"),
        ],
        ids=["dict", "callable", "ridge", "complex", "object", "generator", "dates"],
    )
    def test_refused(self, model, words):
        """A value that cannot be stored is refused with its position in the model."""
        with pytest.raises(InvalidInputError, match=words):
            mercer.save(model, io.BytesIO())

    def test_itself(self):
        """A value that contains itself is refused."""
        weights = {}
        weights[0] = weights
        with pytest.raises(InvalidInputError, match="contains itself"):
            mercer.save(mercer.SVC(class_weight=weights), io.BytesIO())

    @pytest.mark.parametrize(
        "value",
        [
            True, 7, -(2**70), 0.1, np.inf, -np.inf, "", "ä\ud800\x00", None, b"\x00\xff", (1, (2.5, "a")), [1,
            [2, [3]]],
            {"a": 1, 2: "b", None: 0, (1, "x"): [1]}, {1, 2, 3},
            pytest.param(frozenset({"a", "b"}), id="frozenset"), slice(1, None, 2),
            range(3, 9, 2),
            np.float32(0.1), np.float64(0.1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), np.str_("text"),
            np.float64, np.int32, float, int, np.dtype("<f4"), np.dtype("U5"), list(range(40)), ["x"] * 20,
        ],
        ids=named,
    )  # fmt: skip
    def test_values(self, value):
        """A parameter of any plain type keeps its value and type."""
        file = io.BytesIO()
        mercer.save(mercer.LinearSVC(class_weight={0: value}), file)
        found = unchecked_load(file).class_weight[0]
        assert type(found) is type(value) and found == value

    @pytest.mark.parametrize(
        "array",
        [
            np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((3, 2))), np.zeros((0, 4)), np.array(3.5),
            np.array(["a", "bcd"]),
            np.array([b"x", b"yz"]), np.array([True, False]), np.array([1, "a", None], dtype=object), np.arange(4,
            dtype=">i4"),
            np.array([], dtype="U1"), np.float16([1.5]), np.array([[1, 2], ["a", "b"]], dtype=object),
        ],
        ids=named,
    )  # fmt: skip
    def test_arrays(self, array):
        """Arrays keep their dtype, shape, memory order and values, and are writable."""
        file = io.BytesIO()
        mercer.save(mercer.LinearSVC(class_weight={0: array}), file)
        found = unchecked_load(file).class_weight[0]
        assert found.dtype == array.dtype.newbyteorder("=") and found.shape == array.shape
        assert np.array_equal(found, array) and found.flags.writeable
        assert found.flags.f_contiguous == array.flags.f_contiguous

    def test_random_states(self):
        """A random generator continues its sequence."""
        for state in (np.random.RandomState(3), np.random.default_rng(3)):
            state.normal(size=3)
            file = io.BytesIO()
            mercer.save(mercer.LinearSVC(class_weight={0: state}), file)
            found = unchecked_load(file).class_weight[0]
            assert found.normal(size=5).tolist() == state.normal(size=5).tolist()

    def test_sharing(self):
        """A value shared by attributes is written once and shared again after loading."""
        words = [f"word {i}" for i in range(30)]
        model = mercer.LinearSVC(class_weight={0: words, 1: words, 2: X, 3: X})
        file = io.BytesIO()
        mercer.save(model, file)
        found = unchecked_load(file).class_weight
        assert found[0] is found[1] and found[2] is found[3] and found[0] == words


def unchecked_load(file):
    """Values that no estimator accepts as a parameter, read without its checks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.io.model_file.save_load.check_object", lambda value: None)
        return mercer.load(file)


class TestRegister:
    def test_own_kernel(self):
        """A user's class is refused until it is registered."""
        kernel = OwnKernel(2.0)
        with pytest.raises(InvalidInputError, match=r"Allow a class of your own with mercer\.io\.register"):
            mercer.save(kernel, io.BytesIO())
        register(OwnKernel)
        try:
            assert round_trip(kernel) == kernel
            model = mercer.SVC(kernel=kernel).fit(X, X[:, 0] > 0)
            assert np.array_equal(round_trip(model).decision_function(X), model.decision_function(X))
        finally:
            _registered.clear()
        with pytest.raises(InvalidInputError, match="at the top level of a module"):
            register(type("Local", (), {"__qualname__": "test.<locals>.Local"}))


@dataclass(frozen=True)
class OwnKernel(mercer.Linear):
    scale: float = 1.0

    def block(self, a, b, out=None):
        out = super().block(a, b, out)
        out *= self.scale
        return out

    def diagonal(self, a):
        return self.scale * super().diagonal(a)


class TestCloned:
    def test_clone(self):
        """A loaded estimator can be cloned and fitted again, with the same result."""
        model = mercer.SVC(C=2.0, kernel=0.5 * mercer.Gaussian(0.3)).fit(X, X[:, 0] > 0)
        again = clone(round_trip(model)).fit(X, X[:, 0] > 0)
        assert np.array_equal(again.decision_function(X), model.decision_function(X))

    @pytest.mark.filterwarnings("ignore")
    def test_partial_fit(self):
        """A loaded online classifier continues training like the saved one."""
        y = X[:, 0] > 0
        model = mercer.Perceptron(kernel="rbf", random_state=0).partial_fit(X[:30], y[:30], classes=[False, True])
        loaded = round_trip(model)
        a, b = (m.partial_fit(X[30:], y[30:]).decision_function(X) for m in (model, loaded))
        assert np.array_equal(a, b)

    def test_warm_start(self):
        """A loaded model warm-starts from the saved solution."""
        y = X[:, 0] > 0
        loaded = round_trip(mercer.SVC(warm_start=True).fit(X, y))
        assert loaded.set_params(C=1.0).fit(X, y).n_iter_.sum() <= 5

    def test_certify(self):
        """A loaded model can be certified."""
        y = X[:, 0] > 0
        model = mercer.SVC().fit(X, y)
        assert mercer.certify(round_trip(model), X, y) == mercer.certify(model, X, y)


class TestOldVersions:
    def test_version_1(self):
        """Files of version 1 can be read, and their predictions are unchanged."""
        expected = json.loads((DATA / "version-1.json").read_text())
        model = mercer.load(DATA / "version-1.mercer")
        data = make_version_1.samples()
        assert model.predict(data).tolist() == expected["labels"]
        np.testing.assert_allclose(model.decision_function(data), expected["values"], rtol=1e-12, atol=1e-12)
        assert (model.C, model.class_weight) == (10.0, {"red": 2.0}) and model.certificate_.valid
        assert model.random_state.randint(1000) == np.random.RandomState(0).randint(1000)

    @pytest.mark.filterwarnings("ignore:The file was written with scikit-learn")
    def test_version_1_pipeline(self):
        """The same for a pipeline, if scikit-learn's version is the same."""
        expected = json.loads((DATA / "version-1.json").read_text())
        data = make_version_1.samples()
        model = mercer.load(DATA / "version-1-pipeline.mercer")
        np.testing.assert_allclose(model.predict(sp.csr_array(data * (data > 0))), expected["pipeline"], rtol=1e-12)

    def test_other_scikit_learn(self):
        """Classes of another scikit-learn version are read with a warning, mercer's classes without."""

        def as_if_written_with(version, name):
            archive, file = Archive(io.BytesIO((DATA / name).read_bytes())), io.BytesIO()
            members = {member: bytes(archive.read(member)) for member in archive.names}
            write_archive(file, members, {**archive.manifest, "scikit-learn": version})
            return file

        installed = re.escape(sklearn.__version__)
        with pytest.warns(UserWarning, match=rf"written with scikit-learn 99\.0, but {installed} is installed"):
            mercer.load(as_if_written_with("99.0", "version-1-pipeline.mercer"))
        mercer.load(as_if_written_with("99.0", "version-1.mercer"))
        mercer.load(as_if_written_with(sklearn.__version__, "version-1-pipeline.mercer"))

    def test_missing_parameters(self):
        """A parameter that is missing in an older file gets its default."""
        file = io.BytesIO()
        model = mercer.SVC().fit(X, X[:, 0] > 0)
        del model.__dict__["precision"]
        mercer.save(model, file)
        assert mercer.load(file).precision == "auto"
