"""scikit-learn's contract for the machines of mercer, a module each; ``mercer`` itself has their names."""
