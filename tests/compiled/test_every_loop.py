"""Each compiled function that Python can call is called by a test, which compares it with plain Python."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from mercer._compiled import compile as compiling
from mercer._compiled import machine_code

TESTS = Path(__file__).parents[1]
PACKAGE = Path(compiling.__file__).parents[1]

THREADS = "starts, wakes or is a thread: test_spin_pool.py tests the pool"
RUN = "a run of a solver, compared with the exact solver in tests/svm and tests/selection"
# why a function has no direct test
WITHOUT = {
    "mercer._compiled.shared_loops": {
        "init_worker": THREADS,
        "run_worker": THREADS,
        "assign": THREADS,
        "run_job": THREADS,
    },
    "mercer.linear._coordinate_loops": {"prefetch_row": "has no effect but on time"},
    "mercer.selection._chain_loops": {"solve_chain": RUN},
    "mercer.svm._pair_loops": {"solve_pairs": RUN},
}


def module_name(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


LOOP_MODULES = [module_name(path) for path in machine_code.loop_files() if path.name != "__init__.py"]


def compiled_functions(name):
    """The compiled functions of a module, by their names; those with an underscore are called by compiled code only."""
    return {
        found.py_func.__name__: found
        for found in vars(import_module(name)).values()
        if isinstance(found, compiling._Entry) and found.py_func.__module__ == name
    }


def references(path):
    """(module, name) of all that a test file refers to, beyond its imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules, names = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = node.module, alias.name
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            yield names[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr


@pytest.fixture(scope="module")
def tested():
    """The compiled functions that tests refer to, by the module in which they are."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        for module, name in references(path):
            entry = getattr(import_module(module), name, None) if module in LOOP_MODULES else None
            if isinstance(entry, compiling._Entry):
                found.add((entry.py_func.__module__, entry.py_func.__name__))
    return found


@pytest.mark.parametrize("module", LOOP_MODULES)
def test_each_function_has_a_direct_test(module, tested):
    """Exactly the functions in WITHOUT, which gives the reasons, have none."""
    functions = set(compiled_functions(module))
    missing = {name for name in functions if (module, name) not in tested}
    assert missing == set(WITHOUT.get(module, ()))


def test_the_list_has_all_functions():
    """The search finds the functions that the decorator makes, and the modules in WITHOUT exist."""
    assert len([name for module in LOOP_MODULES for name in compiled_functions(module)]) > 100
    assert set(WITHOUT) <= set(LOOP_MODULES)
