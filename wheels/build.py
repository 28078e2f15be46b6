"""Build a wheel with machine code for the levels of processors that this one has, lowest to best.

    python wheels/build.py [--jobs 2] [--output dist] [--best]

Each level runs the jobs of `mercer.workflow.warm_jobs` in a process that compiles for this level (``--level``, used by
this script itself). The wheel serves the version of Python that runs this script, and the installed numba and llvmlite.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]


def generate(level: str, folder: Path) -> None:
    """Compile for a level, in a process of its own, and write the code to the folder."""
    with tempfile.TemporaryDirectory() as cache:
        target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}
        command = [sys.executable, __file__, "--level", level, "--folder", str(folder)]
        subprocess.run(command, env=os.environ | target | {"NUMBA_CACHE_DIR": cache}, check=True)


def write(level: str, folder: Path) -> None:
    """Compile in this process."""
    from mercer._compiled import machine_code
    from mercer.workflow.warm_jobs import warm

    functions: dict[str, bytes] = {}
    machine_code.Cache.observer = functions.__setitem__
    warm()
    machine_code.write_shipped(folder, level, functions)
    print(f"{level}: {len(functions)} functions, {sum(map(len, functions.values())) / 1e6:.1f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="levels that are compiled at once")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--best", action="store_true", help="only the best level of this processor: a quick check")
    parser.add_argument("--level", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.level:
        write(arguments.level, arguments.folder)
        return

    from mercer._compiled.machine_code import host_levels

    start, levels = time.perf_counter(), host_levels()[::-1]
    if not levels:
        sys.exit("build.py: this processor has none of the levels that wheels are built for.")
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(lambda level: generate(level, Path(folder)), levels[:1] if arguments.best else levels))
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        os.environ["MERCER_MACHINE_CODE_FOLDER"] = folder
        subprocess.run([*command, "--wheel-dir", str(arguments.output), str(ROOT)], check=True)
    for wheel in arguments.output.glob("mercer-*-cp*.whl"):
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
