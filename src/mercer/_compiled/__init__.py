"""Shared by all methods: the decorator of compiled functions, threads, vector code, blocks of kernel values."""

import gc


def load_numba() -> None:
    """Import numba without collecting garbage, which takes half of the time where many objects exist already."""
    if not gc.isenabled():
        return
    gc.disable()
    try:
        import numba  # noqa: F401
    finally:
        gc.enable()
