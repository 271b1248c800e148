"""``worker accounts rotate-key`` with a key that is kept outside of the data folder."""

import pytest
from accounts_place import ADA, CODE
from worker_command import worker

OLD, FRESH, OTHER = (f"{letter * 43}=\n" for letter in "AEI")
DOES_NOT_OPEN = "a stored session does not open with this secret key"


@pytest.fixture
async def account(place, tmp_path):
    """One that is logged in, with its session sealed under the old key."""
    (tmp_path / "key").write_text(OLD)
    (tmp_path / "code").write_text(CODE)
    library = await place.admin.create_channel("Library", admins=[ADA])
    source = await place.admin.create_channel("Source", members=[ADA])
    await place.admin.create_channel("Elsewhere", username="elsewhere")
    added = await place.run("add", ADA, "--code-file", str(tmp_path / "code"))
    assert added.code == 0, added
    for role, channel in (("add", source), ("destination", library)):
        chosen = await worker("channels", role, str(channel["channel_id"]), **place.settings)
        assert chosen.code == 0, chosen
    return "1"


@pytest.fixture
def keys(tmp_path):
    """Write what the file on every host says."""

    def write(*lines: str) -> None:
        (tmp_path / "key").write_text("".join(lines))

    return write


async def _logs_out(place, account):
    """Whether the session opens and is still good at Telegram: it takes both to be logged out."""
    removed = await place.run("remove", account, "--yes")
    return removed, [call["ok"] for call in await place.admin.calls("auth.logOut")]


async def test_a_key_that_is_not_ours_is_not_changed_but_asked_for(place, account):
    refused = await place.run("rotate-key")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "put a line made with `openssl rand -base64 32` above it" in refused.err
    assert "on every host" in refused.err


async def test_what_the_old_key_sealed_still_opens_before_it_is_rotated(place, account, keys):
    keys(FRESH, OLD)
    removed, logged_out = await _logs_out(place, account)
    assert (removed.code, removed.err, logged_out) == (0, "", [True])


async def test_after_the_rotation_the_fresh_key_alone_opens_everything(place, account, keys):
    keys(FRESH, OLD)
    rotated = await place.run("rotate-key")
    assert (rotated.code, rotated.err) == (0, "")
    assert "secrets are encrypted under key" in rotated.out
    assert "remove their lines on every host" in rotated.out
    keys(FRESH)
    removed, logged_out = await _logs_out(place, account)
    assert (removed.code, removed.err, logged_out) == (0, "", [True])


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("run --once", 1, DOES_NOT_OPEN),
        ("channels add @elsewhere", 2, DOES_NOT_OPEN),
        ("doctor", 2, "sessions: 1 were encrypted under a key that is not here — add that key"),
    ],
)
async def test_a_key_that_no_longer_opens_is_one_clear_line(place, account, keys, command, code, said):
    keys(FRESH, OLD)
    assert (await place.run("rotate-key")).code == 0
    keys(OLD)
    ended = await worker(*command.split(), **place.settings)
    assert ended.code == code, ended
    assert [said in line for line in (ended.out + ended.err).splitlines()].count(True) == 1, ended
    assert ended.err.count("\n") <= 1, ended.err
    assert await place.states() == {"01": "ready"}, "the right key makes it work again"


@pytest.mark.parametrize("wrong", [(OTHER,), (OTHER, FRESH)], ids=["one", "two"])
async def test_a_rotation_with_wrong_keys_is_one_clear_line_and_changes_nothing(place, account, keys, wrong):
    keys(*wrong)
    refused = await place.run("rotate-key")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "encrypted under a key that is not here: 1 — add that key as a line" in refused.err
    keys(OLD)
    removed, logged_out = await _logs_out(place, account)
    assert (removed.code, removed.err, logged_out) == (0, "", [True])


async def test_an_account_is_logged_in_anew_under_a_rotated_key(place, account, keys, tmp_path):
    keys(FRESH, OLD)
    assert (await place.run("rotate-key")).code == 0
    keys(FRESH)
    ended = await place.run("login", account, "--again", "--code-file", str(tmp_path / "code"))
    assert (ended.code, ended.err) == (0, ""), ended
    removed, logged_out = await _logs_out(place, account)
    # The session before the login was ended by that, the one it made by the removal.
    assert (removed.code, removed.err, logged_out) == (0, "", [True, True])


async def test_when_a_key_is_lost_the_next_step_makes_everything_anew(place, account, keys, tmp_path):
    assert (await place.run("login", account, "--proxy", "http://127.0.0.1:1")).code == 0
    keys(OTHER)
    login = ("login", account, "--again", "--code-file", str(tmp_path / "code"))
    refused = await place.run(*login)
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "worker accounts login ACCOUNT --again, with --proxy if it had one" in refused.err
    ended = await place.run(*login, "--proxy", "none")
    assert (ended.code, ended.err) == (0, ""), ended
    removed, logged_out = await _logs_out(place, account)
    # The session before the login opens no more, so that only the removal ends one.
    assert (removed.code, removed.err, logged_out) == (0, "", [True])


async def test_a_login_begun_under_a_key_that_is_lost_begins_anew(place, keys, tmp_path):
    code = ("--code-file", str(tmp_path / "code"))
    assert (await place.run("add", ADA, *code)).code == 2
    (tmp_path / "code").write_text(CODE)
    keys(OTHER)
    refused = await place.run("login", "1", *code)
    assert (refused.code, "worker accounts login ACCOUNT --again" in refused.err) == (2, True), refused
    assert (await place.run("login", "1", "--again", *code)).code == 0
    assert await place.states() == {"01": "ready"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("not base64!\n", "is not base64"), ("QUJD\n", "has 3 bytes, not 32"), ("\n", "is empty")],
)
async def test_what_is_no_key_is_one_clear_line(place, tmp_path, text, said):
    (tmp_path / "key").write_text(text)
    refused = await place.run("rotate-key")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert said in refused.err
    assert text.strip() == "" or text.strip() not in refused.err
