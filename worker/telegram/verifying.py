"""What becomes of answers: file parts are compared with the server's hashes, then those who wait are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.cipher.range_hashes import sha256_each
from worker.telegram.part_calls import Unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.telegram.line import Answered


def verified(answers: Sequence[Answered]) -> Iterator[Answered]:
    """The same answers in the same order: those with bytes are handed on, or have become an error."""
    pieces = [
        result.call.ranges(result.data) if isinstance(result, Unverified) else [] for _, result, _ in answers
    ]
    digests = iter(sha256_each([piece for each in pieces for piece in each]))
    for (request, result, error), own in zip(answers, pieces, strict=True):
        if not isinstance(result, Unverified):
            yield request, result, error
            continue
        try:
            yield request, result.call.settle(result.data, [next(digests) for _ in own]), None
        except Exception as refused:  # noqa: BLE001 - whoever waits for these bytes is told, whatever it is
            yield request, None, refused


def resolve(answered: list[Answered]) -> None:
    """Give those who wait what came for them, in the loop that they wait in."""
    for request, result, error in answered:
        if request.answer.done():
            continue
        if error is not None:
            request.answer.set_exception(error)
        else:
            request.answer.set_result(result)
