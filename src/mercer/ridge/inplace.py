"""BLAS and LAPACK on parts of matrices, in place: numpy cannot add a product to a part, and scipy copies parts.

scipy publishes the addresses of these functions for compiled languages (`scipy.linalg.cython_blas`). Matrices are rows
of contiguous numbers here; the functions take columns, and see each matrix transposed.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.kernels.features import Matrix, Vector

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
# module and argument types of each function: c a letter, i an integer, r a real number, p an array
_KINDS = {
    "gemm": ("cython_blas", "cciiirpipirpi"),
    "symm": ("cython_blas", "cciirpipirpi"),
    "syr2k": ("cython_blas", "cciirpipirpi"),
    "geqrf": ("cython_lapack", "iipippii"),
}
_REALS = {"s": ctypes.c_float, "d": ctypes.c_double}


@lru_cache
def _function(name: str, letter: str) -> Any:
    """The function and the types of its arguments, all of which are passed by their addresses."""
    from scipy.linalg import cython_blas, cython_lapack

    home, kinds = _KINDS[name]
    capsule = {"cython_blas": cython_blas, "cython_lapack": cython_lapack}[home].__pyx_capi__[letter + name]
    api = ctypes.pythonapi
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(pointer(capsule, signature))
    return function, kinds


def _call(name: str, letter: str, *given: Any) -> None:
    function, kinds = _function(name, letter)
    types = {"c": ctypes.c_char, "i": ctypes.c_int, "r": _REALS[letter]}
    held: list[Any] = [value if kind == "p" else types[kind](value) for kind, value in zip(kinds, given, strict=True)]
    function(*(h.ctypes.data if kind == "p" else ctypes.addressof(h) for kind, h in zip(kinds, held, strict=True)))


def _stride(a: Matrix) -> int:
    """The distance from a row to the next, in numbers."""
    if a.strides[1] != a.itemsize:
        raise ValueError("The rows of a matrix that is changed in place must be contiguous.")
    return max(a.strides[0] // a.itemsize, a.shape[1])


def add_product(out: Matrix, A: Matrix, B: Matrix, factor: float) -> None:
    """out += factor A B. Edits out; all of one type."""
    if out.size:
        _call(
            "gemm", _LETTERS[out.dtype], b"N", b"N", B.shape[1], A.shape[0], A.shape[1], factor, B, _stride(B), A,
            _stride(A), 1.0, out, _stride(out),
        )  # fmt: skip


def times_symmetric(V: Matrix, K: Matrix) -> Matrix:
    """V K, where the upper triangle of K is read."""
    out, n = np.empty(V.shape, V.dtype), len(K)
    _call("symm", _LETTERS[K.dtype], b"L", b"L", n, len(V), 1.0, K, _stride(K), V, _stride(V), 0.0, out, _stride(out))
    return out


def add_symmetric(K: Matrix, V: Matrix, W: Matrix, factor: float) -> None:
    """K += factor (V'W + W'V), in its upper triangle. Edits K."""
    n = len(K)
    _call("syr2k", _LETTERS[K.dtype], b"L", b"N", n, len(V), factor, V, _stride(V), W, _stride(W), 1.0, K, _stride(K))


def reflect_rows(E: Matrix, tau: Vector, work: Vector) -> None:
    """E' = QR: row j of E becomes column j of R, followed by the reflection H_j, Q = H_0 H_1 … Edits E and tau.

    H_j = I − τ_j v_j v_j', where v_j is zero before j and has a one there, which is not stored.
    """
    _call("geqrf", _LETTERS[E.dtype], E.shape[1], E.shape[0], E, _stride(E), tau, work, len(work), 0)
