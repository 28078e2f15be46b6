"""The numbers by which compiled code knows a sum over features and the function of it.

They repeat those of ``mercer._numerics.tiles`` and ``mercer._numerics.maps``, so that naming a kernel does not import
numba. A test holds them equal.
"""

DOT, SQUARE, L1, MIN, CHI2 = range(5)
IDENTITY, POLYNOMIAL, SERIES, EXPONENTIAL, MATERN12, MATERN32, MATERN52, TANH, RATIONAL = range(9)
