"""The toolbox: explanations, updates and the machines beside SVC and SVR, each beside the best existing package.

    python benchmarks/toolbox.py [--parts explanations,updates] [--data DIR]

Runs the files of benchmarks/toolbox, each in a process of its own, and prints their tables. A file that needs the data
sets is given --data; peers that are not installed are left out of its tables.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {path.stem: path for path in sorted((HERE / "toolbox").glob("*.py"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz)")
    given = parser.parse_args()
    names = given.parts.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose some of {', '.join(PARTS)}")
    # the parts import table.py, which stands beside this file
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    failed = []
    for name in names:
        print(f"\n## {name}\n", flush=True)
        data = ["--data", str(given.data)] if given.data and "--data" in PARTS[name].read_text(encoding="utf-8") else []
        if subprocess.run([sys.executable, PARTS[name], *data], env=environment, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
