"""The time that a new process takes before its first fit."""

import subprocess
import sys

from .turns import share_of_time


def new_process(code):
    subprocess.run([sys.executable, "-c", code], check=True)


class Import:
    timeout = 120

    def timeraw_import_mercer_svc(self):
        return "from mercer import SVC"

    def timeraw_import_package_alone(self):
        return "import mercer"

    def track_import(self):
        """Both import scikit-learn: 1 is the best possible value."""
        return share_of_time(
            lambda: new_process("from mercer import SVC"), lambda: new_process("from sklearn.svm import SVC"), turns=3
        )

    track_import.unit = "of scikit-learn's time"
