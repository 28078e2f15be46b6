"""Model files: `save` and `load`."""

from __future__ import annotations

import json
import os
import pickle
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from mercer.estimators.base import warn_user
from mercer.exceptions import InvalidInputError, ModelFileError
from mercer.io.model_file.archive import MODEL, Archive, parse_json, write_archive
from mercer.io.model_file.arrays import array_bytes, read_array
from mercer.io.model_file.checks import check_object
from mercer.io.model_file.decoder import Decoder
from mercer.io.model_file.encoder import Encoder
from mercer.kernels import Kernel


def save(model: Any, path: Any) -> None:
    """Write a model to a file that contains no code.

    Every estimator and kernel of mercer can be saved, fitted or not, and pipelines of them with scikit-learn's common
    preprocessing. The file is a zip archive of JSON and NumPy arrays with checksums. It is written completely or not at
    all: an interrupted ``save`` leaves an existing file unchanged.

    Parameters
    ----------
    model : estimator, pipeline or kernel
        It must not contain Python functions, such as a callable kernel.
    path : str, path or binary file
        By convention the name ends in ".mercer".

    Examples
    --------
    >>> import tempfile, os
    >>> import mercer
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mercer")
    >>> mercer.save(mercer.SVC().fit(X, y), path)
    >>> mercer.load(path).predict([[0.4], [2.9]]).tolist()
    ['low', 'high']
    """
    if not isinstance(model, BaseEstimator | Kernel):
        raise InvalidInputError(
            f"save writes estimators, pipelines and kernels, but was given {model!r:.80} of type "
            f"{type(model).__name__}."
        )
    if hasattr(model, "to_local"):
        raise InvalidInputError(
            f"{type(model).__name__} of mercer.dask belongs to a cluster: save its ordinary model, model.to_local()."
        )
    encoder = Encoder()
    document = {"model": encoder.encode(model, type(model).__name__), "shared": encoder.shared}
    members = {MODEL: json.dumps(document, allow_nan=False, separators=(",", ":")).encode()}
    members |= {f"arrays/{i}.npy": array_bytes(array) for i, array in enumerate(encoder.arrays)}
    about = {"model": type(model).__name__, "mercer": version("mercer"), "scikit-learn": sklearn.__version__}
    write_archive(path, members, about)


def load(path: Any) -> Any:
    """Read a model that `save` has written. Loading runs no code from the file.

    Parameters
    ----------
    path : str, path or binary file
        Files of all earlier versions can be read.

    Returns
    -------
    model : estimator, pipeline or kernel
        Its predictions are bit-identical to those of the saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged, or is not a model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import mercer
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mercer")
    >>> mercer.save(mercer.SVC().fit([[0.0], [1.0]], ["low", "high"]), path)
    >>> mercer.load(path).predict([[0.9]])
    array(['high'], dtype='<U4')
    """
    name = str(path) if isinstance(path, str | os.PathLike) else "the file"
    try:
        if hasattr(path, "read"):
            return _load(path)
        with Path(path).open("rb") as file:
            return _load(file)
    except ModelFileError as error:
        if not hasattr(path, "read") and is_pickle(path):
            raise ModelFileError(
                f"{name} is not a model file but a pickle, which runs code when it is loaded. If you trust it, load "
                "it with joblib.load and write a model file with mercer.save."
            ) from None
        raise ModelFileError(f"{name} cannot be read as a model: {error}.") from None
    except (RecursionError, MemoryError) as error:
        raise ModelFileError(f"{name} cannot be read as a model: {type(error).__name__}.") from None


def is_pickle(path: Any) -> bool:
    """Whether a file is a pickle, by its first bytes or, since it may be compressed, by its suffix."""
    if Path(path).suffix.lower() in (".pkl", ".pickle", ".joblib"):
        return True
    with Path(path).open("rb") as file:
        start = file.read(2)
    return len(start) == 2 and start[0] == 0x80 and start[1] <= pickle.HIGHEST_PROTOCOL


def _load(file: Any) -> Any:
    archive = Archive(file)

    def array(number: int) -> Any:
        name = f"arrays/{number}.npy"
        return read_array(archive.read(name), name)

    decoder = Decoder(array, check_object)
    document = parse_json(archive.read(MODEL), MODEL)
    try:
        model = decoder.decode_all(document)
    except ModelFileError:
        raise
    except Exception as error:  # a value of a type that no check covers
        raise ModelFileError(f"it is not consistent ({type(error).__name__}: {error!s:.200})") from None
    if not isinstance(model, BaseEstimator | Kernel):
        raise ModelFileError("it holds neither an estimator nor a kernel")
    written = archive.manifest.get("scikit-learn")
    if written != sklearn.__version__ and any(name.startswith("sklearn.") for name in decoder.classes):
        warn_user(
            f"The file was written with scikit-learn {written!s:.20}, but {sklearn.__version__} is installed: the "
            "scikit-learn steps of the pipeline may not work.",
            UserWarning,
        )
    return model
