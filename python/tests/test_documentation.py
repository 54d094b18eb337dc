"""The examples in all docstrings, and the types of all names."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import smolfed

# Needs Flower, which is tested separately.
NEEDS_FLOWER = {"smolfed.flower"}
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(smolfed.__path__, "smolfed.")
    if name != "smolfed._native" and name not in NEEDS_FLOWER
]


@pytest.mark.parametrize("name", ["smolfed", *MODULES])
def test_examples_of_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "blocks"), [("README.md", 1), ("docs/python.md", 5)])
@pytest.mark.filterwarnings("ignore::smolfed.PrivacyWarning")
def test_code_of_the_pages_runs(page: str, blocks: int) -> None:
    """Runs the blocks verbatim and in order, except those that need other programs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    others = ("privacy_engine", "flwr", "experiment, data", "runs/watch")
    runnable = [block for block in code if not any(other in block for other in others)]
    assert len(runnable) == blocks
    names: dict = {}
    for block in runnable:
        exec(compile(block, page, "exec"), names)  # noqa: S102


def test_public_functions_are_documented() -> None:
    for name in ["smolfed", *MODULES]:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            found = getattr(module, public)
            if isinstance(found, (str, list, tuple)):
                continue
            assert found.__doc__, f"{name}.{public}"


def test_types_are_consistent() -> None:
    pytest.importorskip("mypy")
    settings = ["--strict", "--ignore-missing-imports", "--no-error-summary"]
    # The necessary comments depend on whether the packages without types are installed.
    settings.append("--no-warn-unused-ignores")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "--cache-dir", "/dev/null", "-p", "smolfed"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
