"""Damaged or forged files give a ModelFileError or the same model; never a crash, never code execution."""

import copy
import hashlib
import io
import json
import pickle
import struct
import zipfile
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from tests.io.models import THREE, X

import mercer
from mercer.exceptions import ModelFileError
from mercer.io.model_file.archive import MANIFEST, MODEL


def saved(model):
    file = io.BytesIO()
    mercer.save(model, file)
    return file.getvalue()


SPARSE = sp.csr_array(X * (X > 0.3))


@cache
def file(name):
    """The bytes of a saved file."""
    if name == "kernel":
        return saved(0.5 * mercer.Gaussian(0.25) + mercer.Linear())
    if name == "sparse":
        return saved(mercer.SVC(kernel="linear").fit(SPARSE, THREE))
    return saved(
        mercer.SVC().fit(X, THREE) if name == "dense" else mercer.SVC(kernel="precomputed").fit(X @ X.T, THREE)
    )


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, compression=zipfile.ZIP_STORED, seal=True):
    """An archive of these members, with a manifest that describes them."""
    parts = dict(parts)
    if seal:
        manifest = json.loads(parts[MANIFEST])
        manifest["members"] = {
            name: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()}
            for name, d in parts.items()
            if name != MANIFEST
        }
        parts[MANIFEST] = json.dumps(manifest).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, d in parts.items():
            archive.writestr(name, d)
    return file.getvalue()


def with_model(data, change):
    """The file with a changed model.json and correct checksums."""
    parts = members(data)
    document = json.loads(parts[MODEL])
    document = change(document) or document
    parts[MODEL] = document if isinstance(document, bytes) else json.dumps(document).encode()
    return packed(parts)


def with_array(data, number, array_bytes):
    parts = members(data)
    parts[f"arrays/{number}.npy"] = array_bytes
    return packed(parts)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_header(text):
    header = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def refused(data, words):
    with pytest.raises(ModelFileError) as found:
        mercer.load(io.BytesIO(data))
    message = str(found.value)
    assert message.startswith("the file cannot be read as a model: ") and message.endswith(".")
    assert words in message, message


def values(model, name):
    data = {"dense": X, "sparse": SPARSE, "precomputed": X @ X.T}[name]
    return model.decision_function(data)


