"""The files around the package agree with each other: versions, Python versions, workflows, templates, make targets."""

import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

import mercer

ROOT = Path(__file__).parents[1]
HOSTING = ROOT / ".github"
WORKFLOWS = sorted((HOSTING / "workflows").glob("*.yml"))
PAGES = ("SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "CONTRIBUTING.md")


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def project():
    return tomllib.loads(text("pyproject.toml"))["project"]


def read_yaml(path):
    """The words of a YAML file; the key ``on`` of a workflow is a word, not YAML 1.1's true."""
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


def make_targets():
    """Every target with a name that the Makefile has, from its lines `target: ...`."""
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", text("Makefile"), re.M))


def commands(path):
    """The lines that the jobs of a workflow run."""
    for job in read_yaml(path)["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").splitlines()


def pythons(path):
    """The versions of Python that a workflow names, in matrices or in single jobs."""
    found = set()
    for job in read_yaml(path)["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        found |= {*matrix.get("python", []), *(one["python"] for one in matrix.get("include", []))}
        found |= {step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {})}
    return {version for version in found if "$" not in version}


def supported():
    """The versions of Python of the classifiers."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project()["classifiers"]]
    return {match[1] for match in found if match}


def test_versions_agree():
    """pyproject.toml, CITATION.cff, the changelog and the package name one version."""
    version = project()["version"]
    citation = read_yaml(ROOT / "CITATION.cff")
    newest = re.search(r"^## \[([\d.]+)\] - (Unreleased|\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), re.M)
    assert citation["version"] == newest[1] == mercer.__version__ == version
    # a release has one date, and what is not released has none
    assert citation.get("date-released", "Unreleased") == newest[2]


def test_the_citation_says_what_the_package_says():
    """Licence, authors and keywords are those of pyproject.toml."""
    citation = read_yaml(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["license"] == project()["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project()["authors"]]
    assert citation["keywords"] == project()["keywords"]


def test_supported_pythons_agree():
    """Classifiers, lower bound, ruff, mypy, both workflows and the pages name the same versions of Python."""
    settings = tomllib.loads(text("pyproject.toml"))["tool"]
    oldest = min(supported(), key=lambda version: int(version[2:]))
    assert project()["requires-python"] == f">={oldest}"
    assert settings["mypy"]["python_version"] == oldest
    assert settings["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    for name in ("README.md", "Makefile", "docs/install.md"):
        assert f"Python {oldest} or newer" in text(name), name
    for path in WORKFLOWS:
        assert pythons(path) == supported(), path.name


def test_tests_run_on_every_system():
    """The matrix of the tests has Linux, macOS and Windows, and every Python on each."""
    jobs = read_yaml(HOSTING / "workflows" / "ci.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert set(matrix["python"]) == supported() and "exclude" not in matrix
    dependencies = [one["dependencies"] for one in jobs["dependencies"]["strategy"]["matrix"]["include"]]
    assert dependencies == ["oldest", "newest"]


def test_the_site_and_jupyter_are_tested():
    """A job runs the tests that need a built site, Sphinx or JupyterLab; its environment has them."""
    assert "make test-docs PYTHON=python" in commands(HOSTING / "workflows" / "ci.yml")
    extra = project()["optional-dependencies"]["test-docs"]
    assert extra[0] == "mercer[test,docs]" and any(name.startswith("jupyterlab") for name in extra)
    recipe = re.search(r"^test-docs: .*docs\n\t(.*)$", text("Makefile"), re.M)[1]
    assert "tests/docs" in recipe and "tests/studio/browser/test_jupyter.py" in recipe


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_workflows_call_make_targets_that_exist(path):
    """Each job calls make, with targets and variables that the Makefile has; only the draft of a release does not."""
    called = [line for line in commands(path) if line.startswith("make ")]
    jobs = read_yaml(path)["jobs"]
    assert len(called) >= len([name for name in jobs if name != "draft"])
    variables = set(re.findall(r"^(\w+) \?=", text("Makefile"), re.M))
    for line in called:
        words = re.sub(r'"[^"]*"|\$\{\{.*?\}\}', "value", line).split()[1:]
        assert {word for word in words if "=" not in word} <= make_targets(), line
        assert {word.split("=")[0] for word in words if "=" in word} <= variables, line
    assert all("timeout-minutes" in job for job in jobs.values())


def test_help_names_every_target():
    """`make help` has a line for each target, and no other; targets are phony, so that no file hides them."""
    printed = set(re.findall(r'@echo "make ([a-z-]+)', text("Makefile")))
    parts = {"lint", "types", "layers", "schemas"}  # of make check, named in its line
    assert printed == make_targets() - {"help"} - parts
    assert all(part in re.search(r'@echo "make check .*', text("Makefile"))[0] for part in parts)
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)", text("Makefile"), re.M)[1].replace("\\", "").split()
    assert set(phony) == make_targets()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_recipes_find_the_environment_on_windows():
    """Commands of the environment are in Scripts there, and a variable names another folder."""
    assert "$(VENV)/bin/" not in text("Makefile")
    for setting, folder in (("OS=Windows_NT", "nowhere/Scripts"), ("VENV_BIN=elsewhere", "elsewhere")):
        command = ["make", "-n", "lint", "VENV=nowhere", setting]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert f"{folder}/ruff check ." in printed.splitlines()


def test_hooks_call_make_targets_and_download_nothing():
    """Every hook is local and runs the tools of the project's environment."""
    settings = read_yaml(ROOT / ".pre-commit-config.yaml")
    assert [repository["repo"] for repository in settings["repos"]] == ["local"]
    for hook in settings["repos"][0]["hooks"]:
        make, target = hook["entry"].split()
        assert make == "make" and target in make_targets() and hook["language"] == "system"


def test_issue_forms_can_be_filled_in():
    """A form has a name, a description, and questions with different ids; the required ones say so."""
    forms = [path for path in (HOSTING / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert {path.stem for path in forms} == {"bug", "idea"}
    for path in forms:
        form = read_yaml(path)
        assert form["name"] and form["description"]
        asked = [item for item in form["body"] if item["type"] != "markdown"]
        assert len({item["id"] for item in asked}) == len(asked)
        assert any(item.get("validations", {}).get("required") == "true" for item in asked)
    assert read_yaml(HOSTING / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": "true"}


def test_the_command_of_the_bug_form_runs():
    """The command that the form asks a reporter to run prints the version of mercer."""
    asked = read_yaml(HOSTING / "ISSUE_TEMPLATE" / "bug.yml")["body"]
    description = next(item for item in asked if item.get("id") == "versions")["attributes"]["description"]
    code = re.search(r'python -c "(.*)"', description)[1]
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.startswith(f"{mercer.__version__} {sys.version_info.major}.") and "scipy" in printed


def test_the_pull_request_template_names_commands_that_exist():
    """Its `make ...` are targets, its files exist."""
    template = text(".github/pull_request_template.md")
    asked = re.findall(r"`make ([a-z-]+)`", template)
    assert asked and set(asked) <= make_targets()
    assert all((ROOT / name).exists() for name in re.findall(r"\b[A-Z]+\.md\b", template))


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_commands_and_files_that_exist(page):
    """Every `make ...` of the page is a target, every link to a file leads somewhere."""
    page_text = text(page)
    for line in re.findall(r"^ {4,}make (.*)$", page_text, re.M):
        words = re.sub(r"#.*", "", line).split()
        assert {word for word in words if "=" not in word} <= make_targets(), line
    for link in re.findall(r"\]\((?!http)([^)#]+)", page_text):
        assert (ROOT / link).exists(), link


def test_contributors_read_the_layers_of_the_import_linter():
    """CONTRIBUTING.md lists the layers of pyproject.toml in their order; only the entry points are left out."""
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    wanted = [re.findall(r"\w+", layer) for layer in layers if layer != "__main__"]
    (page,) = re.findall(r"(?:^    \w.* >.*\n)+(?:^    \w.*\n)*", text("CONTRIBUTING.md"), re.M)
    assert [re.findall(r"\w+", layer) for layer in page.split(">")] == wanted


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    """The workflow's awk program prints the section of the version, and nothing of another one."""
    (program,) = [line for line in commands(HOSTING / "workflows" / "release.yml") if line.startswith("awk")]
    changelog = "# Changelog\n\n## [0.2.0] - 2030-01-02\n\n- new\n\n## [0.1.0] - 2029-01-02\n\n- old\n"
    program = program.replace("CHANGELOG.md > notes.md", "-")
    for version, expected in (("0.2.0", "- new"), ("0.1.0", "- old"), ("0.3.0", "")):
        shell = ["bash", "-c", f"version={version}; {program}"]
        printed = subprocess.run(shell, input=changelog, capture_output=True, text=True, check=True).stdout
        assert printed.strip() == expected
