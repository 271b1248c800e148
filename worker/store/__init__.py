"""PostgreSQL: the tables, every query, the locks, and the embedded server.

The only package that imports SQLAlchemy, asyncpg and Alembic. Each module owns the queries of one noun.
Every transaction has a name and is bracketed by failpoints.
"""
