"""Print the tests nearest to what was changed, for `make test FAST=1`: mirrored tests, doctests, and those of a helper.

What was changed is what differs from the last commit; where nothing does, what that commit changed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/sitr")


def changed() -> list[Path]:
    """Return the files that were changed."""
    ours = [*_git("diff", "--name-only", "HEAD"), *_git("ls-files", "--others", "--exclude-standard")]
    return [Path(name) for name in ours or _git("diff", "--name-only", "HEAD~1")]


def nearest(paths: Iterable[Path], root: Path = ROOT) -> list[str]:
    """Return what to run for some files, each once: files of tests, and of the package for their doctests.

    Example:
        >>> nearest([Path("src/sitr/query/facts.py"), Path("README.md")])
        ['src/sitr/query/facts.py', 'tests/query/test_facts.py', 'tests/test_docs.py']
    """
    found: dict[str, None] = {}
    for path in paths:
        for one in _of(path, root):
            if (root / one).exists():
                found[str(one)] = None
    return sorted(found)


def _of(path: Path, root: Path) -> list[Path]:
    if path.suffix == ".md":
        return [Path("tests/test_docs.py")]
    if path.suffix != ".py":
        return []
    if path.is_relative_to(PACKAGE):
        within = path.relative_to(PACKAGE)
        return [path, Path("tests") / within.parent / f"test_{within.name}"]
    if path.name.startswith("test_"):
        return [path]
    if path.is_relative_to("tests") and len(path.parts) > 2:  # a helper: whoever may use it
        return [one.relative_to(root) for one in sorted((root / path.parent).glob("test_*.py"))]
    return []


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    print(" ".join(nearest(changed())) or "tests/test_package.py")
