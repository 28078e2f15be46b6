"""Support vector machines and kernel methods: fast, exact and certified.

A public name is imported when it is first used, so that ``mercer --help`` loads neither numba nor scikit-learn.
"""

from importlib import import_module
from typing import Any

# where each public name is defined
_NAMES = {
    "mercer.estimators.certification.certify_model": ("certify",),
    "mercer.estimators.enclosing.svdd": ("SVDD",),
    "mercer.estimators.gaussian_process": ("GaussianProcessRegressor",),
    "mercer.estimators.processes.gaussian_process_classifier": ("GaussianProcessClassifier",),
    "mercer.estimators.processes.sparse_gaussian_process": ("SparseGaussianProcessRegressor",),
    "mercer.estimators.kernel_erm": ("KernelERM",),
    "mercer.estimators.kernel_logistic": ("KernelLogisticRegression",),
    "mercer.estimators.kernel_ridge": ("KernelRidge",),
    "mercer.estimators.kernel_ridge_cv": ("KernelRidgeCV",),
    "mercer.estimators.least_squares.expectile_svr": ("ExpectileSVR",),
    "mercer.estimators.least_squares.ls_svc": ("LSSVC",),
    "mercer.estimators.linear.linear_svc": ("LinearSVC",),
    "mercer.estimators.linear.linear_svr": ("LinearSVR",),
    "mercer.estimators.manifold.laplacian_svc": ("LaplacianSVC",),
    "mercer.estimators.one_class": ("OneClassSVM",),
    "mercer.estimators.ranking.ordinal_svc": ("OrdinalSVC",),
    "mercer.estimators.ranking.rank_svc": ("RankSVC",),
    "mercer.estimators.ranking.ranking_scores": ("grouped_ndcg_score", "pairwise_score"),
    "mercer.estimators.ranking.survival_svm": ("SurvivalSVM",),
    "mercer.estimators.output_codes.output_code_svc": ("OutputCodeSVC",),
    "mercer.estimators.quantiles.quantile_svr": ("QuantileSVR",),
    "mercer.estimators.svc": ("NuSVC", "SVC"),
    "mercer.estimators.svr": ("NuSVR", "SVR"),
    "mercer.estimators.linear.l1_min_c": ("l1_min_c",),
    "mercer.estimators.online.pegasos": ("PegasosClassifier",),
    "mercer.estimators.online.perceptron": ("Perceptron",),
    "mercer.estimators.kernel_lms": ("KernelLMS",),
    "mercer.estimators.kernel_centroid": ("KernelCentroid",),
    "mercer.estimators.ramp_svc": ("RampSVC",),
    "mercer.estimators.mkl.mkl_classifier": ("MKLClassifier",),
    "mercer.estimators.mkl.mkl_regressor": ("MKLRegressor",),
    "mercer.estimators.clusters.kernel_kmeans": ("KernelKMeans",),
    "mercer.estimators.clusters.spectral_clustering": ("SpectralClustering",),
    "mercer.estimators.transformers.kernel_cca": ("KernelCCA",),
    "mercer.estimators.transformers.kernel_pca": ("KernelPCA",),
    "mercer.estimators.transformers.nystroem": ("Nystroem",),
    "mercer.estimators.transformers.random_features": ("RandomFeatures",),
    "mercer.kernels": (
        "AdditiveChi2",
        "CallableKernel", "Chi2", "Constant", "Cosine", "Gaussian", "Kernel", "Laplacian", "Linear", "Matern", "Min",
        "Normalized", "On", "Polynomial", "Power", "PowerSeries", "Precomputed", "Product", "Scaled", "Sigmoid", "Sum",
        "MercerReport", "check_mercer", "parse_kernel",
        "MercerRepair", "repair_mercer", "RKHSFunction",
        "GlobalAlignment", "Graph", "GraphDiffusion", "Hellinger", "InformationDiffusion", "Intersection", "Jaccard",
        "RandomWalk", "SetOf", "ShortestPath", "WeisfeilerLehman",
        "CommonSubstrings", "Mismatch", "Spectrum", "Subsequence", "WeightedDegree", "Window",
        "LearnedKernel", "PrecomputedLayer",
        "Bounded", "Fixed", "Hyperparameter", "Periodic", "RationalQuadratic", "SklearnKernel", "White",
    ),
    "mercer.io": ("compress", "from_sklearn", "load", "save", "to_sklearn"),
    "mercer.io.blocks": ("open_rows",),
    "mercer.io.removal_proof": ("RemovalProof", "proof_of_removal"),
    "mercer.problems": ("Certificate",),
    "mercer.problems.steps": ("Steps",),
    "mercer.theory": (
        "C_to_lambda", "diagnose", "error_bounds", "kkt_report", "lambda_to_C", "margins", "separability",
        "alpha_to_lambda", "lambda_to_alpha", "unit_hyperplanes",
    ),
    "mercer.explanation.left_out.influences": ("Influence", "influence"),
    "mercer.explanation.objects.parts_of_objects": ("Contributions", "contributions"),
    "mercer.explanation.robust.robust_radius": ("Robustness", "robustness"),
    "mercer.selection.leave_one_out": ("LeaveOneOut", "leave_one_out"),
    "mercer.selection.solution_path": ("SolutionPath", "solution_path"),
    "mercer.selection.svc_cv": ("NuSVCCV", "SVCCV"),
    "mercer.selection.svr_cv": ("SVRCV",),
    "mercer.selection.kernel_logistic_cv": ("KernelLogisticRegressionCV",),
    "mercer.selection.linear_cv": ("LinearSVCCV", "LinearSVRCV"),
    "mercer.selection.one_class_cv": ("OneClassSVMCV",),
    "mercer.selection.reject_option": ("RejectOption", "RiskCoverage"),
    "mercer.selection.evaluation": ("Evaluation", "evaluate"),
    "mercer.workflow.warm_jobs": ("warm",),
    "mercer.display.plane": ("BandDisplay", "DecisionDisplay", "TubeDisplay"),
    "mercer.display.fitted_model": ("ConvergenceDisplay", "GramDisplay", "MarginDisplay", "SupportVectorDisplay"),
    "mercer.display.growth_display": ("GrowthDisplay",),
    "mercer.display.risk_coverage_display": ("RiskCoverageDisplay",),
    "mercer.display.paths": ("PathDisplay",),
    "mercer.display.steps_display": ("StepsDisplay",),
    "mercer.display.searches": ("SearchCurveDisplay", "SearchMapDisplay"),
    "mercer.explanation.explanation": ("Explanation",),
    "mercer.explanation.shapley_values": ("explain",),
    "mercer.exceptions": (
        "ClusterError", "NearDiagonalWarning",
        "InfeasibleNuError", "InvalidInputError", "MercerError", "MissingExtraError", "NotPositiveSemidefiniteError",
        "NotPositiveSemidefiniteWarning", "NotSeparableError", "NotSymmetricError",
        "ModelFileError",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}
# parts that are used by their own name: mercer.kernels.Gaussian
_PARTS = {module.split(".")[1] for module in _NAMES} | {
    "dask", "datasets", "losses", "report", "studio", "testing", "tests"
}  # fmt: skip

__all__ = sorted(_HOME)

import_module("mercer._compiled.forks")  # from now on forks wait for imports


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mercer")
    if name == "bounds":  # the former place of mercer.theory.bounds, a module
        return import_module("mercer.theory.bounds")
    if name in _PARTS:
        return import_module(f"mercer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)  # stored: the next access does not come here
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])
