"""The toolbox: explanations, updates and the machines beside SVC and SVR, each beside the best existing package.

    python benchmarks/toolbox.py [--parts explanations,updates] [--data DIR] [--quick]

Runs the files of benchmarks/toolbox, each in a process of its own, and prints the machine and their tables as Markdown,
with the seconds of each part. A file that needs the data sets is given --data, and left out without it; a line names
each peer that is not installed. --quick takes small sizes, to see that everything runs: its times mean little.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter

from table import machine, table

HERE = Path(__file__).parent
PARTS = {path.stem: path for path in sorted((HERE / "toolbox").glob("*.py"))}
# parts that run on the data sets only; others leave out some of their tables without them
NEED_DATA = {"losses"}
QUICK = {
    "explanations": ["--rows", "50", "--shap-rows", "2", "--nsamples", "64", "256"],
    "influence": ["--sizes", "100,300"],
    "losses": ["--samples", "400"],
    "probability": ["--quick"],
    "ranking": ["--repeats", "1"],
    "unsupervised": ["--n", "500", "--repeats", "1"],
    "updates": ["--sizes", "200", "500", "--turns", "5"],
}


def aligned(lines: Iterable[str]) -> Iterator[str]:
    """The same lines with the columns of their tables aligned, a table as soon as it is complete."""
    rows: list[list[str]] = []
    for line in (*lines, ""):
        line = line.rstrip()
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if rows:
            yield table(rows[0], [row for row in rows[1:] if set("".join(row)) - set("-:")])
            rows = []
        yield line


def run(name: str, arguments: list[str]) -> bool:
    """Print the tables of a part; whether it ended without an error."""
    # the parts import table.py, which stands beside this file
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-u", str(PARTS[name]), *arguments]
    start = perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        for line in aligned(process.stdout):
            print(line, flush=True)
    print(f"({name}: {perf_counter() - start:.0f} s)", flush=True)
    return process.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    given = parser.parse_args()
    names = given.parts.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose some of {', '.join(PARTS)}")
    print(machine(), flush=True)
    failed = []
    for name in names:
        print(f"\n## {name}\n", flush=True)
        if given.data is None and name in NEED_DATA:
            print("left out: it needs --data")
            continue
        data = ["--data", str(given.data)] if given.data and "--data" in PARTS[name].read_text(encoding="utf-8") else []
        if not run(name, data + QUICK.get(name, []) * given.quick):
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
