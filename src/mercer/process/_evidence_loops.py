"""Passes over the kernel matrix of a Gaussian process (see `mercer.process.evidence`)."""

from mercer._compiled.compile import compiled


@compiled()
def weigh_pairs(alpha, inverse, top, left, out):
    """out[i - top, j - left] = sum_t alpha[t, i] alpha[t, j] - m inverse[i, j], for the m rows of alpha.

    Entries below the diagonal are zero and those on it are halved, so that each pair counts once.
    """
    m = alpha.shape[0]
    for r in range(out.shape[0]):
        i = top + r
        below = min(max(0, i - left), out.shape[1])
        for j in range(below):
            out[r, j] = 0.0
        line, source = out[r, below:], inverse[i, left + below :]
        for j in range(line.shape[0]):
            line[j] = -m * source[j]
        for t in range(m):
            factor, row = alpha[t, i], alpha[t, left + below :]
            for j in range(line.shape[0]):
                line[j] += factor * row[j]
        if left <= i < left + out.shape[1]:
            line[0] *= 0.5


@compiled()
def clear_below(A):
    """Set the entries below the diagonal to zero. Edits A."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = 0.0
