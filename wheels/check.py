"""Install the wheel in a new environment, and count what the jobs of benchmarks/start.py compile there: nothing.

    python wheels/check.py [dist/mercer-….whl]

Also runs `mercer warm`, whose jobs include the example of every public name, and one job as on a processor that the
wheel does not know.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from start import JOBS, measure  # noqa: E402

MEGABYTES = 40


def main() -> None:
    built = (ROOT / "dist").glob(f"mercer-*-cp{sys.version_info.major}{sys.version_info.minor}-*.whl")
    wheel = Path(sys.argv[1] if sys.argv[1:] else max(built, key=lambda path: path.stat().st_mtime)).resolve()
    failures = []
    size = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size:.1f} MB")
    if size > MEGABYTES:
        failures.append(f"the wheel has more than {MEGABYTES} MB")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(f"{folder}/environment", with_pip=True)
        python = str(Path(folder, "environment", "Scripts" if os.name == "nt" else "bin", "python"))
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, str(wheel), *_same_versions()], check=True)
        for job in JOBS:
            found = measure(python, job, "mercer", f"{folder}/empty", path=folder)
            print(f"{job.name:<40} {found['first']:.2f} s, {found['compiled']} compiled", flush=True)
            if found["compiled"]:
                failures.append(f"{job.name}: {found['compiled']} functions were compiled")
        os.environ["MERCER_MACHINE_CODE"] = "none"  # as on a processor that the wheel does not know
        found = measure(python, JOBS[0], "mercer", f"{folder}/other", path=folder)
        del os.environ["MERCER_MACHINE_CODE"]
        print(
            f"{JOBS[0].name:<40} {found['first']:.2f} s, {found['compiled']} compiled, without shipped code", flush=True
        )
        if not found["compiled"]:
            failures.append("without shipped code nothing was compiled")
        warm = [python, "-m", "mercer", "warm"]
        done = subprocess.run(
            warm, env=os.environ | {"NUMBA_CACHE_DIR": f"{folder}/empty"}, cwd=folder, capture_output=True, text=True
        )
        print(done.stdout or done.stderr, flush=True)
        if done.returncode or " 0 functions compiled" not in done.stdout:
            failures.append("`mercer warm` has compiled functions, or failed")
    print("\n".join(failures) or "Nothing was compiled.")
    sys.exit(bool(failures))


def _same_versions() -> list[str]:
    """The versions that the wheel was built with: with others its code is not used."""
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in ("numba", "llvmlite")]


if __name__ == "__main__":
    main()
