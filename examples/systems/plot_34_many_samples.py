r"""
34. Many samples, many support vectors
======================================

[M5] warns that the best packages handle 50,000 samples and not more than 100,000, and that a machine with many support
vectors is slow to evaluate. The matrix :math:`K` has :math:`n^2` entries, but a solver does not need them all. mercer
keeps :math:`O(n)` numbers in memory, and computes rows of :math:`K` for samples that may become support vectors. At
every size the fit ends with a gap, computed over all samples.

For the second warning: by the representer theorem two machines are close if their functions are, :math:`{|f(x) - g(x)|}
\le {|f - g|} \sqrt{k(x, x)}`. ``compress`` looks for a :math:`g` with fewer support vectors and states that bound.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, certify, compress

BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"


def samples(n, seed=0):
    """Four features, of which the product of two decides; two labels in a hundred are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] * X[:, 1] > 0.1
    return X, np.where(rng.random(n) < 0.02, ~y, y)


# %%
# The figure
# ----------
#
# Left the share of the :math:`n^2` entries of the matrix that a fit computes, and the share of support vectors. Right a
# machine with fewer and fewer support vectors, and the largest change of a decision value on 2,000 new samples, beside
# the bound.

sizes = (500, 1000, 2000, 4000, 8000)
models = {n: SVC(C=1.0, gamma=0.3).fit(*samples(n)) for n in sizes}
model = models[2000]
new, _ = samples(2000, seed=1)
before = model.decision_function(new)
allowed = (0.01, 0.03, 0.1, 0.3)
small = [compress(model, max_error=error) for error in allowed]
seen = [np.abs(machine.decision_function(new) - before).max() for machine in small]
counts = [len(machine.support_vectors_) for machine in small]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained")
left.semilogx(
    sizes, [models[n].kernel_evaluations_ / n**2 for n in sizes], "o-", color=BLUE, label="kernel values / n²"
)
left.semilogx(sizes, [len(models[n].support_) / n for n in sizes], "s-", color=ORANGE, label="support vectors / n")
left.set(xlabel="samples n", ylabel="share", ylim=(0, 1))
left.set_xticks(sizes, [f"{n:,}" for n in sizes])
left.minorticks_off()
left.legend(fontsize="small")
right.plot(counts, allowed, "s--", color=RED, label="promised")
right.plot(counts, seen, "o-", color=BLUE, label="largest of 2,000 new samples")
right.axvline(len(model.support_), color=GREY, lw=1, ls=":", label=f"{len(model.support_)} support vectors before")
right.set(xlabel="support vectors", ylabel="change of a decision value", yscale="log", xlim=(0, None))
right.legend(fontsize="small")
plt.show()

# %%
# The numbers
# -----------

print("samples   support vectors   kernel values / n²   relative gap")
for size in sizes:
    found = models[size]
    share = found.kernel_evaluations_ / size**2
    print(f"{size:7,} {len(found.support_):17,} {share:18.2f} {found.certificate_.relative_gap:16.1e}")
    assert found.certificate_.valid and found.certificate_.relative_gap < 1e-3
again = certify(models[8000], *samples(8000))
assert again.valid and again.relative_gap < 1e-3  # from the samples and the coefficients alone
assert all(change <= error for change, error in zip(seen, allowed, strict=True))
assert counts == sorted(counts, reverse=True) and counts[0] < len(model.support_)

# %%
# What to notice
# --------------
#
# * Support vectors grow in proportion to :math:`n` where labels are noisy: each wrong label is one. That is why
#   ``predict`` slows down, and why ``compress`` helps: neighbouring ones can be merged.
# * Times for up to a million samples, beside other packages, are in the benchmarks, including where mercer is slower.
#
# Links
# -----
#
# :Names: :obj:`mercer.SVC`, :obj:`mercer.compress`
# :Tests: ``tests/notes/test_theory.py::test_34_many_samples``, ``test_34_a_hundred_thousand_samples``,
#         ``tests/notes/test_selection.py::test_34_fewer_support_vectors``
# :See also: :doc:`plot_05_optimality`, :doc:`plot_28_representer_theorem`, :doc:`plot_33_dictionaries`