class TestDamage:
    @pytest.mark.parametrize("name", ["dense", "kernel"])
    def test_truncated(self, name):
        """A truncated file is refused."""
        data = file(name)
        for length in [*range(0, 60), *range(60, len(data) - 1, max(1, len(data) // 150)), len(data) - 1]:
            with pytest.raises(ModelFileError):
                mercer.load(io.BytesIO(data[:length]))

    @pytest.mark.parametrize("name", ["dense", "sparse"])
    def test_flipped_bits(self, name):
        """A flipped bit is detected, or lies in a byte that is not read."""
        data = file(name)
        expected, rng, found = values(mercer.load(io.BytesIO(data)), name), np.random.default_rng(0), 0
        for place in rng.integers(0, len(data), 400):
            damaged = bytearray(data)
            damaged[place] ^= 1 << rng.integers(8)
            try:
                assert np.array_equal(values(mercer.load(io.BytesIO(damaged)), name), expected)
            except ModelFileError:
                found += 1
        assert found > 300

    def test_noise(self):
        """Random bytes are refused."""
        rng = np.random.default_rng(0)
        for size in (0, 1, 22, 100, 5000):
            refused(rng.bytes(size), "zip archive")
            refused(b"PK\x03\x04" + rng.bytes(size), "zip archive")

    def test_missing_file(self, tmp_path):
        """A missing file raises FileNotFoundError."""
        with pytest.raises(FileNotFoundError):
            mercer.load(tmp_path / "none.mercer")

    def test_name_in_message(self, tmp_path):
        """The message begins with the path."""
        path = tmp_path / "odd.mercer"
        path.write_bytes(b"odd")
        with pytest.raises(ModelFileError, match=r"odd\.mercer cannot be read as a model: it is not a zip archive"):
            mercer.load(path)


class TestArchive:
    def test_pickle(self):
        """A pickle is not read, not even in part."""
        refused(pickle.dumps(mercer.SVC()), "zip archive")
        parts = members(file("dense"))
        parts["arrays/0.npy"] = npy(np.array([{}, Trap()], dtype=object))
        refused(packed(parts), "which a model file may not hold")

    @pytest.mark.parametrize(
        "name", ["../evil.npy", "/etc/passwd", "arrays/../../x.npy", "arrays\\0.npy", "arrays/00.npy", 
                 "C:/x", "arrays/", "model.json/", "arrays/99999999999.npy", "ARRAYS/0.npy", "arrays/٣.npy"], ids=repr
    )  # fmt: skip
    def test_paths(self, name):
        """Only member names that `save` writes are allowed."""
        parts = members(file("dense"))
        refused(packed({**parts, name: b"x"}), "which a model file may not have")

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_two_of_a_name(self):
        """Two members with the same name are refused."""
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name, d in [*members(file("dense")).items(), (MODEL, b"{}")]:
                archive.writestr(name, d)
        refused(made.getvalue(), "two members 'model.json'")

    def test_bomb(self):
        """Compressed members are refused before they are unpacked."""
        parts = members(file("dense"))
        parts["arrays/0.npy"] = npy(np.zeros(5_000_000))
        refused(packed(parts, zipfile.ZIP_DEFLATED), "compressed or encrypted")

    def test_oversized(self):
        """An impossible size is refused before memory is allocated."""
        data = bytearray(file("dense"))
        at = data.rfind(b"PK\x01\x02")
        for size in (2**31, 2**32 - 2):
            data[at + 20 : at + 28] = struct.pack("<II", size, size)
            refused(bytes(data), "bytes in all, but the file has")

    def test_encrypted(self):
        """Encrypted members are refused."""
        data = bytearray(file("dense"))
        at = data.rfind(b"PK\x01\x02")
        data[at + 8] |= 1
        refused(bytes(data), "compressed or encrypted")

    def test_checksum(self):
        """A changed member is detected by its checksum."""
        parts = members(file("dense"))
        parts[MODEL] = parts[MODEL].replace(b'"C":1.0', b'"C":9.0')
        refused(packed(parts, seal=False), "the checksum of model.json is wrong")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"version": 2}, "it has version 2 of the format, written by mercer"),
            ({"version": 0}, "0 is not a valid version"),
            ({"version": "1"}, "'1' is not a valid version"),
            ({"version": True}, "True is not a valid version"),
            ({"format": "other"}, "does not describe a model file"),
            ({"members": []}, "does not list each member"),
            ({"members": {"model.json": {"bytes": "1", "sha256": ""}}}, "does not list each member"),
            ({"members": {}}, "its manifest does not match its members"),
        ],
        ids=range(8),
    )
    def test_manifest(self, change, words):
        """An incomplete manifest is refused."""
        parts = members(file("dense"))
        parts[MANIFEST] = json.dumps({**json.loads(parts[MANIFEST]), **change}).encode()
        refused(packed(parts, seal=False), words)

    def test_without_manifest(self):
        """Other zip archives are refused."""
        parts = members(file("dense"))
        del parts[MANIFEST]
        refused(packed(parts, seal=False), "it has no manifest.json")

    def test_without_model(self):
        """A manifest without a model is refused."""
        parts = members(file("dense"))
        del parts[MODEL]
        refused(packed(parts), "it has no member 'model.json'")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (b"", "not valid JSON"),
            (b"\xff", "not valid JSON"),
            (b"[" * 200_000, "nested too deeply"),
            (b'{"model":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
            (b'{"model": 1, "model": 2, "shared": []}', "a key is repeated"),
            (b'{"model": NaN, "shared": []}', "NaN is not allowed"),
            (b'{"model": ' + b"9" * 5000 + b', "shared": []}', "not valid JSON"),
            (b'{"model": 5, "shared": []}', "neither an estimator nor a kernel"),
            (b'{"model": 5}', "does not hold a model"),
            (b"[]", "does not hold a model"),
            (b'{"model": 5, "shared": {}}', "are not a list"),
            (b'{"model": 5, "shared": [5]}', "is not a list"),
        ],
        ids=range(12),
    )
    def test_json(self, text, words):
        """JSON that does not describe a model is refused."""
        refused(packed({**members(file("dense")), MODEL: text}), words)


class Trap:
    def __reduce__(self):
        return pytest.fail, ("code of the file was run",)


def state(document):
    return document["model"]["$object"]["state"]


def put(name, value):
    def change(document):
        state(document)[name] = value

    return change


OTHER_KERNEL = {"$object": {"class": "Linear", "state": {}}}


