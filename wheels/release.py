"""What a release needs beyond the check of its wheel: valid metadata, and a source distribution that works.

    python wheels/release.py

Builds the source distribution into dist/, checks it and the wheel with twine, installs it in a new environment, and
runs the README and the tutorials there.
"""

import os
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
    subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages], check=True)
    return python


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
    print(f"{source.name}: twine finds nothing to complain about, and the README runs.")


if __name__ == "__main__":
    sys.exit(main())
