"""The kinds of samples (domains): vectors, strings, sets, graphs, ..., and the checks that kernels on them share.

A kernel names its domain. Vectors and rows of kernel matrices are arrays and are checked in ``validation``. Samples of
all other domains are sequences of objects: lists, tuples, one-dimensional arrays, columns of data frames, and arrays or
frames of a single column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel


@dataclass(frozen=True)
class Domain:
    """One kind of samples.

    Attributes
    ----------
    noun : the plural used in messages.
    accepts : a cheap test whether an object may be a sample. It rejects the typical samples of other domains.
    example : samples as a user may write them.
    tags : the fields of scikit-learn's ``input_tags`` that differ from those of vectors.
    objects : whether samples are a sequence of objects, which must not be converted to a numeric array.
    arrays : whether the rows (or matrices) of an array of two (or three) dimensions may be the samples.
    """

    noun: str
    accepts: Callable[[Any], bool]
    example: str
    tags: tuple[tuple[str, bool], ...] = ()
    objects: bool = True
    arrays: bool = False


def _is_missing(sample: Any) -> bool:
    """Whether a sample is None, NaN, or a missing value of a data frame."""
    return sample is None or type(sample).__name__ in ("NAType", "NaTType") or (_is_number(sample) and sample != sample)


def _is_number(sample: Any) -> bool:
    return isinstance(sample, Number | np.number | np.bool_)


def _is_set(sample: Any) -> bool:
    return isinstance(sample, Set | Sequence | np.ndarray) and not isinstance(sample, str | bytes)


def _is_series(sample: Any) -> bool:
    if isinstance(sample, np.ndarray):
        return sample.ndim in (1, 2) and sample.dtype.kind in "fiub"
    return isinstance(sample, Sequence) and not isinstance(sample, str | bytes)


def _is_graph(sample: Any) -> bool:
    return not isinstance(sample, str | bytes | Mapping | Set) and not _is_number(sample)


def _is_node(sample: Any) -> bool:
    return not isinstance(sample, Mapping | Set | list | np.ndarray)


def _is_record(sample: Any) -> bool:
    return isinstance(sample, Mapping | Sequence | np.ndarray) and not isinstance(sample, str | bytes)


_OBJECTS = (("two_d_array", False), ("sparse", False))

DOMAINS: dict[str, Domain] = {
    "vectors": Domain("vectors", _is_series, "a matrix with a row of numbers per sample", (), objects=False),
    "matrix": Domain(
        "rows of a kernel matrix", _is_series, "a square matrix", (("pairwise", True), ("sparse", False)), False
    ),
    "strings": Domain(
        "strings", lambda sample: isinstance(sample, str), "['abc', 'abd']", (*_OBJECTS, ("string", True))
    ),
    "sets": Domain("sets", _is_set, "[{'milk', 'bread'}, {'milk'}]", (*_OBJECTS, ("categorical", True)), arrays=True),
    "graphs": Domain("graphs", _is_graph, "[Graph([(0, 1), (1, 2)]), Graph([(0, 1)])]", _OBJECTS, arrays=True),
    "nodes": Domain("nodes of a graph", _is_node, "[0, 1, 2]", (*_OBJECTS, ("one_d_array", True))),
    "series": Domain(
        "time series", _is_series, "[[0.1, 0.5, 0.3], [0.2, 0.4]]", (*_OBJECTS, ("three_d_array", True)), arrays=True
    ),
    "records": Domain(
        "records", _is_record, "a data frame, or [{'title': 'abc', 'price': 3.5}]", (("sparse", False), ("dict", True))
    ),
    "any": Domain("objects of any kind", lambda sample: True, "a list"),
}


def noun_of(domain: str) -> str:
    """The plural for samples of a domain; the domain's own name if it is not in the table."""
    return DOMAINS[domain].noun if domain in DOMAINS else domain


def tags_of(domain: str) -> tuple[tuple[str, bool], ...]:
    """The fields of scikit-learn's ``input_tags`` that a domain changes. An unknown domain has those of objects."""
    return DOMAINS[domain].tags if domain in DOMAINS else _OBJECTS


def is_objects(domain: str) -> bool:
    """Whether samples of this domain are a sequence of objects, which validation leaves as they are."""
    return domain not in DOMAINS or DOMAINS[domain].objects


def is_sequence(domain: str) -> bool:
    """Whether samples of this domain are a sequence of objects of one known type: not records, not "any"."""
    return domain in DOMAINS and DOMAINS[domain].objects and domain not in ("records", "any")


def as_objects(kernel: Kernel, samples: Any) -> list[Any]:
    """The samples as a list of objects of the kernel's domain. Raises an error that names what was found instead.

    The ``prepare`` of every kernel on objects calls it first. An array or data frame of one column counts as that
    column.

    >>> from mercer.kernels import Spectrum
    >>> as_objects(Spectrum(3), np.array([["abc"], ["abd"]], dtype=object))
    ['abc', 'abd']
    >>> as_objects(Spectrum(3), ["abc", None])
    Traceback (most recent call last):
    ...
    mercer.exceptions.InvalidInputError: Spectrum(k=3) compares strings, but sample 1 is missing (None). Remove such \
samples, or replace missing values, for instance by ''.
    """
    domain = DOMAINS[kernel.domain]
    items = _items(kernel.__repr__, domain, samples)
    if kernel.domain == "strings" and set(map(type, items)) <= {str}:
        return items  # checking each string would take longer than counting its characters
    for i, item in enumerate(items):
        if not domain.accepts(item) or _is_missing(item):
            raise _wrong_sample(repr(kernel), domain, i, item)
    return items


