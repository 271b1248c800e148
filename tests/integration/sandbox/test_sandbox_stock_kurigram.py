import os

MIB = 1024 * 1024


async def test_a_stock_client_logs_in_creates_a_channel_and_sends_and_fetches_12_mib(sandbox, tmp_path):
    original = os.urandom(12 * MIB + 12345)
    source = tmp_path / "archive.zip"
    source.write_bytes(original)
    async with sandbox.logged_in("+49301", tmp_path) as client:
        me = await client.get_me()
        channel = await client.create_channel("Archives", "about")
        sent = await client.send_document(channel.id, str(source), caption="one")
        fetched = await client.download_media(sent, file_name=str(tmp_path / "fetched.zip"))
    assert me.phone_number == "49301"
    assert sent.document.file_name == "archive.zip"
    assert fetched == str(tmp_path / "fetched.zip")
    assert (tmp_path / "fetched.zip").read_bytes() == original
