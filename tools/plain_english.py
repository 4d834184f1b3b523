"""Figures of how plainly Python sources are written: names, docstrings, help texts, error remedies, commit subjects.

``python -m tools.plain_english [ROOT]`` prints one figure per line; ``--worst N`` adds the N files that hold most of
each, ``--json`` prints JSON. With the root ``graphc`` it also reads docs/*.md, CHANGELOG.md and the names of tests. The
word lists name the habits that made this code hard to read: a figure of 0 proves little, a large one proves that
readers must translate.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GENERIC = frozenset(
    {"found", "given", "made", "known", "told", "kept", "wanted", "wholes", "whole", "part", "parts", "place", "places"}
    | {"way", "ways", "taken", "begun", "held", "thing", "things", "asked", "opened", "seen", "gone", "left"}
)
"""Names that do not say what a variable holds."""
WOODEN = re.compile(
    r"\b(?:[Ww]hat|those|that)\s+"
    r"(?:it|a|an|the|is|are|was|were|of|they|he|she|who|which|does|do|has|have|there|else)\b"
    r"|\b(?:is no|are no|is none|stands? (?:for|by|in|behind|beside|there)|lies? (?:in|behind|beside|where|apart)"
    r"|behind it|beside it|anew|in vain|of one's own|so many|so much of)\b"
)
"""Phrases that stand where a noun or a verb of the field belongs."""
OPENERS = ("What ", "Of ", "That ", "Those ", "By ", "As of ", "Who ", "Which ", "How ", "Where ", "Whose ")
"""First words of docstrings that are neither a verb nor a noun."""
NO_VERB = ("a ", "an ", "the ", "another", "one of", "without", "two ", "of ", "tensors", "arrays")
"""First words of remedies that are not an order."""
NO_ACT = re.compile(r"^[\w./, -]+: (?:a|an|the|what|who|one|no|all|those|that|once|only|each|it|its)\b", re.IGNORECASE)
"""Commit subjects that name a thing instead of an act."""
MOST_FILES = 30
"""Files in a folder that a reader can still survey."""
MEANINGS = 3
"""Classes of one name from which on it says nothing."""
COMMITS = 200
EXAMPLES = (">>>", "::\n", "```")
"""Texts that begin an example in a docstring."""

GENERIC_NAMES = "generic names, share of all stores"
WOODEN_PHRASES = "wooden phrases per 1,000 docstring words"
OPENED = "docstrings that open with What, Of, That, Who ..."
SHORT = "docstrings of three words or fewer"
WITH_EXAMPLE = "docstrings with an example"
REMEDIES = "remedies without a verb"
HELP_TEXTS = "wooden help texts"
CLASS_NAMES = "class names with three meanings or more"
FOLDERS = "folders of more than 30 files"
SUBJECTS = "commit subjects that name no act, of 200"
PAGES = "wooden phrases per 1,000 words of docs"
CHANGELOG = "wooden phrases per 1,000 words of the changelog"
TEST_NAMES = "wooden test names"


@dataclass
class Tally:
    """Totals by figure, and counts by figure and file."""

    totals: Counter[str] = field(default_factory=Counter)
    files: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, figure: str, path: Path, count: int = 1) -> None:
        """Count something in a file."""
        self.totals[figure] += count
        if count:
            self.files[figure][path.as_posix()] += count


def documented(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, of its classes and of its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def wooden(text: str) -> int:
    """Count the wooden phrases of a text."""
    return len(WOODEN.findall(text))


def literal(node: ast.expr) -> str | None:
    """Return the text of a string or f-string, or None for another expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node)[2:-1] if isinstance(node, ast.JoinedStr) else None


def count_names(tree: ast.Module, path: Path, tally: Tally) -> None:
    """Count stores to variables and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        tally.totals["stores"] += 1
        tally.add(GENERIC_NAMES, path, name.strip("_") in GENERIC)


def count_messages(tree: ast.Module, path: Path, tally: Tally) -> None:
    """Count remedies of errors and help texts of the command line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) or node.arg not in ("remedy", "help"):
            continue
        text = literal(node.value)
        if text is None:
            continue
        if node.arg == "remedy":
            tally.totals["remedies"] += 1
            tally.add(REMEDIES, path, text.startswith(NO_VERB) or " " not in text.strip())
        else:
            tally.totals["help texts"] += 1
            tally.add(HELP_TEXTS, path, bool(wooden(text)))


