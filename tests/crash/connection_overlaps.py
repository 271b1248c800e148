"""Whether one key was ever connected from two addresses at the same time, from the ledger's journal."""

from itertools import combinations


def overlaps(connections: list[dict]) -> list[tuple[dict, dict]]:
    """Every pair of connections with one key from different addresses whose times overlap."""
    return [
        (one, other)
        for one, other in combinations(connections, 2)
        if one["auth_key_id"] == other["auth_key_id"]
        and one["address"] != other["address"]
        and one["connected_at"] < _end(other)
        and other["connected_at"] < _end(one)
    ]


def _end(connection: dict) -> float:
    return float("inf") if connection["disconnected_at"] is None else connection["disconnected_at"]
