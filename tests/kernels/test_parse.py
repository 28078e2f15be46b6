"""Kernels from text: nothing is evaluated, and what cannot be read is named with its position."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import (
    AdditiveChi2,
    Chi2,
    Constant,
    Cosine,
    Gaussian,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Normalized,
    On,
    Polynomial,
    PowerSeries,
    Precomputed,
    SetOf,
    Sigmoid,
    WeisfeilerLehman,
    parse_kernel,
)
from mercer.kernels.parse import ALIASES, KERNELS, PRESETS

JOINED = {alias.replace("_", "") for alias in ALIASES if "_" in alias}
KNOWN = f"Known kernels: {', '.join(sorted({*KERNELS, *ALIASES, *PRESETS} - JOINED))}."


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("0.5*gaussian(gamma=0.1) + linear()", 0.5 * Gaussian(0.1) + Linear()),
        ("rbf", Gaussian()),
        ("RBF()", Gaussian()),
        ("rbf(gamma='auto')", Gaussian("auto")),
        ("gaussian((0.1, 0.2))", Gaussian((0.1, 0.2))),
        ("gaussian(gamma=[0.1, 2])", Gaussian((0.1, 2.0))),
        ("poly(degree=2)", Polynomial(2)),
        ("inhomogeneous", Polynomial(3, 1.0, 1.0)),
        ("Inhomogeneous(2) + inhomogeneous(degree=4)", Polynomial(2, 1.0, 1.0) + Polynomial(4, 1.0, 1.0)),
        ("polynomial(3, 1/64, 1)", Polynomial(3, 1 / 64, 1.0)),
        ("power_series((1, 1, 0.5))", PowerSeries((1.0, 1.0, 0.5))),
        ("tanh(coef0=-1)", Sigmoid(coef0=-1.0)),
        ("cosine", Cosine()),
        ("histogram", Min()),
        ("intersection()", Intersection()),
        ("set_of(rbf)", SetOf(Gaussian())),
        ("weisfeiler_lehman(3)", WeisfeilerLehman(3)),
        ("laplace(2)", Laplacian(2.0)),
        ("matern(nu=2.5, length_scale=3)", Matern(2.5, 3.0)),
        ("chi2", Chi2()),
        ("additive_chi2", AdditiveChi2()),
        ("precomputed", Precomputed()),
        ("linear + 1", Linear() + 1.0),
        ("2 - 1 + linear", 1 + Linear()),
        ("1/4 * linear * 2 * 3", 0.25 * Linear() * 2 * 3),
        ("(linear + 1) ** 3", (Linear() + 1) ** 3),
        ("-0.5 * linear + +2 * min", -0.5 * Linear() + 2.0 * Min()),
        ("constant(3)", Constant(3.0)),
        ("normalised(linear + rbf)", Normalized(Linear() + Gaussian())),
        ("on('title', linear) + on(('a', \"b\"), rbf)", On("title", Linear()) + On(("a", "b"), Gaussian())),
        ("on(-1, min) * on(slice(2, 8), chi2)", On(-1, Min()) * On(range(2, 8), Chi2())),
        ("sum(linear, scaled(2, power(min, 2)))", Linear() + 2 * Min() ** 2),
        ("  linear  ", Linear()),
        ("linear\n\t+ rbf", Linear() + Gaussian()),
    ],
    ids=named,
)
def test_expressions_are_read(text, kernel):
    """Names in any case, parameters by place or name, numbers with arithmetic."""
    assert parse_kernel(text) == kernel


@pytest.mark.parametrize("name", [*KERNELS, *ALIASES])
def test_every_name_is_a_kernel(name):
    """By itself, or with a sentence that says which parameters are missing."""
    try:
        assert isinstance(parse_kernel(name), Kernel)
    except InvalidInputError as error:
        assert "cannot be built from these parameters. Its parameters are: " in str(error)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0.5 * gausian()", f" at position 7: there is no kernel 'gausian'. Did you mean 'gaussian'? {KNOWN}"),
        ("zzz", f" at position 1: there is no kernel 'zzz'. {KNOWN}"),
        (
            "rbf + graph_diffusion(beta=2)",
            " at position 7: GraphDiffusion has no text, because it takes a graph. Build it in Python, "
            "mercer.kernels.GraphDiffusion(...), and pass the object.",
        ),
        (
            "sklearnkernel",
            " at position 1: SklearnKernel has no text, because it takes a kernel of scikit-learn. Build it in Python, "
            "mercer.kernels.SklearnKernel(...), and pass the object.",
        ),
        ("linear + rbf(gama=1)", " at position 10: gaussian has no parameter 'gama'. Its parameters are: gamma."),
        (
            "inhomogeneous(coef0=2)",
            " at position 1: inhomogeneous has no parameter 'coef0'. Its parameters are: degree.",
        ),
        (
            "inhomogeneous(2, 1)",
            " at position 1: inhomogeneous cannot be built from these parameters. Its parameters are: degree.",
        ),
        ("linear(1)", " at position 1: linear cannot be built from these parameters. It has no parameters."),
        ("on(rbf)", " at position 1: on cannot be built from these parameters. Its parameters are: columns, kernel."),
        (
            "2 * rbf(gamma=-1)",
            " at position 5: gamma=-1 must be a finite number, at least 0, or one such number per feature.",
        ),
        ("linear ** 0.5", " at position 1: exponent=0.5 must be a whole number, at least 1."),
        ("rbf(", " at position 4: '(' was never closed. Write it like 0.5 * gaussian(gamma=0.1) + linear()."),
        ("", ": it is empty. Write it like 0.5 * gaussian(gamma=0.1) + linear()."),
        ("0.5", f" at position 1: 0.5 is not a kernel. {KNOWN} A constant kernel is constant(0.5)."),
        ("'rbf'", f" at position 1: 'rbf' is not a kernel. {KNOWN}"),
        ("linear + 'rbf'", " at position 10: 'rbf' is neither a kernel nor a number."),
        (
            "rbf + -linear",
            " at position 7: a sign can only stand before a number. To subtract a kernel, add -1 times it.",
        ),
        ("1/0 * rbf", " at position 1: division by zero"),
        ("rbf(**linear)", " at position 1: ** is not allowed in the parameters: write each one as name=value."),
        (
            "on(slice('a'), rbf)",
            " at position 4: a slice is slice(stop), slice(start, stop) or slice(start, stop, step).",
        ),
        (
            "rbf - linear",
            " at position 1: 'rbf - linear' is not allowed: kernels are combined by +, * and ** with a whole exponent, "
            "numbers by +, -, * and /.",
        ),
        (
            "linear + 9**9**9",
            " at position 13: '9 ** 9' is not allowed: kernels are combined by +, * and ** with a whole exponent, "
            "numbers by +, -, * and /.",
        ),
        (
            "linear.__class__",
            " at position 1: 'linear.__class__' is not allowed: use kernels, numbers, strings, tuples and the "
            "operators +, *, **.",
        ),
        (
            "__import__('os').system('ls')",
            f" at position 1: \"__import__('os').system\" is not the name of a kernel. {KNOWN}",
        ),
        ("  é + gausian", f" at position 3: there is no kernel 'é'. {KNOWN}"),
        ("on('é', rbf) + gausian", f" at position 16: there is no kernel 'gausian'. Did you mean 'gaussian'? {KNOWN}"),
        ("linear\n + gausian", f" at position 11: there is no kernel 'gausian'. Did you mean 'gaussian'? {KNOWN}"),
        ("-" * 5000 + "1", ": it is nested too deeply."),
        ("linear+" * 1400 + "linear", ": it is nested too deeply."),
        ("linear\0", " at position 7: invalid syntax. Write it like 0.5 * gaussian(gamma=0.1) + linear()."),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, problem):
    """The position counts characters of the text from 1; the sentence says what is allowed there."""
    with pytest.raises(InvalidInputError) as error:
        parse_kernel(text)
    assert str(error.value) == f"Cannot read the kernel {text!r}{problem}"


def test_other_things_than_texts_are_refused():
    """Objects other than strings, and very long strings, raise an error."""
    with pytest.raises(InvalidInputError) as error:
        parse_kernel(Linear())
    assert str(error.value) == "A kernel expression must be a string, but Linear() was given."
    with pytest.raises(InvalidInputError) as error:
        parse_kernel("linear+" * 2000)
    assert str(error.value) == "A kernel expression has at most 10000 characters, but this one has 14000."


WORDS = st.sampled_from([*KERNELS, *ALIASES, "slice", "eval", "lambda", "None", "gamma", "x"])
PIECES = st.one_of(WORDS, st.sampled_from(list("()[]+-*/,=.:'\"\n ")), st.integers().map(str), st.text(max_size=3))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_gives_a_kernel_or_one_kind_of_error(text):
    """Any text gives a kernel or an InvalidInputError, no other exception."""
    try:
        assert isinstance(parse_kernel(text), Kernel)
    except InvalidInputError as error:
        assert str(error).startswith("Cannot read the kernel ")
