"""Templates of generated C code.

"@l@" and "@U@" stand for the prefix of all names in lower and upper case.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.io.formats.python_templates import Language, wrapped
from mercer.kernels.features import Matrix


class CLanguage(Language):
    """C99."""

    def ref(self, name: str) -> str:
        return f"@U@_{name}"

    def number(self, value: float) -> str:
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return repr(value)

    def integer(self, name: str, value: int) -> str:
        return f"#define {self.ref(name)} {value}"

    def _table(self, kind: str, name: str, words: Iterable[str], size: str) -> str:
        return f"static const {kind} {self.ref(name)}[{size}] = {{\n{wrapped(words, self.indent)}\n}};"

    def matrix(self, name: str, values: Matrix) -> str:
        rows = ",\n".join(
            f"{self.indent}{{\n{wrapped((self.number(v) for v in row), 2 * self.indent)}\n{self.indent}}}"
            for row in values.tolist()
        )
        return f"static const double {self.ref(name)}[{values.shape[0]}][{values.shape[1]}] = {{\n{rows}\n}};"

    def labels(self, name: str, values: list[Any]) -> str:
        size = f"{self.integer('N_CLASSES', len(values))}\n"
        if isinstance(values[0], str):
            kind, words = "char *const", [f'"{_escaped(v)}"' for v in values]
        elif isinstance(values[0], float):
            kind, words = "double", [self.number(v) for v in values]
        else:
            large = max(values) > np.iinfo(np.int64).max
            kind = "unsigned long long" if large else "long long"
            words = [f"{int(v)}{'ULL' if large else 'LL'}" for v in values]
        return f"{size}const {kind} @l@_classes[{len(values)}] = {{\n{wrapped(words, self.indent)}\n}};"

    def call(self, function: str) -> str:
        return function

    def assign(self, name: str, text: str) -> str:
        return f"{self.indent}const double {name} = {text};"

    def function(self, statements: list[str], result: str) -> str:
        body = "\n".join(statements)
        return (
            "static double @l@_k(const double *x, int i) {\n"
            "    const double *z = @U@_VECTORS[i];\n    (void)z;\n    (void)x;\n"
            f"{body}\n    return {result};\n}}"
        )


def _escaped(text: str) -> str:
    """Encode a string as a UTF-8 C string: letters and digits as they are, all other bytes as octal escapes."""
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else f"\\{b:03o}" for b in text.encode())


_C_SUM = """
static double @l@_{name}(const double *x, const double *z, int n, const int *columns, const double *factors) {{
    double total = 0.0;
    for (int k = 0; k < n; k++) {{
        const double a = x[columns[k]], b = z[columns[k]];
        {body}
    }}
    return total;
}}
"""
_C_TERMS = {
    "dot": "total += factors[k] * a * b;",
    "square": "total += factors[k] * (a - b) * (a - b);",
    "absolute": "total += factors[k] * fabs(a - b);",
    "min": "total += factors[k] * (a < b ? a : b);",
    "chi2": "total += a + b > 0.0 ? factors[k] * (a - b) * (a - b) / (a + b) : 0.0;",
    "sine": "const double s = sin(factors[k] * (a - b));\n        total += 4.0 * s * s;",
}
_C_LARGEST = """
static int @l@_largest(const double *values, int n) {
    int best = 0;
    for (int c = 1; c < n; c++)
        if (values[c] > values[best]) best = c;
    return best;
}
"""
C = CLanguage(
    head="/* A model written by mercer. x has @U@_N_FEATURES numbers. */\n\n#include <math.h>",
    inside="@l@_",
    prepare={
        False: """
static void @l@_prepare(const double *x, double *out) {
    for (int k = 0; k < @U@_N_FEATURES; k++) out[k] = x[k];
}
""",
        True: """
static void @l@_prepare(const double *x, double *out) {
    for (int k = 0; k < @U@_N_FEATURES; k++) out[k] = x[k] * @U@_SCALE[k] + @U@_SHIFT[k];
}
""",
    },
    linear="""
