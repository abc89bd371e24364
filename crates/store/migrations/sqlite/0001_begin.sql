-- Times are microseconds since the Unix epoch (*_us), hashes 16-byte big-endian blobs, JSON is text.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
-- The commit sequence: event numbers and target incarnations are drawn from it in commit order.
INSERT INTO meta (key, value) VALUES ('seq', 0);

CREATE TABLE sources (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- AUTOINCREMENT: a target that returns after its removal must not get its old row number back.
CREATE TABLE targets (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id       INTEGER NOT NULL REFERENCES sources (id),
    key             TEXT    NOT NULL,
    -- When the row can next be claimed: NULL when disabled or never due, the due time when free, the later of due
    -- time and lease end when held. A poll that keeps its lease leaves it alone, and so touches no index.
    wake_us         INTEGER,
    due_us          INTEGER,
    interval_us     INTEGER NOT NULL,
    slack_us        INTEGER NOT NULL,
    priority        INTEGER NOT NULL,
    enabled         INTEGER NOT NULL DEFAULT 1,
    owner           TEXT,
    lease_until_us  INTEGER,
    fence           INTEGER NOT NULL DEFAULT 0,
    poll_no         INTEGER NOT NULL DEFAULT 0,
    plan_version    INTEGER NOT NULL DEFAULT 0,
    -- These two belong to the memory, but are set from outside while a poll may be under way.
    focused         INTEGER NOT NULL DEFAULT 0,
    rebaseline      INTEGER NOT NULL DEFAULT 0,
    incarnation     INTEGER NOT NULL,
    listed_by       INTEGER,
    last_polled_us  INTEGER,
    last_changed_us INTEGER,
    last_outcome    TEXT,
    last_error      TEXT,
    phase           TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    role            TEXT    NOT NULL,
    meaning         INTEGER NOT NULL,
    start_us        INTEGER,
    spec_hash       BLOB    NOT NULL,
    params          TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    UNIQUE (source_id, key)
);
CREATE INDEX targets_wake ON targets (source_id, wake_us, focused DESC, priority DESC) WHERE wake_us IS NOT NULL;
-- What a listing made, with all that a reconcile compares.
CREATE INDEX targets_listed ON targets (source_id, listed_by, key, spec_hash);
CREATE INDEX targets_held ON targets (id) WHERE owner IS NOT NULL;
CREATE INDEX targets_focused ON targets (source_id) WHERE focused;

CREATE TABLE snapshots (
    target_id INTEGER PRIMARY KEY,
    version   INTEGER NOT NULL,
    records   INTEGER NOT NULL,
    body      BLOB    NOT NULL,
    -- The body as it was when the baseline was last set; kept for people, nothing is compared with it.
    baseline  BLOB
);

CREATE TABLE records (
    id            INTEGER PRIMARY KEY,
    source_id     INTEGER NOT NULL REFERENCES sources (id),
    fingerprint   BLOB    NOT NULL,
    kind          TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    parent        BLOB,
    group_print   BLOB    NOT NULL,
    content       BLOB    NOT NULL,
    ends_us       INTEGER,
    holders       INTEGER NOT NULL,
    first_seen_us INTEGER NOT NULL,
    changed_us    INTEGER NOT NULL,
    seen_us       INTEGER NOT NULL,
    gone_us       INTEGER,
    gone_natural  INTEGER NOT NULL DEFAULT 0,
    body          TEXT    NOT NULL,
    UNIQUE (source_id, fingerprint)
);
CREATE INDEX records_kind ON records (kind);
CREATE INDEX records_parent ON records (source_id, parent) WHERE parent IS NOT NULL;
CREATE INDEX records_gone ON records (gone_us) WHERE gone_us IS NOT NULL;

CREATE TABLE history (
    source_id   INTEGER NOT NULL REFERENCES sources (id),
    fingerprint BLOB    NOT NULL,
    stream      TEXT    NOT NULL,
    at_us       INTEGER NOT NULL,
    upstream    INTEGER NOT NULL,
    -- Moves between this row and the one before are lost.
    gap         INTEGER NOT NULL DEFAULT 0,
    values_json TEXT    NOT NULL,
    PRIMARY KEY (source_id, fingerprint, stream, at_us)
) WITHOUT ROWID;
CREATE INDEX history_at ON history (at_us);

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY,
    id          BLOB    NOT NULL UNIQUE,
    type        TEXT    NOT NULL,
    source_id   INTEGER NOT NULL REFERENCES sources (id),
    target      TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    subject     BLOB    NOT NULL,
    subject_key TEXT    NOT NULL,
    at_us       INTEGER NOT NULL,
    dedupe_key  TEXT    UNIQUE,
    data        TEXT    NOT NULL
);
CREATE INDEX events_subject ON events (subject);

-- The last event of a rule about a record, as long as its quiet time counts.
CREATE TABLE notices (
    source_id   INTEGER NOT NULL REFERENCES sources (id),
    rule        TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    at_us       INTEGER NOT NULL,
    until_us    INTEGER NOT NULL,
    PRIMARY KEY (source_id, rule, fingerprint)
) WITHOUT ROWID;
CREATE INDEX notices_until ON notices (until_us);

CREATE TABLE deliveries (
    sink     TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    retry_us INTEGER NOT NULL DEFAULT 0,
    error    TEXT,
    dead     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (sink, seq)
) WITHOUT ROWID;
CREATE INDEX deliveries_seq ON deliveries (seq);

-- Only notable polls; in order of commit, so that the oldest are at the front.
CREATE TABLE polls (
    id           INTEGER PRIMARY KEY,
    target_id    INTEGER NOT NULL,
    poll_no      INTEGER NOT NULL,
    due_us       INTEGER NOT NULL,
    sent_us      INTEGER NOT NULL,
    ended_us     INTEGER NOT NULL,
    phase        TEXT    NOT NULL,
    outcome      TEXT    NOT NULL,
    late         TEXT,
    missed       INTEGER NOT NULL,
    missed_cause TEXT,
    requests     INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    changes      INTEGER NOT NULL,
    events       INTEGER NOT NULL,
    error_class  TEXT,
    detail       TEXT
);
CREATE INDEX polls_target ON polls (target_id, poll_no);

-- Finished stretches of regular polling; the one that goes on is in the target's state.
CREATE TABLE runs (
    id        INTEGER PRIMARY KEY,
    target_id INTEGER NOT NULL,
    from_us   INTEGER NOT NULL,
    to_us     INTEGER NOT NULL,
    body      TEXT    NOT NULL
);
CREATE INDEX runs_target ON runs (target_id, to_us);

-- The newest body that could not be understood, per target.
CREATE TABLE samples (
    target_id    INTEGER PRIMARY KEY,
    at_us        INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    content_type TEXT,
    body         BLOB    NOT NULL
);

-- What a person switched off, by name: it stays off when a listing drops the target and lists it again.
CREATE TABLE switched_off (
    source_id INTEGER NOT NULL REFERENCES sources (id),
    key       TEXT    NOT NULL,
    PRIMARY KEY (source_id, key)
) WITHOUT ROWID;

CREATE TABLE settings (
    key        TEXT PRIMARY KEY,
    value      TEXT    NOT NULL,
    updated_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE kv (
    namespace  TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    updated_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

-- The views made from the sources' kinds, so that those of kinds no longer there can be removed.
CREATE TABLE made_views (
    name TEXT PRIMARY KEY,
    sql  TEXT NOT NULL
) WITHOUT ROWID;