class TestModel:
    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ({"$array": 999}, "no member 'arrays/999.npy'"),
            ({"$array": -1}, "refers to an array by -1"),
            ({"$array": "0"}, "refers to an array by '0'"),
            ({"$array": True}, "refers to an array by True"),
            ({"$shared": 0}, "does not come before it"),
            ({"$code": "print()"}, "of the unknown kind '$code'"),
            ({"$array": 0, "$tuple": []}, "does not have exactly one key"),
            ({}, "does not have exactly one key"),
            ({"$object": {"class": "os.system", "state": {}}}, "names the class 'os.system'"),
            ({"$object": {"class": "subprocess.Popen", "state": {}}}, "names the class 'subprocess.Popen'"),
            ({"$object": {"class": ["SVC"], "state": {}}}, "names the class ['SVC']"),
            ({"$object": {"class": "certify", "state": {}}}, "names the class 'certify'"),
            ({"$object": {"class": "Kernel", "state": {}}}, "its Kernel is not valid"),
            ({"$object": {"class": "CallableKernel", "state": {"function": "os.system"}}},
                "its CallableKernel is not valid"),
            ({"$object": {"class": "MercerError", "state": {}}}, "which is not a class of values"),
            ({"$object": {"class": "Status", "state": {}}}, "is an enumeration"),
            ({"$object": {"class": "Gaussian", "state": {"gamma": -1}}}, "must be a finite number, at least 0"),
            ({"$object": {"class": "Gaussian", "state": {"gama": 1}}}, "has an unknown parameter 'gama'"),
            ({"$object": {"class": "Gaussian", "state": []}}, "the state of an object is not a table"),
            ({"$object": {"class": "Gaussian"}}, "an object has no class"),
            ({"$object": {"class": "SVC", "state": {"predict": 1}}}, "an attribute 'predict', which would override"),
            ({"$object": {"class": "SVC", "state": {"coef_": 1}}}, "an attribute 'coef_', which would override"),
            ({"$object": {"class": "SVC", "state": {"__class__": 1}}}, "an attribute '__class__'"),
            ({"$object": {"class": "SVC", "state": {"a b": 1}}}, "an attribute 'a b'"),
            ({"$object": {"class": "SVC", "state": {"C": -1.0}}}, "The 'C' parameter of SVC must be"),
            ({"$object": {"class": "SVC", "state": {"kernel": 5}}}, "The 'kernel' parameter of SVC must be"),
            ({"$enum": ["Status", "NOTHING"]}, "'NOTHING' is not a member of Status"),
            ({"$enum": ["SVC", "CONVERGED"]}, "'CONVERGED' is not a member of SVC"),
            ({"$float": "1e5"}, "'1e5' is not a number"),
            ({"$scalar": ["complex128", 1]}, "a number of the unknown type 'complex128'"),
            ({"$scalar": ["int8", 300]}, "300 is not a number of type int8"),
            ({"$scalar": ["int8"]}, "a list of 2"),
            ({"$type": "os"}, "names the type 'os'"),
            ({"$type": ["float64"]}, "names the type ['float64']"),
            ({"$dtype": "O"}, "names the type 'O'"),
            ({"$dtype": "f4,(1000000000,)f8"}, "names the type"),
            ({"$dict": [[[], 1]]}, "a key of a dictionary is not a plain value"),
            ({"$dict": [[1, 2, 3]]}, "a list of 2"),
            ({"$dict": {"a": 1}}, "a dictionary is not a list of pairs"),
            ({"$set": [[1]]}, "a key of a dictionary is not a plain value"),
            ({"$bytes": "zz"}, "bytes are not written as hexadecimal digits"),
            ({"$bytes": 5}, "bytes are not written as hexadecimal digits"),
            ({"$slice": ["a", 1, 1]}, "a slice or range is not made of integers"),
            ({"$range": [0, 1, 0]}, "a range is not valid"),
            ({"$objects": {"shape": [10**9], "items": []}}, "has the shape [1000000000]"),
            ({"$objects": {"shape": [2, 2], "items": [1]}}, "has the shape"),
            ({"$objects": {"shape": [-1], "items": [1]}}, "has the shape [-1]"),
            ({"$random": {"$dict": [["bit_generator", "MT19937"]]}}, "a random state is not of a known kind"),
            ({"$random": 5}, "a random state is not of a known kind"),
            ({"$frame": {"library": "os", "columns": [], "values": [], "length": 0}}, "unknown library"),
            ({"$frame": {"library": "pandas", "columns": ["a"], "values": [[1]], "length": 2}}, "differ in length"),
            ({"$sparse": {}}, "is not a sparse matrix"),
            (10**1001, "more than 1000 digits"),
            (json.loads("[" * 80 + "]" * 80), "nested more than 60 deep"),
        ],
        ids=range(54),
    )  # fmt: skip
    def test_values(self, value, words):
        """An invalid value is refused."""
        refused(with_model(file("dense"), put("extra_", value)), words)

    def test_positions_of_random_states(self):
        """A position beyond the words of a random generator is refused: it would read other memory."""
        data = saved(mercer.SVC(random_state=np.random.RandomState(0)))
        text = members(data)[MODEL].decode()
        for old, new in (
            ('["pos",624]', '["pos",625]'),
            ('["pos",624]', '["pos",-1]'),
            ('["has_gauss",0]', '["has_gauss",7]'),
        ):
            assert old in text
            refused(
                packed({**members(data), MODEL: text.replace(old, new).encode()}),
                "the numbers of a random state are not valid",
            )

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("_kernel", 5, "the kernel is not a kernel object"),
            ("_kernel", OTHER_KERNEL, "two different kernels"),
            ("_dual_coef_", [[1.0]], "expected an array of numbers"),
            ("_intercept_", {"$float": "nan"}, "is not consistent"),
            ("classes_", [0, 1, 2], "the classes are not a vector"),
            ("_support", None, "two different kernels"),
            ("_sparse", 1, "neither sparse nor dense"),
            ("n_features_in_", 3, "support vectors with 4 features, but 3"),
            ("n_features_in_", "4", "support vectors with 4 features, but '4'"),
        ],
        ids=range(9),
    )
    def test_attributes(self, name, value, words):
        """Inconsistent attributes are refused."""
        refused(with_model(file("dense"), put(name, value)), words)

    @pytest.mark.parametrize("name", ["_dual_coef_", "_intercept_", "_n_support", "classes_", "_probA"])
    @pytest.mark.parametrize(
        "other", [np.zeros((2, 1000)), np.zeros(7), np.zeros((0, 0)), np.arange(3), np.array(["a"])], ids=str
    )
    def test_sizes(self, name, other):
        """An array of the wrong size or type is refused."""
        parts = members(file("dense"))
        document = json.loads(parts[MODEL])
        state(document)[name] = {"$array": 1000}
        data = packed({**parts, MODEL: json.dumps(document).encode(), "arrays/1000.npy": npy(other)})
        if name == "classes_" and other.shape == (3,):
            assert mercer.load(io.BytesIO(data)).predict(X).shape == (60,)
        else:
            refused(data, "it is not consistent")

    def test_support_outside(self):
        """Support vectors beyond the columns of a kernel matrix are refused."""

        def change(document):
            inside = state(document)["_support"]["$object"]["state"]
            inside["n_train"] = 2

        refused(with_model(file("precomputed"), change), "index is beyond the training samples")


