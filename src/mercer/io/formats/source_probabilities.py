"""Generate the source code that computes probabilities, in Python and C."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mercer.io.formats.c_templates import CLanguage
from mercer.io.formats.plain_probabilities import ADVANTAGE, SMALLEST, SMALLEST_POWER, Logistic, PlainProbabilities
from mercer.io.formats.python_templates import Language


def probability_parts(language: Language, plain: PlainProbabilities, n_classes: int, tables_known: bool) -> list[str]:
    """Return the functions up to ``probabilities(x)``. ``tables_known``: the tables FIRST and SECOND of pairs exist."""
    text = _C if isinstance(language, CLanguage) else _PYTHON
    if plain.softmax:
        return [text["shares"], text["softmax"]]
    parts, calls = [], []
    for number, one in enumerate(plain.maps):
        argument = f"v[{number}]"
        if isinstance(one, Logistic):
            numbers = [one.slope, one.offset, one.a, one.b, one.c]
            calls.append(f"{language.inside}logistic({', '.join([argument, *map(language.number, numbers)])})")
            continue
        size = len(one.thresholds)
        if size == 0:
            calls.append(language.number(float(one.base[0])))
            continue
        names = [f"{name}_OF_{number}" for name in ("THRESHOLDS", "BASE", "SLOPE", "ANCHOR")]
        tables = zip(names, (one.thresholds, one.base, one.slope, one.anchor), strict=True)
        parts += [language.numbers(name, table) for name, table in tables]
        calls.append(f"{language.inside}pieces({', '.join([argument, str(size), *map(language.ref, names)])})")
    needed = {("pieces" if "pieces(" in call else "logistic") for call in calls if "(" in call}
    parts += [text[name] for name in sorted(needed)]
    parts.append(text["chances"].replace("CALLS", text["call"].join(_assigned(text, calls))))
    steps = ["clip"] if plain.clipped else []
    if n_classes == 2:
        steps.append("two")
    elif plain.pairs:
        steps.append("pairs")
        if not tables_known:
            pairs = np.array(list(combinations(range(n_classes), 2)))
            parts += [language.integers(name, pairs[:, k]) for k, name in enumerate(("FIRST", "SECOND"))]
        parts.append(text["coupled"])
    else:
        steps.append("rest")
    if n_classes > 2:
        parts.insert(0, text["shares"])
    if plain.power != 1.0:
        steps.append("power")
    if plain.agree:
        steps.append("agree")
        if n_classes == 2:
            parts.append(text["shares"])
        parts.append(text["agreed"])
    body = "".join(text[f"step {name}"] for name in steps)
    parts.append(text["probabilities"].replace("STEPS", body.strip("\n")))
    known = {"SMALLEST_POWER": SMALLEST_POWER, "SMALLEST": SMALLEST, "ADVANTAGE": ADVANTAGE, "POWER": plain.power}
    found = []
    for part in parts:
        for name, value in known.items():
            part = part.replace(f"${name}$", language.number(value))
        found.append(part)
    return found


def _assigned(text: dict[str, str], calls: list[str]) -> list[str]:
    return [text["assign"].format(number=number, call=call) for number, call in enumerate(calls)]


_PYTHON = {
    "call": ",\n",
    "assign": "        {call}",
    "logistic": """
def _softplus(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def _logistic(v, slope, offset, a, b, c):
    z = slope * v + offset
    z = b * _softplus(z) - a * _softplus(-z) + c
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))
""",
    "pieces": """
def _pieces(v, n, thresholds, base, slope, anchor):
    i = sum((t < v) + (t <= v) for t in thresholds)
    return base[i] + slope[i] * (v - anchor[i])
""",
    "chances": """
def _chances(v):
    return [
CALLS,
    ]
""",
    "shares": """
def _shares(p):
    total = sum(p)
    return [v / total for v in p]
""",
    "coupled": """
def _coupled(r):
    k = N_CLASSES
    R = [[0.0] * k for _ in range(k)]
    for v, i, j in zip(r, FIRST, SECOND):
        R[i][j], R[j][i] = v, 1.0 - v
    A = [[1.0 - R[i][j] * R[j][i] for j in range(k)] + [1.0] for i in range(k)]
    for t in range(k):
        A[t][t] = 1.0 + sum(R[i][t] ** 2 for i in range(k))
    for t in range(k):
        A[t] = [v / A[t][t] for v in A[t]]
        for i in range(k):
            if i != t:
                factor = A[i][t]
                A[i] = [v - factor * w for v, w in zip(A[i], A[t])]
    return _shares([max(row[k], 0.0) for row in A])
""",
    "agreed": """
def _agreed(p, winner):
    own, level, total = p[winner], p[winner], p[winner]
    for n, v in enumerate(sorted(p[:winner] + p[winner + 1 :], reverse=True)):
        total += v
        level = max(level, total / (n + 2))
    share = 0.25 + 0.5 * own
    found = [(1.0 - $ADVANTAGE$) * min(v, level) + $ADVANTAGE$ * (1.0 - share) / N_CLASSES for v in p]
    found[winner] += (1.0 - $ADVANTAGE$) * (level - min(own, level)) + $ADVANTAGE$ * share
    return _shares(found)
""",
    "softmax": """
def probabilities(x):
    v = values(x)
    return _shares([math.exp(one - max(v)) for one in v])
