"""What befalls the accounts and the database, and what people do with the fleet."""

from others import UNLUCKY, Others, deed
from world import PHONES

from worker.store.pauses import PauseStore
from worker.store.set_listing import retry_set, skip_set

STEP_SECONDS = 120
TROUBLES = (
    ("messages.sendMedia", "drop_reply", {}),
    ("messages.sendMedia", "error", {"code": 420, "text": "FLOOD_WAIT_1"}),
    ("messages.sendMedia", "error", {"code": 500, "text": "INTERNAL"}),
    ("upload.saveFilePart", "disconnect", {}),
    ("upload.getFile", "error", {"code": 400, "text": "FILE_REFERENCE_EXPIRED"}),
    ("upload.getFile", "short", {}),
    ("messages.getHistory", "drop_reply", {}),
)


@deed("an account is put out of a source and let in again")
async def _kick_from_source(others: Others, number: int) -> None:
    await others.world.admin.kick(others.source(number), UNLUCKY)
    await others.world.admin.join(others.source(number), UNLUCKY)


@deed("an account is put out of the destination and let in again")
async def _kick_from_destination(others: Others, number: int) -> None:
    await others.world.admin.kick(others.world.destination, UNLUCKY)
    await others.world.admin.join(others.world.destination, UNLUCKY, admin=bool(number % 2))


@deed("an account loses the right to post")
async def _forbid(others: Others, number: int) -> None:
    await others.world.admin.join(others.world.destination, UNLUCKY, admin=False)


@deed("an account may post again")
async def _permit(others: Others, number: int) -> None:
    await others.world.admin.join(others.world.destination, UNLUCKY, admin=True)


@deed("an account gets Premium")
async def _premium(others: Others, number: int) -> None:
    await others.world.admin.set_premium(PHONES[number % 2], premium=True)


@deed("Premium lapses")
async def _no_premium(others: Others, number: int) -> None:
    await others.world.admin.set_premium(PHONES[number % 2], premium=False)


@deed("the clock steps ahead")
async def _step_ahead(others: Others, number: int) -> None:
    await others.set_clock(others.ahead + number % STEP_SECONDS)


@deed("the clock steps back")
async def _step_back(others: Others, number: int) -> None:
    await others.set_clock(others.ahead - number % STEP_SECONDS)


@deed("PostgreSQL forgets all locks")
async def _forget_locks(others: Others, number: int) -> None:
    await others.world.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'archive-fleet locks %'"
    )


@deed("a person pauses the fleet")
async def _pause(others: Others, number: int) -> None:
    await others.on_database(lambda db: PauseStore(db).pause(by="somebody"))


@deed("the fleet goes on")
async def _resume(others: Others, number: int) -> None:
    await others.resume()


@deed("a person leaves a set out")
async def _leave_out(others: Others, number: int) -> None:
    await others.with_a_set(number, lambda db, each: skip_set(db, each, "left out by somebody"))


@deed("a person tries a set again")
async def _try_again(others: Others, number: int) -> None:
    await others.with_a_set(number, retry_set)


@deed("all sessions of a worker are cut at Telegram")
async def _cut(others: Others, number: int) -> None:
    await others.world.admin.disconnect(PHONES[number % 2])


@deed("file references expire")
async def _expire(others: Others, number: int) -> None:
    await others.world.admin.expire_references()


@deed("Telegram has trouble")
async def _trouble(others: Others, number: int) -> None:
    method, action, options = TROUBLES[number % len(TROUBLES)]
    await others.world.admin.add_rule(method, action, nth=1 + number % 2, **options)
