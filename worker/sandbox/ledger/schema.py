"""The tables of the ledger. A box counts message ids: a channel, or one account's private chats."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS auth_keys (
  key_id INTEGER PRIMARY KEY, auth_key BLOB NOT NULL, first_salt INTEGER NOT NULL, created_at REAL NOT NULL,
  dc_id INTEGER NOT NULL, user_id INTEGER, pending_user_id INTEGER, layer INTEGER NOT NULL DEFAULT 0,
  dead TEXT NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS auth_keys_by_user ON auth_keys (user_id);

CREATE TABLE IF NOT EXISTS accounts (
  user_id INTEGER PRIMARY KEY, phone TEXT NOT NULL UNIQUE, first_name TEXT NOT NULL,
  last_name TEXT NOT NULL DEFAULT '', username TEXT UNIQUE,
  access_hash INTEGER NOT NULL, premium INTEGER NOT NULL DEFAULT 0,
  banned INTEGER NOT NULL DEFAULT 0, salt1 BLOB, salt2 BLOB, verifier BLOB, hint TEXT NOT NULL DEFAULT '',
  pts INTEGER NOT NULL DEFAULT 1, last_id INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS login_codes (
  phone TEXT PRIMARY KEY, code_hash TEXT NOT NULL, code TEXT NOT NULL, sent_at REAL NOT NULL,
  proven INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS exported_authorizations (
  token BLOB PRIMARY KEY, user_id INTEGER NOT NULL, dc_id INTEGER NOT NULL, made_at REAL NOT NULL
);

CREATE TABLE IF NOT EXISTS channels (
  channel_id INTEGER PRIMARY KEY, title TEXT NOT NULL, about TEXT NOT NULL DEFAULT '',
  access_hash INTEGER NOT NULL, creator INTEGER NOT NULL, date INTEGER NOT NULL,
  broadcast INTEGER NOT NULL, forum INTEGER NOT NULL DEFAULT 0,
  noforwards INTEGER NOT NULL DEFAULT 0, hidden_history INTEGER NOT NULL DEFAULT 0, username TEXT UNIQUE,
  invite TEXT UNIQUE, pts INTEGER NOT NULL DEFAULT 1, last_id INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS members (
  channel_id INTEGER NOT NULL, user_id INTEGER NOT NULL, role TEXT NOT NULL, date INTEGER NOT NULL,
  first_id INTEGER NOT NULL DEFAULT 0, folder INTEGER NOT NULL DEFAULT 0, read_max INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (channel_id, user_id)
);
CREATE INDEX IF NOT EXISTS members_by_user ON members (user_id);

CREATE TABLE IF NOT EXISTS chat_folders (
  user_id INTEGER NOT NULL, folder_id INTEGER NOT NULL, place INTEGER NOT NULL, description BLOB NOT NULL,
  PRIMARY KEY (user_id, folder_id)
);

CREATE TABLE IF NOT EXISTS topics (
  channel_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, title TEXT NOT NULL, icon_color INTEGER NOT NULL,
  creator INTEGER NOT NULL, date INTEGER NOT NULL, closed INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (channel_id, topic_id)
);

CREATE TABLE IF NOT EXISTS documents (
  document_id INTEGER PRIMARY KEY, access_hash INTEGER NOT NULL, kind TEXT NOT NULL, mime TEXT NOT NULL,
  size INTEGER NOT NULL, file_name TEXT NOT NULL, attributes BLOB NOT NULL, date INTEGER NOT NULL,
  dc_id INTEGER NOT NULL, sha256 TEXT
);

CREATE TABLE IF NOT EXISTS messages (
  box INTEGER NOT NULL, id INTEGER NOT NULL, peer_id INTEGER, from_id INTEGER NOT NULL, date INTEGER NOT NULL,
  text TEXT NOT NULL DEFAULT '', entities BLOB, document_id INTEGER,
  kind TEXT NOT NULL DEFAULT 'text', action BLOB,
  reply_to INTEGER, topic_id INTEGER, grouped_id INTEGER, edit_date INTEGER, fwd_from BLOB,
  noforwards INTEGER NOT NULL DEFAULT 0, random_id INTEGER, deleted INTEGER NOT NULL DEFAULT 0,
  unsearchable INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (box, id)
);
CREATE INDEX IF NOT EXISTS messages_by_kind ON messages (box, kind, id);
CREATE INDEX IF NOT EXISTS messages_by_topic ON messages (box, topic_id, id);

CREATE TABLE IF NOT EXISTS random_ids (
  user_id INTEGER NOT NULL, box INTEGER NOT NULL, peer_id INTEGER NOT NULL, random_id INTEGER NOT NULL,
  message_id INTEGER NOT NULL, PRIMARY KEY (user_id, box, peer_id, random_id)
);

CREATE TABLE IF NOT EXISTS events (
  box INTEGER NOT NULL, pts INTEGER NOT NULL, pts_count INTEGER NOT NULL, kind TEXT NOT NULL,
  ids TEXT NOT NULL,
  PRIMARY KEY (box, pts)
);

CREATE TABLE IF NOT EXISTS uploads (
  user_id INTEGER NOT NULL, file_id INTEGER NOT NULL, big INTEGER NOT NULL, total INTEGER NOT NULL,
  document_id INTEGER, started_at REAL NOT NULL, PRIMARY KEY (user_id, file_id)
);
CREATE TABLE IF NOT EXISTS upload_parts (
  user_id INTEGER NOT NULL, file_id INTEGER NOT NULL, part INTEGER NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (user_id, file_id, part)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS connections (
  connection_id INTEGER PRIMARY KEY, key_id INTEGER NOT NULL, user_id INTEGER, address TEXT NOT NULL,
  connected_at REAL NOT NULL, disconnected_at REAL
);
CREATE TABLE IF NOT EXISTS calls (
  call_id INTEGER PRIMARY KEY, at REAL NOT NULL, key_id INTEGER NOT NULL, user_id INTEGER,
  method TEXT NOT NULL,
  ok INTEGER NOT NULL, error TEXT NOT NULL DEFAULT '', address TEXT NOT NULL DEFAULT '',
  early INTEGER NOT NULL DEFAULT 0, chat INTEGER
);
CREATE TABLE IF NOT EXISTS floods (
  user_id INTEGER NOT NULL, method TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (user_id, method)
);
CREATE INDEX IF NOT EXISTS calls_by_method ON calls (method, call_id);
"""

# Columns that a ledger of an earlier version lacks: a demo's state outlives an upgrade.
ADDED = (("calls", "chat", "INTEGER"), ("login_codes", "proven", "INTEGER NOT NULL DEFAULT 0"))
