"""Fitted models of every kind, each fitted on first use."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import mercer
from mercer import kernels as k

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
POSITIVE = np.abs(X)
BINARY = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + 0.2 * rng.normal(size=60), [-0.5, 0.5])
REAL = X[:, 0] + np.sin(X[:, 1])
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "colour": np.where(X[:, 2] > 0, "red", "blue")})
TEXTS = [
    f"{'good' if v > 0 else 'bad'} {'film' if w > 0 else 'book'} number {i % 7}" for i, (v, w) in enumerate(X[:, :2])
]

SETS = [frozenset(text.split()) for text in TEXTS]
GRAPHS = [
    mercer.Graph([("a", "b"), ("b", "c"), *([("a", "c")] if v > 0 else [])], node_labels=dict(a="C", b="O", c=i % 2))
    for i, v in enumerate(X[:20, 0])
]

# kernels on vectors, bound or not; all except histogram kernels accept any numbers
VECTOR_KERNELS = [
    k.Linear(),
    k.Polynomial(3, "scale", 1.0),
    k.Polynomial(2, (0.5, 1.0, 0.2, 0.0), 0.5),
    k.PowerSeries((1.0, 0.5, 0.25)),
    k.Sigmoid(0.1, 0.2),
    k.Cosine(),
    k.Gaussian(),
    k.Gaussian((0.5, 1.0, 0.2, 0.0)),
    k.Laplacian(0.3),
    k.Laplacian((0.5, 1.0, 0.2, 0.0)),
    k.Matern(0.5),
    k.Matern(1.5, 2.0),
    k.Matern(2.5, (1.0, 2.0, 3.0, 4.0)),
    k.RationalQuadratic(0.7, 1.5),
    k.Periodic(1.5, 3.0),
    0.5 * k.Gaussian(0.2) + k.Linear() * k.Gaussian(0.1) + 1.0,
    (k.Linear() + 1.0) ** 3,
    k.Normalized(k.Polynomial(2, 1.0, 1.0)),
    k.Normalized(k.Gaussian(0.1) + k.Linear()),
    k.On((0, 2), k.Gaussian(0.5)) + k.On(3, k.Linear()),
    k.On((1, 2), k.Normalized(k.Linear() + 0.5)) * k.Gaussian(0.3),
    k.Gaussian(0.3) + k.White(0.1),
    k.Bounded(k.Fixed(k.Gaussian(0.3)), 0.1, 10.0),
    k.SklearnKernel(RBF(2.0)),
]
HISTOGRAM_KERNELS = [k.Min(), k.Chi2(0.5), k.AdditiveChi2() + 5.0]


def kernel_model(kernel):
    data = POSITIVE if kernel in HISTOGRAM_KERNELS else X
    return mercer.SVC(kernel=kernel).fit(data, BINARY), data


def _pipeline():
    columns = ColumnTransformer([("numbers", StandardScaler(), ["a"]), ("words", OneHotEncoder(), ["colour"])],
                                remainder="passthrough")  # fmt: skip
    return make_pipeline(columns, SimpleImputer(), MinMaxScaler(), mercer.SVC()).fit(FRAME, BINARY), FRAME


def _text(vectorizer):
    return make_pipeline(vectorizer, mercer.LinearSVC()).fit(TEXTS, BINARY), TEXTS


MODELS = {
    "SVC": lambda: (mercer.SVC().fit(X, BINARY), X),
    "SVC three classes": lambda: (mercer.SVC(C=5.0).fit(X, THREE), X),
    "SVC ovo": lambda: (
        mercer.SVC(decision_function_shape="ovo", class_weight={0: 2.0, 1: 1.0, 2: 1.0}).fit(X, THREE),
        X,
    ),
    "SVC bool": lambda: (mercer.SVC(kernel="linear").fit(X, BINARY == "yes"), X),
    "SVC object labels": lambda: (mercer.SVC().fit(X, BINARY.astype(object)), X),
    "SVC float32": lambda: (mercer.SVC().fit(X.astype(np.float32), THREE), X.astype(np.float32)),
    "SVC sparse": lambda: (mercer.SVC().fit(sp.csr_array(X * (X > 0)), THREE), sp.csr_array(X * (X > 0))),
    "SVC sparse matrix": lambda: (mercer.SVC(kernel="poly").fit(sp.csr_matrix(X), BINARY), sp.csr_matrix(X)),
    "SVC precomputed": lambda: (mercer.SVC(kernel="precomputed").fit(X @ X.T, THREE), X @ X.T),
    "SVC random": lambda: (mercer.SVC(random_state=np.random.RandomState(3), warm_start=True).fit(X, THREE), X),
    "SVC frame": lambda: (
        mercer.SVC(kernel=k.On("a", k.Gaussian(1.0)) + k.On(("a", "b"), k.Linear())).fit(FRAME, THREE),
        FRAME,
    ),
    "SVC hard": lambda: (mercer.SVC(C=np.inf, gamma=50.0).fit(X, THREE), X),
    "NuSVC": lambda: (mercer.NuSVC(nu=0.3).fit(X, THREE), X),
    "RampSVC": lambda: (mercer.RampSVC().fit(X, BINARY), X),
    "SVR": lambda: (mercer.SVR().fit(X, REAL), X),
    "SVR sparse": lambda: (mercer.SVR(kernel="linear").fit(sp.csr_array(X), REAL), sp.csr_array(X)),
    "NuSVR": lambda: (mercer.NuSVR().fit(X, REAL), X),
    "OneClassSVM": lambda: (mercer.OneClassSVM(nu=0.3).fit(X), X),
    "SVDD": lambda: (mercer.SVDD(nu=0.3, kernel="poly").fit(X, np.where(X[:, 0] > 1, -1, 1)), X),
    "OrdinalSVC": lambda: (mercer.OrdinalSVC(constraints="explicit").fit(X, THREE), X),
    "RankSVC": lambda: (mercer.RankSVC().fit(X, REAL, groups=THREE), X),
    "SurvivalSVM": lambda: (mercer.SurvivalSVM(rank_ratio=0.5).fit(X, np.c_[X[:, 1] > 0, np.exp(REAL)]), X),
    "LinearSVC": lambda: (mercer.LinearSVC(warm_start=True).fit(X, BINARY), X),
    "LinearSVC three classes": lambda: (mercer.LinearSVC(penalty="l1").fit(X, THREE).sparsify(), X),
    "LinearSVC joint": lambda: (mercer.LinearSVC(multi_class="crammer_singer", warm_start=True).fit(X, THREE), X),
    "LinearSVR": lambda: (mercer.LinearSVR(random_state=1).fit(X, REAL), X),
    "KernelRidge": lambda: (mercer.KernelRidge(kernel="rbf").fit(X, np.column_stack([REAL, -REAL])), X),
    "KernelRidge precomputed": lambda: (mercer.KernelRidge(kernel="precomputed").fit(X @ X.T, REAL), X @ X.T),
    "KernelRidgeCV": lambda: (mercer.KernelRidgeCV(kernel=[k.Gaussian(0.1), k.Linear()]).fit(X, REAL), X),
    "GaussianProcessRegressor": lambda: (
        mercer.GaussianProcessRegressor(1.0 * k.Gaussian(1.0) + k.White(0.1)).fit(X, REAL),
        X,
    ),
    "GaussianProcessRegressor sklearn": lambda: (
        mercer.GaussianProcessRegressor(RBF() + WhiteKernel()).fit(X, REAL),
        X,
    ),
    "GaussianProcessClassifier": lambda: (mercer.GaussianProcessClassifier(2.0 * k.Gaussian(1.0)).fit(X, BINARY), X),
    "GaussianProcessClassifier three classes": lambda: (
        mercer.GaussianProcessClassifier(RBF(), optimizer=None).fit(X, THREE),
        X,
    ),
    "SparseGaussianProcessRegressor": lambda: (
        mercer.SparseGaussianProcessRegressor(1.0 * k.Gaussian(1.0), n_inducing=5, optimizer=None).fit(X, REAL),
        X,
    ),
    "PegasosClassifier": lambda: (mercer.PegasosClassifier(kernel="rbf", random_state=0).fit(X, THREE), X),
    "PegasosClassifier linear": lambda: (mercer.PegasosClassifier(kernel="linear", random_state=0).fit(X, BINARY), X),
    "Perceptron": lambda: (mercer.Perceptron(kernel="rbf", random_state=0).fit(X, THREE), X),
    "KernelLMS": lambda: (mercer.KernelLMS(max_iter=20000).fit(X, np.tanh(X[:, 0])), X),
    "KernelCentroid": lambda: (mercer.KernelCentroid(shrinkage="auto").fit(X, THREE), X),
    "KernelERM": lambda: (mercer.KernelERM("pinball", "norm").fit(X, REAL), X),
    "KernelERM labels": lambda: (mercer.KernelERM("logistic").fit(X, BINARY), X),
    "KernelLogisticRegression": lambda: (mercer.KernelLogisticRegression(C=5.0, warm_start=True).fit(X, THREE), X),
    "KernelLogisticRegression binary": lambda: (mercer.KernelLogisticRegression().fit(X, BINARY), X),
    "KernelLogisticRegressionCV": lambda: (mercer.KernelLogisticRegressionCV(Cs=2, gammas=2, cv=3).fit(X, THREE), X),
    "LSSVC": lambda: (mercer.LSSVC(leave_one_out=True).fit(X, THREE), X),
    "ExpectileSVR": lambda: (mercer.ExpectileSVR(0.8).fit(X, REAL), X),
    "QuantileSVR": lambda: (mercer.QuantileSVR([0.9, 0.1], rearrange=True).fit(X, REAL), X),
    "OutputCodeSVC": lambda: (mercer.OutputCodeSVC([[1, 0], [-1, 1], [-1, -1]]).fit(X, THREE), X),
    "RejectOption": lambda: (mercer.RejectOption(mercer.KernelLogisticRegression(), reject_cost=0.2).fit(X, THREE), X),
    "LaplacianSVC": lambda: (mercer.LaplacianSVC().fit(X, np.where(np.arange(60) % 3, -1, THREE)), X),
    "KernelCentroid binary": lambda: (mercer.KernelCentroid().fit(X, BINARY), X),
    "SVCCV": lambda: (mercer.SVCCV(Cs=3, gammas=2, cv=StratifiedKFold(3)).fit(X, THREE), X),
    "SVRCV": lambda: (mercer.SVRCV(Cs=3, gammas=2, cv=3).fit(X, REAL), X),
    "LinearSVCCV": lambda: (mercer.LinearSVCCV(Cs=3, cv=3).fit(X, BINARY), X),
    "OneClassSVMCV": lambda: (mercer.OneClassSVMCV(cv=3).fit(X), X),
    "KernelPCA": lambda: (mercer.KernelPCA(3, kernel="rbf").fit(X), X),
    "KernelKMeans": lambda: (mercer.KernelKMeans(3, random_state=0).fit(X), X),
    "KernelCCA": lambda: (mercer.KernelCCA(2).fit(X, REAL), X),
    "SpectralClustering": lambda: (mercer.SpectralClustering(3, random_state=0).fit(X), X),
    "SVC strings": lambda: (mercer.SVC(kernel=2.0 * k.Spectrum(2) + k.Subsequence(2, 0.5)).fit(TEXTS, BINARY), TEXTS),
    "SVC sets": lambda: (mercer.SVC(kernel=k.Jaccard()).fit(SETS, BINARY), SETS),
    "SVC graphs": lambda: (mercer.SVC(kernel=k.WeisfeilerLehman()).fit(GRAPHS, BINARY[:20]), GRAPHS),
    "SVC nodes": lambda: (
        mercer.SVC(kernel=k.GraphDiffusion(GRAPHS[0], 0.5)).fit(["a", "b", "c"], [0, 1, 1]),
        ["a", "b"],
    ),
    "pipeline": _pipeline,
    "tf-idf": lambda: _text(TfidfVectorizer(stop_words=["number"])),
    "counts": lambda: _text(CountVectorizer(binary=True, dtype=np.float64)),
}


def outputs(model, data):
    """All outputs of a model for samples."""
    return [
        getattr(model, name)(data) for name in ("predict", "decision_function", "predict_proba") if hasattr(model, name)
    ]
