import contextlib

import pytest
from accounts_place import ADA, GRACE, PASSWORD, Place
from loopback_telegram import Telegram

from worker.sandbox.admin_client import SandboxAdmin


@pytest.fixture
async def place(tmp_path, database_url):
    with contextlib.closing(Telegram(tmp_path / "telegram")) as telegram:
        facts = telegram.facts
        admin = SandboxAdmin.announced(facts)
        await admin.create_account(ADA, "Ada")
        await admin.create_account(GRACE, "Grace", premium=True, password=PASSWORD)
        key_file = tmp_path / "key"
        key_file.write_text("A" * 43 + "=\n")
        settings = {
            "database_url": database_url,
            "secret_key_file": key_file,
            "data_dir": tmp_path / "data",
            "telegram__api_id": 1,
            "telegram__api_hash": "0123456789abcdef0123456789abcdef",
            "telegram__host": facts["host"],
            "telegram__port": facts["port"],
            "telegram__public_key": facts["public_key"],
            "log_level": "error",
        }
        yield Place(admin, settings)
