"""PgBouncer before a test's database."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from postgres_place import place_of
from skip_report import lacking
from sqlalchemy.engine import make_url

from worker.store.embedded.owner import server_owner


@contextlib.contextmanager
def pgbouncer(database_url: str, pool_mode: str) -> Iterator[str]:
    """The address to reach ``database_url`` at through a pooler; skips the test where there is none."""
    # Distributions keep it where only root's PATH looks.
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        lacking("pgbouncer")
    url = make_url(database_url)
    host, server_port = place_of(database_url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\nbehind = host={host} port={server_port} dbname={url.database} user={url.username}"
            f" password={url.password}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"auth_type = any\npool_mode = {pool_mode}\nunix_socket_dir =\n"
        )
        # A socket of root's embedded server is reached by that server's user alone.
        user = server_owner().uid if os.geteuid() == 0 else None
        with subprocess.Popen([program, settings], user=user, stderr=subprocess.PIPE, text=True) as process:
            try:
                # Said once it listens.
                next(line for line in process.stderr if "process up" in line)
                yield f"postgresql://anybody@127.0.0.1:{port}/behind"
            finally:
                process.kill()
