"""`mercer fit` for a table of the page, in its own process: it can be stopped, and its memory is freed at its end.

    python -m mercer.studio.training_process FOLDER

FOLDER/question.json names the table and the target. Progress is written to standard output, one JSON object a line.
The results are files of the folder: model.mercer, report.html, summary.txt.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from mercer.exceptions import MercerError


def tell(**values: Any) -> None:
    """Write one line of progress."""
    print(json.dumps(values), flush=True)


def main(folder: Path) -> int:
    """Train as `mercer fit` does; return the exit status."""
    question = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    try:
        return train_table(folder, question)
    except MercerError as error:
        tell(failed=str(error).replace(question["path"], question["name"]))
        return 1
    except KeyboardInterrupt:
        tell(failed="It was stopped before there was a model.")
        return 130
    except MemoryError:
        tell(failed="There is not enough memory for this table.")
        return 1


def train_table(folder: Path, question: dict[str, Any]) -> int:
    """Read, train, and write the model, the report and the summary."""
    import mercer
    from mercer.exceptions import MissingExtraError
    from mercer.io.tables import read_samples
    from mercer.workflow.job import PAGE_WORK, READING, REPORT, Job, Progress
    from mercer.workflow.summary import text_summary
    from mercer.workflow.training import train

    def show(progress: Progress) -> None:
        tell(share=progress.share, stage=progress.stage, detail=progress.detail, left=progress.seconds_left)

    with Job(show, lambda text: tell(say=text)) as job, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.plan(report=PAGE_WORK)
        job.begin(READING, question["name"])
        samples = read_samples(question["path"], target=question["target"], na_target="drop")
        outcome = train(
            samples, kernel=question["kernel"], task=question["task"], time_limit=question["time_limit"], job=job
        )
        mercer.save(outcome.model, folder / "model.mercer")
        (folder / "summary.txt").write_text(text_summary(outcome), encoding="utf-8")
        job.begin(REPORT)
        try:
            from mercer.report import write_report

            write_report(outcome, folder / "report.html", model_path="model.mercer", source=question["name"])
        except MissingExtraError as error:
            tell(say=str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
