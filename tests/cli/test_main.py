"""The command starts quickly and prints its help and version."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from mercer.cli import main


def test_help_loads_no_heavy_package():
    """`mercer --help` imports neither numba nor scikit-learn, nor numpy and scipy."""
    program = (
        "import sys\n"
        "from mercer.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "sys.exit(str({'numba', 'sklearn', 'numpy', 'scipy'} & sys.modules.keys() or ''))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == ""
    assert "demo" in ended.stdout


def test_version_is_that_of_the_package(capsys):
    """`mercer --version` prints the installed version."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mercer {version('mercer')}\n"


def test_no_command_shows_the_help(capsys):
    """`mercer` without arguments prints the help and succeeds."""
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_an_unknown_command_is_refused(capsys):
    """argparse's exit status for a wrong command line is 2."""
    with pytest.raises(SystemExit) as ended:
        main(["dance"])
    assert ended.value.code == 2
    assert "dance" in capsys.readouterr().err
