"""
Are these two samples different? Does this depend on that?
==========================================================

A test of the means sees a shift, a test of the correlation a line. A kernel sees any difference between two samples,
and any dependence, also between strings or graphs. Its null distribution comes from permutations.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Gaussian, Normalized, Spectrum
from mercer.tests import conditional_independence_test, hsic_test, mmd_test

rng = np.random.default_rng(0)

# %%
# Two samples with the same mean and the same variances: one is Gaussian, the other lies on a ring. The maximum mean
# discrepancy compares their means in the feature space of a Gaussian kernel. Its width should be that of the
# differences which matter: here less than the median distance between samples, which is the default.

angle = rng.uniform(0, 2 * np.pi, 150)
ring = np.sqrt(2.0) * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(150, 2))
cloud = rng.normal(size=(150, 2))
kernel = Gaussian(gamma=1.0)
different = mmd_test(cloud, ring, kernel, random_state=0)
print(different)

# %%
# On the ring the coordinates are uncorrelated, but they are not independent.

dependent = hsic_test(ring[:, 0], ring[:, 1], kernel, kernel, random_state=0)
independent = hsic_test(cloud[:, 0], cloud[:, 1], kernel, kernel, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(14, 3.9), layout="constrained")
axes[0].plot(*cloud.T, "o", color="#0072b2", ms=4, label="cloud")
axes[0].plot(*ring.T, "s", color="#e69f00", ms=4, label="ring")
axes[0].set(title="equal means and variances", aspect="equal")
axes[0].legend(loc="upper right")
different.plot(axes[1]).set_title("two samples: MMD²")
dependent.plot(axes[2]).set_title("coordinates of the ring: HSIC")
plt.show()
assert different.p_value < 0.01 and dependent.p_value < 0.01 and independent.p_value > 0.05
assert abs(np.corrcoef(ring.T)[0, 1]) < 0.2

# %%
# A common cause makes two variables dependent. Given the cause they are independent, and the third test says so.

rng = np.random.default_rng(1)
cause = rng.normal(size=200)
one, other = np.sin(cause) + 0.4 * rng.normal(size=200), cause + 0.4 * rng.normal(size=200)
without, given = hsic_test(one, other, random_state=0), conditional_independence_test(one, other, cause)
print(f"independent: p = {without.p_value:.3f}, given the cause: p = {given.p_value:.3f}")
assert without.p_value < 0.01 and given.p_value > 0.05

# %%
# The same tests compare strings: two sources that use the same letters in another order.

first = ["".join(rng.permutation(list("aabbccdd"))) for _ in range(40)]
second = ["".join(np.roll(list("abcdabcd"), rng.integers(8))) for _ in range(40)]
strings = mmd_test(first, second, Normalized(Spectrum(2)), random_state=0)
print(f"strings: p = {strings.p_value:.3f}")
assert strings.p_value < 0.01
