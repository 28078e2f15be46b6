"""Models in the formats of other programs: LIBSVM, LIBLINEAR, scikit-learn, ONNX, source code."""
