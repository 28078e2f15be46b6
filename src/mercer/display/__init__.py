"""Pictures of models, data and searches, like scikit-learn's displays. They need matplotlib."""
