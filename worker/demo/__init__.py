"""The whole product in one command, on a database and a Telegram of its own."""
