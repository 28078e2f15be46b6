"""Linear machines: min over w, b of P(w) + Σ weight ℓ(y, Xw + b), solved over the features."""
