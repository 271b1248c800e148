"""What is in an sdist and a wheel, and that it is what their names say."""

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest
from distributions import ROOT, make_sdist, make_wheel, run

from worker import __version__, release

_COMPILER = any(map(shutil.which, ("cc", "gcc", "clang")))
_LIBRARY = "worker/cipher/_ige.abi3.so"
_LOAD = """
import sys, importlib.util
spec = importlib.util.spec_from_file_location("_ige", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print({name: module.supported(name) for name in ("crypt", "open", "hash")})
"""


def _files(sdist):
    with tarfile.open(sdist) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def _hash(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pythons():
    """Every Python here that a wheel for the stable ABI of 3.11 says it suits."""
    found = {sys.executable} | {shutil.which(f"python3.{minor}") for minor in range(11, 16)} - {None}
    works = {each for each in found if subprocess.run([each, "-c", ""], capture_output=True).returncode == 0}
    return [
        each for each in works if run(each, "-c", "import sys; print(sys.platform)").strip() == sys.platform
    ]


@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="git says what belongs to it, and this is no checkout"
)
def test_the_sdist_holds_every_file_of_the_checkout_and_its_commit(dist):
    listed = run("git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    files = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert _files(dist.sdist) - {""} == files | {"PKG-INFO", "worker/COMMIT"}


def test_the_wheel_holds_the_package_and_its_migrations_and_nothing_else(dist):
    with zipfile.ZipFile(dist.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        scripts = wheel.read(f"archive_fleet-{__version__}.dist-info/entry_points.txt").decode()
    package = {name for name in _files(dist.sdist) if name.startswith("worker/")}
    migrations = {
        name.replace("alembic/", "worker/migrations/", 1)
        for name in _files(dist.sdist)
        if name.startswith("alembic/")
    }
    assert len(migrations) >= 3
    assert names - {_LIBRARY} == package | migrations
    assert "worker = worker.cli.main:main" in scripts


@pytest.mark.skipif(not _COMPILER, reason="no C compiler")
def test_a_wheel_made_with_a_compiler_says_so_and_every_python_it_names_loads_its_library(dist, tmp_path):
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    with zipfile.ZipFile(dist.wheel) as wheel:
        about = wheel.read(f"archive_fleet-{__version__}.dist-info/WHEEL").decode()
        library = wheel.extract(_LIBRARY, tmp_path)
    if sys.platform == "linux":
        assert dist.wheel.name == f"archive_fleet-{__version__}-cp311-abi3-{platform}.whl"
    assert "Root-Is-Purelib: false" in about
    assert len({run(each, "-c", _LOAD, library) for each in _pythons()}) == 1


def test_a_wheel_made_without_a_compiler_is_pure(dist, tmp_path):
    pure = make_wheel(tmp_path, dist.sdist, CC="/nonexistent")
    assert pure.name == f"archive_fleet-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(pure) as opened:
        assert _LIBRARY not in opened.namelist()
        assert b"Root-Is-Purelib: true" in opened.read(f"archive_fleet-{__version__}.dist-info/WHEEL")


def test_the_same_sources_give_the_same_bytes_wherever_and_whenever_they_are_built(dist, tmp_path):
    # Not by tarfile: before Python 3.11.4 it knows no filter, and after it wants one.
    run("tar", "-xf", str(dist.sdist), "-C", str(tmp_path))
    (unpacked,) = tmp_path.iterdir()
    again = make_sdist(tmp_path / "again", unpacked)
    assert _hash(again) == _hash(dist.sdist)
    assert _hash(make_wheel(tmp_path / "again", again)) == _hash(dist.wheel)


def test_the_commit_is_kept_from_the_checkout_to_the_wheel(dist):
    with zipfile.ZipFile(dist.wheel) as wheel:
        assert wheel.read("worker/COMMIT").decode().strip() == release.commit(ROOT / "worker")


def test_a_build_without_git_takes_the_commit_it_is_told_and_does_without_one(dist, tmp_path):
    run("tar", "-xf", str(dist.sdist), "-C", str(tmp_path))
    (root,) = tmp_path.iterdir()
    (root / "worker" / "COMMIT").unlink()
    told = make_sdist(tmp_path / "told", root, ARCHIVE_FLEET_COMMIT="abc1234")
    with tarfile.open(told) as opened:
        assert opened.extractfile(f"{root.name}/worker/COMMIT").read() == b"abc1234\n"
    assert "worker/COMMIT" not in _files(make_sdist(tmp_path / "untold", root, ARCHIVE_FLEET_COMMIT=""))
