"""What people call channels by."""

import pytest

from worker.domain.channel_name import ChannelName, NamedBy, channel_name


@pytest.mark.parametrize(
    ("text", "by", "value"),
    [
        ("2400000001", NamedBy.ID, "2400000001"),
        ("-1002400000001", NamedBy.ID, "2400000001"),
        ("https://t.me/c/2400000001/17", NamedBy.ID, "2400000001"),
        ("@printvault", NamedBy.USERNAME, "printvault"),
        ("t.me/printvault", NamedBy.USERNAME, "printvault"),
        ("https://t.me/s/printvault", NamedBy.USERNAME, "printvault"),
        ("http://telegram.me/printvault/12?single", NamedBy.USERNAME, "printvault"),
        ("tg://resolve?domain=printvault&post=3", NamedBy.USERNAME, "printvault"),
        ("https://t.me/+AbC_d-1", NamedBy.INVITE, "AbC_d-1"),
        ("t.me/joinchat/AbCd", NamedBy.INVITE, "AbCd"),
        ("tg://join?invite=AbCd", NamedBy.INVITE, "AbCd"),
        ("-4000123", NamedBy.GROUP, "-4000123"),
        ("Model Archive", NamedBy.TITLE, "Model Archive"),
        ("²", NamedBy.TITLE, "²"),
    ],
)
def test_a_name_is_understood(text, by, value):
    assert channel_name(f" {text} ") == ChannelName(by, value)
