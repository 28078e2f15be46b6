"""What a release needs beyond the check of its wheel: valid metadata, and a source distribution that works.

    python wheels/release.py

Builds the source distribution into dist/, checks it and the wheel with twine, installs it in a new environment, and
runs the README and the tutorials there. Then takes the steps of each Dockerfile in docs/install.md, in an environment
and with folders of its own, and fits machines as the container would: nothing may be compiled.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment(folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    if packages:
        quiet = "--disable-pip-version-check", "install", "--quiet"
        subprocess.run([python, "-m", "pip", *quiet, *packages], check=True)
    return python


def dockerfiles(page: Path) -> list[list[str]]:
    """The lines of each Dockerfile on a page."""
    return [found.strip().splitlines() for found in re.findall(r"```dockerfile\n(.*?)```", page.read_text(), re.S)]


# what a container does first, on a read-only installation: SVC and LinearSVC are those that the page compiles
FIRST_FIT = """
import numpy as np
from mercer import SVC, LinearSVC
X = np.random.default_rng(0).standard_normal((200, 4))
for model in SVC(), LinearSVC():
    model.fit(X, X[:, 0] > 0).predict(X)
from mercer._compiled.compile import functions_compiled
assert functions_compiled() == 0, f"{functions_compiled()} functions were compiled"
"""


def follow(lines: list[str], root: Path) -> None:
    """Take the steps of a Dockerfile with ``root`` as the root folder, then fit as the container would."""
    python = environment(root / "python")
    # no machine code of the environment that this script runs in
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "MERCER_"))}
    settings["PATH"] = os.pathsep.join([str(Path(python).parent), settings["PATH"]])
    for line in lines:
        step, _, rest = line.partition(" ")
        if step == "COPY":
            source, target = rest.split()
            place = root / target.strip("/")
            place.mkdir(parents=True, exist_ok=True)
            if source == ".":
                subprocess.run(f"git archive HEAD | tar -x -C {place}", shell=True, cwd=ROOT, check=True)
            else:
                shutil.copy(max(ROOT.glob(source), key=lambda path: path.stat().st_mtime), place)
        elif step == "ENV":
            for name, value in re.findall(r'(\w+)="?([^"\s]*)"?', rest):
                settings[name] = re.sub("^/", f"{root}/", value)
        elif step == "RUN":
            command = re.sub(r"(?<= )/", f"{root}/", rest)
            subprocess.run(command, shell=True, env=settings, cwd=root, check=True)
        elif step != "FROM":
            raise SystemExit(f"docs/install.md has a step that this check does not know: {line}")
    subprocess.run([python, "-c", FIRST_FIT], env=settings, cwd=root, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = environment(folder / "tools", "build", "twine")
        subprocess.run([tools, "-m", "build", "--sdist", "--outdir", str(ROOT / "dist"), str(ROOT)], check=True)
        found = [str(path) for path in (ROOT / "dist").glob("mercer-*") if path.suffix in (".whl", ".gz")]
        subprocess.run([tools, "-m", "twine", "check", "--strict", *found], check=True)
        source = max((ROOT / "dist").glob("mercer-*.tar.gz"), key=lambda path: path.stat().st_mtime)
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        unpacked = folder / source.name.removesuffix(".tar.gz")
        python = environment(folder / "installed", f"{source}[test]")
        # the installed package, not the unpacked one: its folder src is not on the path
        subprocess.run([python, "-m", "pytest", "-q", "tests/test_pages.py"], cwd=unpacked, check=True)
        pages = dockerfiles(ROOT / "docs" / "install.md")
        for number, lines in enumerate(pages):
            follow(lines, folder / f"container{number}")
    print(f"{source.name}: twine finds nothing to complain about, the README runs, and so do {len(pages)} Dockerfiles.")


if __name__ == "__main__":
    sys.exit(main())
