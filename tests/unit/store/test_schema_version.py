"""The revision that the code needs is known without the library that makes it."""

import subprocess
import sys

from alembic.script import ScriptDirectory

from worker.store import migrations


def test_the_newest_file_is_the_head_of_the_migrations():
    assert migrations.head() == ScriptDirectory.from_config(migrations._config()).get_current_head()


def test_the_status_starts_without_alembic_and_the_telegram_library():
    script = (
        "import sys, worker.cli.status; from worker.store import migrations; migrations.head()\n"
        "print('heavy:', {'alembic', 'pyrogram'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "heavy: set()\n", done
