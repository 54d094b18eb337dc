"""The error for a missing or old package that a part of smolfed needs, such as scikit-learn."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version


def unmet(part: str, package: str, oldest: str, extra: str, error: ImportError) -> ImportError:
    """The error for a package that is missing, older than `oldest`, or new but not importable."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        found = "it is not installed"
    else:
        found = f"version {installed} is installed"
        if _numbers(installed) >= _numbers(oldest):
            return ImportError(
                f"{part} needs {package}, whose version {installed} cannot be imported: {error}"
            )
    return ImportError(
        f"{part} needs {package} {oldest} or newer, but {found}: pip install 'smolfed[{extra}]'"
    )


def _numbers(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(digits) for digits in re.findall(r"\d+", text)[:2])
