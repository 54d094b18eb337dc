"""Packages that a part of smolfed needs, and their oldest versions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def unmet(part: str, package: str, oldest: str, extra: str) -> ImportError:
    """The error for a package that is missing, or older than `oldest`."""
    try:
        found = f"version {version(package)} is installed"
    except PackageNotFoundError:
        found = "it is not installed"
    return ImportError(
        f"{part} needs {package} {oldest} or newer, but {found}: pip install 'smolfed[{extra}]'"
    )