""",
    "step clip": "\n    p = [min(max(v, $SMALLEST$), 1.0 - $SMALLEST$) for v in p]",
    "step two": "\n    p = [1.0 - p[0], p[0]]",
    "step pairs": "\n    p = _coupled(p)",
    "step rest": "\n    p = _shares([max(v, $SMALLEST_POWER$) for v in p])",
    "step power": "\n    p = _shares([(max(v, $SMALLEST_POWER$) / max(p)) ** $POWER$ for v in p])",
    "step agree": "\n    p = _agreed(p, CLASSES.index(predict(x)))",
    "probabilities": """
def probabilities(x):
    p = _chances(values(x))
STEPS
    return p
""",
}
_C = {
    "call": "\n",
    "assign": "    out[{number}] = {call};",
    "logistic": """
static double @l@_softplus(double z) {
    return (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
}

static double @l@_logistic(double v, double slope, double offset, double a, double b, double c) {
    double z = slope * v + offset;
    z = b * @l@_softplus(z) - a * @l@_softplus(-z) + c;
    return z >= 0.0 ? 1.0 / (1.0 + exp(-z)) : exp(z) / (1.0 + exp(z));
}
""",
    "pieces": """
static double @l@_pieces(
    double v, int n, const double *thresholds, const double *base, const double *slope, const double *anchor
) {
    int i = 0;
    for (int t = 0; t < n; t++) i += (thresholds[t] < v) + (thresholds[t] <= v);
    return base[i] + slope[i] * (v - anchor[i]);
}
""",
    "chances": """
static void @l@_chances(const double *v, double *out) {
CALLS
}
""",
    "shares": """
static void @l@_shares(double *p) {
    double total = 0.0;
    for (int c = 0; c < @U@_N_CLASSES; c++) total += p[c];
    for (int c = 0; c < @U@_N_CLASSES; c++) p[c] /= total;
}
""",
    "coupled": """
static void @l@_coupled(const double *r, double *out) {
    enum { K = @U@_N_CLASSES };
    double R[K][K], A[K][K + 1];
    for (int i = 0; i < K; i++) R[i][i] = 0.0;
    for (int p = 0; p < @U@_N_PROBLEMS; p++) {
        R[@U@_FIRST[p]][@U@_SECOND[p]] = r[p];
        R[@U@_SECOND[p]][@U@_FIRST[p]] = 1.0 - r[p];
    }
    for (int i = 0; i < K; i++) {
        for (int j = 0; j < K; j++) A[i][j] = 1.0 - R[i][j] * R[j][i];
        for (int j = 0; j < K; j++) A[i][i] += R[j][i] * R[j][i];
        A[i][K] = 1.0;
    }
    for (int t = 0; t < K; t++) {
        const double pivot = A[t][t];
        for (int j = 0; j <= K; j++) A[t][j] /= pivot;
        for (int i = 0; i < K; i++) {
            const double factor = A[i][t];
            if (i == t) continue;
            for (int j = 0; j <= K; j++) A[i][j] -= factor * A[t][j];
        }
    }
    for (int c = 0; c < K; c++) out[c] = A[c][K] > 0.0 ? A[c][K] : 0.0;
    @l@_shares(out);
}
""",
    "agreed": """
static void @l@_agreed(double *p, int winner) {
    double others[@U@_N_CLASSES], level = p[winner], total = p[winner];
    int n = 0;
    for (int c = 0; c < @U@_N_CLASSES; c++) {
        int place = n;
        if (c == winner) continue;
        for (; place > 0 && others[place - 1] < p[c]; place--) others[place] = others[place - 1];
        others[place] = p[c];
        n++;
    }
    for (int i = 0; i < n; i++) {
        total += others[i];
        if (total / (i + 2) > level) level = total / (i + 2);
    }
    const double share = 0.25 + 0.5 * p[winner];
    for (int c = 0; c < @U@_N_CLASSES; c++) {
        const double v = c == winner || p[c] > level ? level : p[c];
        p[c] = (1.0 - $ADVANTAGE$) * v + $ADVANTAGE$ * (1.0 - share) / @U@_N_CLASSES;
    }
    p[winner] += $ADVANTAGE$ * share;
    @l@_shares(p);
}
""",
    "softmax": """
void @l@_probabilities(const double *x, double *out) {
    double largest;
    @l@_values(x, out);
    largest = out[0];
    for (int c = 1; c < @U@_N_CLASSES; c++) if (out[c] > largest) largest = out[c];
    for (int c = 0; c < @U@_N_CLASSES; c++) out[c] = exp(out[c] - largest);
    @l@_shares(out);
}
""",
    "step clip": """
    for (int i = 0; i < @U@_N_PROBLEMS; i++) {
        if (p[i] < $SMALLEST$) p[i] = $SMALLEST$;
        if (p[i] > 1.0 - $SMALLEST$) p[i] = 1.0 - $SMALLEST$;
    }
""",
    "step two": "\n    out[0] = 1.0 - p[0];\n    out[1] = p[0];\n",
    "step pairs": "\n    @l@_coupled(p, out);\n",
    "step rest": """
    for (int c = 0; c < @U@_N_CLASSES; c++) out[c] = p[c] > $SMALLEST_POWER$ ? p[c] : $SMALLEST_POWER$;
    @l@_shares(out);
""",
    "step power": """
    for (int c = 0; c < @U@_N_CLASSES; c++) {
        out[c] = pow(out[c] > $SMALLEST_POWER$ ? out[c] : $SMALLEST_POWER$, $POWER$);
    }
    @l@_shares(out);
""",
    "step agree": "\n    @l@_agreed(out, @l@_predict(x));\n",
    "probabilities": """
void @l@_probabilities(const double *x, double *out) {
    double values[@U@_N_PROBLEMS], p[@U@_N_PROBLEMS];
    @l@_values(x, values);
    @l@_chances(values, p);
STEPS
}
""",
}