class TestArrays:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "is not an array"),
            (b"\x93NUMPY\x01\x00\xff\xff", "is not an array"),
            (b"\x93NUMPY\x09\x00" + b" " * 200, "is not an array"),
            (npy(np.zeros(3))[:-1], "but has 23 bytes"),
            (npy(np.zeros(3)) + b"x", "but has 25 bytes"),
            (npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,)}"), "but has 0 bytes"),
            (npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,)}"), "which is not valid"),
            (npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999)}"), "without any bytes"),
            (npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}") + bytes(8),
                "which is not valid"),
            (npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8), "of type object"),
            (npy_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}") + bytes(8),
                "holds values of type"),
            (npy_header("{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}") + bytes(16), "of type complex128"),
            (npy_header("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}") + bytes(8), "of type datetime64"),
            (npy_header("{'descr': '|U0', 'fortran_order': False, 'shape': (9999999,)}"), "without any bytes"),
            (npy_header("{'descr': '<f8'}"), "is not an array"),
            (npy_header("__import__('os').system('true')"), "is not an array"),
            (npy_header("(" * 100), "is not an array"),
            (npy_header("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}") + b"\x07", "other than 0 and 1"),
        ],
        ids=range(18),
    )  # fmt: skip
    def test_headers(self, data, words):
        """An array that contradicts its header, or has a type that files may not hold, is refused."""
        refused(with_array(file("dense"), 0, data), words)

    @pytest.mark.parametrize(
        ("part", "array"),
        [
            ("indices", lambda a: np.where(np.arange(len(a)) == 3, 10**6, a).astype(a.dtype)),
            ("indices", lambda a: np.where(np.arange(len(a)) == 3, -1, a).astype(a.dtype)),
            ("indices", lambda a: a[:-1]),
            ("indices", lambda a: a.astype(np.float64)),
            ("indices", lambda a: a.astype(np.int16)),
            ("indptr", lambda a: a[::-1].copy()),
            ("indptr", lambda a: a + 1),
            ("indptr", lambda a: a[:-1]),
            ("indptr", lambda a: np.where(np.arange(len(a)) == 2, 10**7, a).astype(a.dtype)),
            ("data", lambda a: a[:-1]),
            ("data", lambda a: a.astype(str)),
            ("data", lambda a: a[:, None]),
        ],
        ids=range(12),
    )
    def test_sparse(self, part, array):
        """Indices outside a sparse matrix are refused: compiled loops would read other memory."""
        parts = members(file("sparse"))
        inside = state(json.loads(parts[MODEL]))["support_vectors_"]["$sparse"]
        number = inside[part]["$array"]
        changed = array(np.load(io.BytesIO(parts[f"arrays/{number}.npy"])))
        refused(with_array(file("sparse"), number, npy(changed)), "sparse matrix")

    def test_sparse_shape(self):
        """A sparse matrix of the wrong shape is refused."""
        for shape in ([60], [60, -4], ["60", 4], [60, 2**40], [60, 2]):

            def change(document, shape=shape):
                state(document)["support_vectors_"]["$sparse"]["shape"] = shape

            refused(with_model(file("sparse"), change), "sparse matrix")


