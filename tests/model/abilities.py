"""What an account could do about the archive, by what it sees and by what the rows say."""

from __future__ import annotations

from fleet_state import ACCOUNTS, Protocol, State


class Abilities:
    """Under one protocol."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    def wanted(self, state: State, account: int) -> bool:
        """Whether there is anything that this account could do."""
        return any(
            can(state, account) for can in (self.scans, self.publishes, self.finishes, self.takes_over)
        )

    def scans(self, state: State, account: int) -> bool:
        """Whether it would read the source."""
        if state.archive == "unread":
            return state.sees_source[account] or not self._protocol.asks_for_sight
        # Whoever believes that it sees everything takes what it does not find for deleted.
        is_blind = not self._protocol.asks_for_sight and not state.sees_source[account]
        return is_blind and state.archive == "ready" and state.intent is None

    def publishes(self, state: State, account: int) -> bool:
        """Whether it would begin to publish."""
        if state.archive != "ready" or state.intent is not None or not state.sees_source[account]:
            return False
        return not state.unseen[account] or not self._protocol.asks_for_sight

    def could_end(self, state: State, account: int) -> bool:
        """Whether the account could end the intent that there is: it sees what was sent, and has the bytes."""
        intent = state.intent
        assert intent is not None
        sees = not self._protocol.asks_for_sight or intent.phase == "planned" or account not in intent.blind
        if not sees:
            return bool(intent.message) and intent.phase != "ending"
        there = bool(intent.message) or ACCOUNTS[intent.account] in state.messages - state.unseen[account]
        return there or state.sees_source[account] or intent.phase == "ending"

    def finishes(self, state: State, account: int) -> bool:
        """Whether it would go on with what it has begun."""
        return state.intent is not None and state.intent.account == account and self.could_end(state, account)

    def takes_over(self, state: State, account: int) -> bool:
        """Whether it would go on with what the other has begun."""
        intent = state.intent
        if intent is None or intent.account == account or not self.could_end(state, account):
            return False
        # Of an account that may work, because a person who saw that it cannot end it says so.
        return not state.ready[intent.account] or not self.could_end(state, intent.account)
