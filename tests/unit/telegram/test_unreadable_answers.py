"""An answer in a later schema than ours: its call learns that it arrived, and the connection goes on."""

import pytest
from pyrogram import raw
from test_cancelled_calls import session as session_on_a_line

from worker.errors import OutcomeUnknownError
from worker.telegram.unpacking import Unreadable

session = session_on_a_line


async def test_a_call_whose_answer_cannot_be_read_has_an_unknown_outcome_and_says_why(session):
    """What was sent is there, perhaps: a refusal would have it sent once more."""

    def answer():
        (result,) = session.results.values()
        result.value = Unreadable("it holds an object of an unknown kind (0x0badbeef)")
        result.event.set()

    session.connection.on_send = answer
    session.is_started.set()
    with pytest.raises(OutcomeUnknownError, match=r"users.GetUsers: the answer cannot be read: .*0x0badbeef"):
        await session.call(raw.functions.users.GetUsers(id=[]), deadline=4)
    assert session.is_started.is_set()
    assert session.broken is None