static void @l@_values(const double *sample, double *out) {
    double x[@U@_N_FEATURES];
    @l@_prepare(sample, x);
    for (int p = 0; p < @U@_N_PROBLEMS; p++) {
        double total = 0.0;
        for (int k = 0; k < @U@_N_FEATURES; k++) total += @U@_WEIGHTS[p][k] * x[k];
        out[p] = total + @U@_INTERCEPT[p];
    }
}
""",
    kernel="""
static void @l@_values(const double *sample, double *out) {
    double x[@U@_N_FEATURES];
    @l@_prepare(sample, x);
    for (int p = 0; p < @U@_N_PROBLEMS; p++) out[p] = 0.0;
    for (int i = 0; i < @U@_N_VECTORS; i++) {
        const double k = @l@_k(x, i);
        for (int p = 0; p < @U@_N_PROBLEMS; p++) out[p] += @U@_COEF[i][p] * k;
    }
    for (int p = 0; p < @U@_N_PROBLEMS; p++) out[p] += @U@_INTERCEPT[p];
}
""",
    sums={
        **{name: _C_SUM.format(name=name, body=body) for name, body in _C_TERMS.items()},
        "power": """
static double @l@_power(double base, int exponent) {
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}
""",
        "unit": """
static double @l@_unit(double v) {
    return v > 0.0 ? 1.0 / sqrt(v) : 0.0;
}
""",
    },
    rules={
        "regression": """
double @l@_predict(const double *x) {
    double out[1];
    @l@_values(x, out);
    return out[0];
}
""",
        "regressions": "void @l@_predict(const double *x, double *out) {\n    @l@_values(x, out);\n}",
        "one": """
#define @U@_N_DECISION 1

void @l@_decision(const double *x, double *out) {
    @l@_values(x, out);
}
""",
        "novelty": """
int @l@_predict(const double *x) {
    double out[1];
    @l@_decision(x, out);
    return out[0] >= 0.0 ? 1 : -1;
}
""",
        "binary": """
int @l@_predict(const double *x) {
    double out[1];
    @l@_decision(x, out);
    return out[0] COMPARE 0.0 ? 1 : 0;
}
""",
        "largest": f"""
#define @U@_N_DECISION @U@_N_PROBLEMS
{_C_LARGEST}
void @l@_decision(const double *x, double *out) {{
    @l@_values(x, out);
}}

int @l@_predict(const double *x) {{
    double out[@U@_N_DECISION];
    @l@_decision(x, out);
    return @l@_largest(out, @U@_N_DECISION);
}}
""",
        "ovo": """
#define @U@_N_DECISION @U@_N_PROBLEMS

void @l@_decision(const double *x, double *out) {
    @l@_values(x, out);
}
""",
        "ovr": """
#define @U@_N_DECISION @U@_N_CLASSES

void @l@_decision(const double *x, double *out) {
    double values[@U@_N_PROBLEMS], sums[@U@_N_CLASSES];
    @l@_values(x, values);
    for (int c = 0; c < @U@_N_CLASSES; c++) out[c] = sums[c] = 0.0;
    for (int p = 0; p < @U@_N_PROBLEMS; p++) {
        const int i = @U@_FIRST[p], j = @U@_SECOND[p];
        out[values[p] < 0.0 ? j : i] += 1.0;
        sums[i] += values[p];
        sums[j] -= values[p];
    }
    for (int c = 0; c < @U@_N_CLASSES; c++) out[c] += sums[c] / (3.0 * (fabs(sums[c]) + 1.0));
}
""",
        "by_votes": f"""
{_C_LARGEST}
int @l@_predict(const double *x) {{
    double values[@U@_N_PROBLEMS], votes[@U@_N_CLASSES];
    @l@_values(x, values);
    for (int c = 0; c < @U@_N_CLASSES; c++) votes[c] = 0.0;
    for (int p = 0; p < @U@_N_PROBLEMS; p++) votes[values[p] > 0.0 ? @U@_FIRST[p] : @U@_SECOND[p]] += 1.0;
    return @l@_largest(votes, @U@_N_CLASSES);
}}
""",
        "by_decision": f"""
{_C_LARGEST}
int @l@_predict(const double *x) {{
    double out[@U@_N_DECISION];
    @l@_decision(x, out);
    return @l@_largest(out, @U@_N_DECISION);
}}
""",
    },
)
