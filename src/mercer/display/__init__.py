"""Pictures of models, data and searches, in the manner of scikit-learn's displays; they need matplotlib."""
