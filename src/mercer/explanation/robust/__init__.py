"""How far samples are from the decision boundary: certified radii and counterexamples."""