class TestGraphs:
    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("n_nodes", 1, "a node beyond the 1 nodes"),
            ("n_nodes", -1, "a graph has no valid size"),
            ("directed", 1, "a graph has no valid size"),
            ("node_labels", {"$tuple": ["C"]}, "node_labels has the wrong length"),
            ("edges", [[0, 9]], "expected an array of numbers"),
            ("weights", [1.0], "expected an array of numbers"),
        ],
        ids=range(6),
    )
    def test_edges(self, name, value, words):
        """Edges to missing nodes are refused: compiled loops would read other memory."""
        data = saved(mercer.GraphDiffusion(mercer.Graph([(0, 1), (1, 2)], node_labels="CON"), 0.5))

        def change(document):
            found = next(v for v in state(document).values() if isinstance(v, dict) and "$object" in v)
            found["$object"]["state"][name] = value

        refused(with_model(data, change), words)


class TestMutations:
    @pytest.mark.parametrize("name", ["dense", "sparse", "precomputed"])
    def test_documents(self, name):
        """Random changes of the document with correct checksums give a ModelFileError or a model that predicts."""
        data = file(name)
        rng, parts, found = np.random.default_rng(1), members(data), 0
        original = json.loads(parts[MODEL])
        for _ in range(200):
            document = copy.deepcopy(original)
            for _ in range(rng.integers(1, 4)):
                mutate(document, rng)
            try:
                model = mercer.load(io.BytesIO(packed({**parts, MODEL: json.dumps(document).encode()})))
            except ModelFileError:
                found += 1
                continue
            try:
                values(model, name)
            except Exception as error:  # a model that is no use says so, and the process goes on
                assert not isinstance(error, SystemError | MemoryError)
        assert found > 50


def mutate(document, rng):
    """Replace, remove or swap a random part. Edits the document."""
    places = []

    def walk(node):
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(document)
    node, key = places[rng.integers(len(places))]
    other_node, other_key = places[rng.integers(len(places))]
    kind = rng.integers(4)
    if kind == 0:
        node[key] = [None, -1, 0, 3, 10**12, 1e308, "", "x", True, [], {}, {"$array": 2}, {"$float": "nan"}][
            rng.integers(13)
        ]
    elif kind == 1:
        node[key] = copy.deepcopy(other_node[other_key])
    elif kind == 2 and isinstance(node, dict):
        del node[key]
    elif isinstance(node[key], int | float):
        node[key] = node[key] + [1, -1, 1000, -1000][rng.integers(4)]
