"""The example of Mauna Loa runs, on a record made up for it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "co2.py"


@pytest.fixture(scope="module")
def co2():
    spec = spec_from_file_location("co2", PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(n=120):
    """A trend, a season and noise of a tenth of a part per million."""
    years = 1990 + np.arange(n) / 12
    noise = 0.1 * np.random.default_rng(0).normal(size=n)
    return years, 350 + 1.5 * (years - 1990) + 3 * np.sin(2 * np.pi * years) + noise


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("trend", ["gaussian", "parabola"])
def test_it_learns_and_draws(co2, trend, tmp_path, capsys):
    """Most held-out months lie in the band, the season is found, and the picture is written."""
    years, ppm = made_up()
    model, covered = co2.study(years, ppm, trend, held_out=2.0)
    assert covered >= 0.8
    season = (
        co2.parts(model.kernel_)["seasons"](co2.samples(np.array([1995.25, 1995.75])), model.X_train_) @ model.alpha_
    )
    assert season[0] - season[1] == pytest.approx(6.0, abs=1.0)
    co2.draw(model, years, ppm, tmp_path / "co2.png")
    assert (tmp_path / "co2.png").read_bytes().startswith(b"\x89PNG")
    assert "within the 95 % band" in capsys.readouterr().out


def test_a_folder_without_the_record_is_named(co2, tmp_path):
    """One sentence, no traceback."""
    with pytest.raises(SystemExit) as ended:
        co2.main(["--data", str(tmp_path)])
    assert str(ended.value) == (
        f"{tmp_path / 'mauna_loa_co2.npz'} does not exist: --data is the folder that holds mauna_loa_co2.npz (X, y)."
    )
