"""What is written once and must stay true as the project grows."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_every_dependency_has_its_reason():
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    for extra in project["project"]["optional-dependencies"].values():
        named += extra
    reasons = (_ROOT / "docs" / "decisions" / "001-dependencies.md").read_text()
    names = [re.match(r"[A-Za-z0-9-]+", each).group() for each in named]
    assert [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", reasons)] == []


def test_every_package_says_what_it_is_for():
    packages = list((_ROOT / "worker").rglob("__init__.py"))
    assert [str(path) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))] == []
    assert len(packages) >= 15


def test_no_module_outgrows_a_sitting():
    sizes = {path: len(path.read_text().splitlines()) for path in (_ROOT / "worker").rglob("*.py")}
    assert {str(path): size for path, size in sizes.items() if size > 300} == {}


def test_no_test_measures_how_busy_the_machine_is():
    """A hang is called one after HANG_SECONDS; nothing is asserted to take less time than something."""
    hurried = re.compile(
        r"asyncio\.timeout\((?!HANG_SECONDS|COMMAND_SECONDS)|wait_for\([^\n]*, [\d.]+\)$|(communicate|wait|join)\([^\n]*timeout=\d|(monotonic|perf_counter)\(\) - \w+ <"
    )
    found = {
        f"{path.relative_to(_ROOT)}:{number}"
        for path in (_ROOT / "tests").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if hurried.search(line) and "clients" not in path.parts
    }
    assert found == set()


def test_no_lease_of_a_test_is_shorter_than_a_hang():
    """What must not run out by itself outlasts a starved machine; what must is moved on a clock of the test's."""
    short = re.compile(r"""(lease_secs|answer_within)"?(=|: )[\d.]+(?! \* HANG_SECONDS)\b""")
    found = {
        f"{path.relative_to(_ROOT)}:{number}"
        for path in (_ROOT / "tests").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if short.search(line)
    }
    assert found == set()


def test_no_file_names_the_host_of_a_registry():
    """Where packages come from is the machine's choice."""
    named = re.compile(r"https?://[\w.-]*(pypi|pythonhosted|debian\.|docker\.io|npmjs)")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True).stdout
    files = [_ROOT / name for name in listed.split("\0") if name] or list(_ROOT.rglob("*.txt"))
    found = [str(path) for path in files if path.is_file() and named.search(path.read_text(errors="replace"))]
    assert found == []
