#!/usr/bin/env bash
# Run the tests of scikit-learn's contract with the oldest dependencies that pyproject.toml allows, and with the newest.
#
#   tests/oldest_and_newest.sh [oldest] [newest] [path of a test ...]
#
# The environments .venv-oldest and .venv-newest are kept for the next run. PYTHON (default python3.11) creates them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# estimator checks, comparisons with scikit-learn, conversion from and to its classes, and some of every other part
TESTS=(
    tests/test_package.py
    tests/test_testing.py
    tests/display
    tests/estimators/certification
    tests/estimators/clusters
    tests/estimators/least_squares
    tests/estimators/linear/test_linear.py
    tests/estimators/manifold
    tests/estimators/output_codes
    tests/estimators/processes
    tests/estimators/quantiles
    tests/estimators/ranking
    tests/estimators/same_as_sklearn
    tests/estimators/test_bad_input.py
    tests/estimators/test_every_estimator.py
    tests/estimators/test_gaussian_process.py
    tests/estimators/test_kernel_ridge.py
    tests/estimators/test_limits.py
    tests/estimators/test_plain_input.py
    tests/estimators/test_probability.py
    tests/estimators/transformers
    tests/explanation
    tests/hypothesis_tests
    tests/io/formats/test_onnx_pipeline.py
    tests/io/formats/test_sklearn_conversion.py
    tests/io/model_file/test_save_load.py
    tests/report
    tests/selection/calibration/test_prediction_mixins.py
    tests/selection/search/test_search_contract.py
    tests/selection/test_evaluation.py
    tests/selection/test_reject_option.py
    tests/theory
    tests/updates
    tests/workflow
)

# the lower bounds of pyproject.toml as versions: scikit-learn>=1.6 becomes scikit-learn==1.6.*
lower_bounds() {
    "$1" - <<'END'
import re
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
for requirement in project["dependencies"] + extras["report"] + extras["tables"] + extras["onnx"] + extras["test"]:
    if ">=" in requirement:  # extras within extras have no version
        print(re.sub(r">=([\d.]+)", r"==\1.*", requirement))
print("pyparsing<3.3")  # newer ones warn when matplotlib 3.9 is imported
END
}

versions=()
while [[ ${1:-} == oldest || ${1:-} == newest ]]; do
    versions+=("$1")
    shift
done
[[ ${#versions[@]} -gt 0 ]] || versions=(oldest newest)
[[ $# -eq 0 ]] || TESTS=("$@")

folder=bin
[[ ${OS:-} != Windows_NT ]] || folder=Scripts
failed=()
for version in "${versions[@]}"; do
    environment=$PWD/.venv-$version
    python=$environment/$folder/python
    [[ -x $python ]] || "${PYTHON:-python3.11}" -m venv "$environment"
    if [[ $version == oldest ]]; then
        lower_bounds "$python" > "$environment/constraints.txt"
        "$python" -m pip install --quiet --editable '.[test]' --constraint "$environment/constraints.txt"
    else
        "$python" -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test]'
    fi
    "$python" -c 'import numba, numpy, scipy, sklearn
print(*(f"{m.__name__} {m.__version__}" for m in (sklearn, numpy, scipy, numba)), sep=", ")'
    # each environment keeps its own machine code: numba discards that of another version
    NUMBA_CACHE_DIR=$environment/numba "$python" -m pytest -q -n 2 --dist loadfile -m "not slow" "${TESTS[@]}" ||
        failed+=("$version")
done
[[ ${#failed[@]} -eq 0 ]] || { echo "failed with the ${failed[*]} dependencies"; exit 1; }
