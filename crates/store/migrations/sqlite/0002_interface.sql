-- The highest number of an event that was pruned: a reader whose cursor is older may have missed something.
INSERT INTO meta (key, value) VALUES ('pruned', 0);

-- Runs outlive their target, so they say themselves whose they are.
ALTER TABLE runs ADD COLUMN source_id INTEGER REFERENCES sources (id);
ALTER TABLE runs ADD COLUMN key TEXT;
UPDATE runs SET (source_id, key) = (SELECT source_id, key FROM targets WHERE targets.id = runs.target_id);
CREATE INDEX runs_source ON runs (source_id, to_us);

-- Who may ask. Only a hash of the secret is kept; `id` is the part of the token that may be shown.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    hash       BLOB    NOT NULL,
    created_us INTEGER NOT NULL,
    revoked_us INTEGER
) WITHOUT ROWID;