def check_sequence(kernel: Callable[[], str], name: str, samples: Any) -> None:
    """Raise unless the samples are a sequence of objects of a domain. Single objects are not checked.

    ``kernel()`` is the kernel's name in messages.
    """
    if name == "any" or name not in DOMAINS:
        return
    domain = DOMAINS[name]
    if name != "records":
        _items(kernel, domain, samples)
    elif _is_one(samples):
        raise _wrong_container(kernel(), domain, f"was given {describe(samples)} instead of a sequence of them")


def check_no_objects(kernel: Callable[[], str], samples: Any) -> None:
    """Raise if a kernel on vectors is given strings, sets or records. ``kernel()`` is its name in messages.

    >>> check_no_objects(lambda: "Gaussian()", ["abc", "abd"])
    Traceback (most recent call last):
    ...
    mercer.exceptions.InvalidInputError: Gaussian() compares vectors, but sample 0 is the string 'abc'. Use a kernel \
on strings such as Spectrum(3), or turn them into numbers first.
    """
    if isinstance(samples, np.ndarray) and (samples.ndim != 1 or samples.dtype.kind not in "OU"):
        return
    if isinstance(samples, str) or not (isinstance(samples, list | tuple | np.ndarray) or hasattr(samples, "to_list")):
        return
    if len(samples) == 0 or hasattr(samples, "columns"):
        return
    first = next(iter(samples))
    if isinstance(first, str | bytes | Mapping | Set):
        raise _wrong_sample(kernel(), DOMAINS["vectors"], 0, first)


def _is_one(samples: Any) -> bool:
    """Whether this is a single sample instead of a sequence of samples."""
    return isinstance(samples, str | bytes | Mapping | Set) or _is_missing(samples) or _is_number(samples)


def _wrong_sample(kernel: str, domain: Domain, i: int, sample: Any) -> InvalidInputError:
    return InvalidInputError(
        f"{kernel} compares {domain.noun}, but sample {i} is {describe(sample)}. {_advice(kernel, domain, sample)}"
    )


def _wrong_container(kernel: str, domain: Domain, found: str) -> InvalidInputError:
    return InvalidInputError(
        f"{kernel} compares {domain.noun}, but {found}. Give a sequence with one element per sample, such as "
        f"{domain.example}."
    )


def _items(kernel: Callable[[], str], domain: Domain, samples: Any) -> list[Any]:
    """The elements of a sequence, or of a table with one column."""
    if _is_one(samples):
        raise _wrong_container(kernel(), domain, f"was given {describe(samples)} instead of a sequence of them")
    if sp.issparse(samples):
        raise _wrong_container(kernel(), domain, f"was given a sparse matrix of shape {samples.shape}")
    if hasattr(samples, "columns") and hasattr(samples, "shape"):
        columns = list(samples.columns)
        if len(columns) == 1:
            return list(samples[columns[0]])
        name = repr(columns[0]) if columns else "'name'"
        raise InvalidInputError(
            f"{kernel()} compares {domain.noun}, but was given a data frame of {len(columns)} columns. Choose one: "
            f"On({name}, {kernel()})."
        )
    if isinstance(samples, np.ndarray) and samples.ndim != 1:
        if samples.ndim in (2, 3) and domain.arrays:
            return list(samples)
        if samples.ndim == 2 and samples.shape[1] == 1:
            return list(samples[:, 0])
        raise _wrong_container(kernel(), domain, f"was given an array of shape {samples.shape}")
    if not isinstance(samples, Iterable):
        raise _wrong_container(kernel(), domain, f"was given {describe(samples)}")
    return list(samples)


def describe(sample: Any) -> str:
    """A phrase for one sample in messages; for dicts and sets it names the domain to which they would belong.

    >>> describe({"title": "abc"}), describe(3.5), describe("abc")
    ('a dict (records)', 'the number 3.5', "the string 'abc'")
    """
    if _is_missing(sample):
        return f"missing ({sample})"
    if isinstance(sample, str):
        return f"the string {str(sample)!r}" if len(sample) <= 20 else f"a string of {len(sample)} characters"
    if isinstance(sample, bytes):
        return f"bytes ({len(sample)} of them)"
    if _is_number(sample):
        return f"the number {sample}"
    kind = type(sample).__name__
    article = "an" if kind[:1] in "aeiou" else "a"
    if isinstance(sample, Mapping):
        return f"{article} {kind} (records)"
    if isinstance(sample, Set):
        return f"{article} {kind} (sets)"
    if isinstance(sample, np.ndarray):
        return f"an array of shape {sample.shape}"
    return f"{article} {kind}"


def _advice(kernel: str, domain: Domain, sample: Any) -> str:
    """What to do about a sample of the wrong kind."""
    if _is_missing(sample):
        blank = ", for instance by ''" if domain.noun == "strings" else ""
        return f"Remove such samples, or replace missing values{blank}."
    if isinstance(sample, Mapping):
        key = next(iter(sample), "column")
        return f"Use On({key!r}, {kernel}) to compare one entry of each record."
    if isinstance(sample, Set) and domain.noun != "sets":
        return "Use a kernel on sets such as Intersection() or Jaccard()."
    if isinstance(sample, bytes):
        return "Decode them first: sample.decode()."
    if domain.noun == "strings":
        if _is_number(sample):
            return "Use a kernel on vectors such as Gaussian() for numbers, or write them as text: str(sample)."
        if isinstance(sample, Sequence | np.ndarray) and len(sample) == 1 and isinstance(sample[0], str):
            return "Take the string out of it: [sample[0] for sample in samples]."
    if isinstance(sample, str):
        return "Use a kernel on strings such as Spectrum(3), or " + (
            "turn them into numbers first." if domain.noun == "vectors" else "split them: sample.split()."
        )
    return f"Give samples such as {domain.example}."
