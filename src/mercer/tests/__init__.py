"""Hypothesis tests with kernels: two samples, independence, conditional independence.

>>> import numpy as np
>>> from mercer.tests import mmd_test
>>> rng = np.random.default_rng(0)
>>> mmd_test(rng.normal(size=(60, 2)), rng.normal(1.0, 1.0, size=(50, 2)), random_state=0).p_value < 0.01
True
"""

from mercer.tests.conditional_independence import conditional_independence_test
from mercer.tests.independence import hsic_test
from mercer.tests.null_distribution import KernelTestResult, NullDistribution
from mercer.tests.two_sample import mmd_test

__all__ = ["KernelTestResult", "NullDistribution", "conditional_independence_test", "hsic_test", "mmd_test"]