def count_docstrings(tree: ast.Module, path: Path, tally: Tally) -> None:
    """Count docstrings by their opening, length and examples."""
    for text in documented(tree):
        words = len(text.split())
        tally.totals["docstring words"] += words
        tally.add(WOODEN_PHRASES, path, wooden(text))
        tally.add(OPENED, path, text.startswith(OPENERS))
        tally.add(SHORT, path, words <= 3)
        tally.add(WITH_EXAMPLE, path, any(mark in text for mark in EXAMPLES))


def shared_class_names(trees: dict[Path, ast.Module]) -> dict[str, list[Path]]:
    """Return the class names that three or more files define, with the files."""
    homes: defaultdict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for name in {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}:
            homes[name].append(path)
    return {name: paths for name, paths in sorted(homes.items()) if len(paths) >= MEANINGS}


def long_folders(paths: Sequence[Path]) -> dict[Path, int]:
    """Return the folders with more than 30 Python files, and how many they hold."""
    counts = Counter(path.parent for path in paths)
    return {folder: count for folder, count in sorted(counts.items()) if count > MOST_FILES}


def commit_subjects(root: Path, count: int = COMMITS) -> list[str]:
    """Return the subjects of the last commits; none outside of a git repository."""
    command = ["git", "log", "--no-merges", f"-{count}", "--format=%s"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.splitlines()


def measure(root: Path) -> tuple[dict[str, float | int | str], Tally]:
    """Return the figures of all Python files below a folder, and their tally."""
    tally = Tally()
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))}
    for path, tree in trees.items():
        count_names(tree, path, tally)
        count_messages(tree, path, tally)
        count_docstrings(tree, path, tally)
    for paths in shared_class_names(trees).values():
        for path in paths:
            tally.files[CLASS_NAMES][path.as_posix()] += 1
    totals = tally.totals
    figures: dict[str, float | int | str] = {
        GENERIC_NAMES: round(totals[GENERIC_NAMES] / max(1, totals["stores"]), 4),
        WOODEN_PHRASES: round(1000 * totals[WOODEN_PHRASES] / max(1, totals["docstring words"]), 2),
        OPENED: totals[OPENED],
        SHORT: totals[SHORT],
        WITH_EXAMPLE: totals[WITH_EXAMPLE],
        REMEDIES: f"{totals[REMEDIES]} of {totals['remedies']}",
        HELP_TEXTS: f"{totals[HELP_TEXTS]} of {totals['help texts']}",
        CLASS_NAMES: len(shared_class_names(trees)),
        FOLDERS: len(long_folders(list(trees))),
        SUBJECTS: sum(bool(NO_ACT.match(subject)) for subject in commit_subjects(root)),
    }
    return figures, tally


def measure_texts(root: Path, tally: Tally) -> dict[str, float | int | str]:
    """Return the figures of the pages, the changelog and the names of tests of a repository."""
    figures: dict[str, float | int | str] = {}
    pages = sorted((root / "docs").rglob("*.md"))
    for figure, paths in ((PAGES, [root / "README.md", *pages]), (CHANGELOG, [root / "CHANGELOG.md"])):
        words = 0
        for path in paths:
            text = path.read_text(encoding="utf-8")
            words += len(text.split())
            tally.add(figure, path, wooden(text))
        figures[figure] = round(1000 * tally.totals[figure] / max(1, words), 2)
    names = 0
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                names += 1
                tally.add(TEST_NAMES, path, bool(wooden(node.name.replace("_", " "))))
    figures[TEST_NAMES] = f"{tally.totals[TEST_NAMES]} of {names}"
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.plain_english", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("root", nargs="?", type=Path, default=Path("graphc"), help="folder of Python sources")
    parser.add_argument(
        "--worst", type=int, default=0, metavar="N", help="list the N files with the most hits of each figure"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    if not options.root.is_dir():
        parser.error(f"{options.root} is not a folder")
    figures, tally = measure(options.root)
    if options.root.resolve() == Path(__file__).resolve().parent.parent / "graphc":
        figures |= measure_texts(options.root.resolve().parent, tally)
    if options.json:
        print(json.dumps(figures, indent=1))
        return 0
    for name, value in figures.items():
        print(f"{value!s:>14}  {name}")
    for name in figures if options.worst else ():
        if tally.files[name]:
            print(f"\n{name}")
        for path, count in tally.files[name].most_common(options.worst):
            print(f"  {count:4} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
