-- Times are microseconds since the Unix epoch (*_us), hashes 16-byte big-endian blobs, JSON is text.
--
-- Functions are part of the schema, and two versions of the program run side by side during an upgrade: a function
-- that was released never changes. A later step makes another one with a new name and drops the old one a step later.

CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 10);
-- The commit sequence: event numbers and target incarnations are drawn from it in commit order, under this row's lock.
INSERT INTO meta (key, value) VALUES ('seq', 0);
-- The highest number of an event that was pruned: a reader whose cursor is older may have missed something.
INSERT INTO meta (key, value) VALUES ('pruned', 0);

CREATE TABLE sources (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- A poll that keeps its lease changes no indexed column: with room on the page it is a heap-only update.
CREATE TABLE targets (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id       integer  NOT NULL REFERENCES sources (id),
    key             text COLLATE "C" NOT NULL,
    -- When the row can next be claimed: NULL when disabled or never due, the due time when free, the later of due
    -- time and lease end when held.
    wake_us         bigint,
    due_us          bigint,
    interval_us     bigint   NOT NULL,
    slack_us        bigint   NOT NULL,
    priority        smallint NOT NULL,
    enabled         boolean  NOT NULL DEFAULT true,
    owner           text,
    lease_until_us  bigint,
    fence           bigint   NOT NULL DEFAULT 0,
    poll_no         bigint   NOT NULL DEFAULT 0,
    plan_version    bigint   NOT NULL DEFAULT 0,
    -- These two belong to the memory, but are set from outside while a poll may be under way.
    focused         boolean  NOT NULL DEFAULT false,
    rebaseline      boolean  NOT NULL DEFAULT false,
    incarnation     bigint   NOT NULL,
    listed_by       bigint,
    last_polled_us  bigint,
    last_changed_us bigint,
    last_outcome    text,
    last_error      text,
    phase           text     NOT NULL,
    reason          text     NOT NULL,
    role            text     NOT NULL,
    meaning         bigint   NOT NULL,
    start_us        bigint,
    spec_hash       bytea    NOT NULL,
    params          text     NOT NULL,
    state           text     NOT NULL,
    UNIQUE (source_id, key)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX targets_wake ON targets (source_id, wake_us, focused DESC, priority DESC) WHERE wake_us IS NOT NULL;
CREATE INDEX targets_listed ON targets (listed_by) WHERE listed_by IS NOT NULL;
CREATE INDEX targets_focused ON targets (source_id) WHERE focused;

CREATE TABLE snapshots (
    target_id bigint PRIMARY KEY,
    version   bigint NOT NULL,
    records   bigint NOT NULL,
    body      bytea  NOT NULL,
    -- The body as it was when the baseline was last set; kept for people, nothing is compared with it.
    baseline  bytea
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Hashes do not compress.
ALTER TABLE snapshots ALTER COLUMN body SET STORAGE EXTERNAL, ALTER COLUMN baseline SET STORAGE EXTERNAL;

CREATE TABLE records (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id     integer NOT NULL REFERENCES sources (id),
    fingerprint   bytea   NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    parent        bytea,
    group_print   bytea   NOT NULL,
    content       bytea   NOT NULL,
    ends_us       bigint,
    holders       bigint  NOT NULL,
    first_seen_us bigint  NOT NULL,
    changed_us    bigint  NOT NULL,
    seen_us       bigint  NOT NULL,
    gone_us       bigint,
    gone_natural  boolean NOT NULL DEFAULT false,
    body          text    NOT NULL,
    UNIQUE (source_id, fingerprint)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX records_kind ON records (kind, source_id, id);
CREATE INDEX records_parent ON records (source_id, parent) WHERE parent IS NOT NULL;
CREATE INDEX records_gone ON records (gone_us, id) WHERE gone_us IS NOT NULL;

-- By weeks: forgetting a week is dropping a table. What lies outside the weeks that exist goes to the default.
CREATE TABLE history (
    source_id   integer NOT NULL,
    fingerprint bytea   NOT NULL,
    stream      text COLLATE "C" NOT NULL,
    at_us       bigint  NOT NULL,
    upstream    boolean NOT NULL,
    -- Moves between this row and the one before are lost.
    gap         boolean NOT NULL DEFAULT false,
    values_json text    NOT NULL,
    PRIMARY KEY (source_id, fingerprint, stream, at_us)
) PARTITION BY RANGE (at_us);
CREATE INDEX history_at ON history (at_us);
CREATE TABLE history_default PARTITION OF history DEFAULT;

CREATE TABLE events (
    seq         bigint  PRIMARY KEY,
    id          bytea   NOT NULL UNIQUE,
    type        text COLLATE "C" NOT NULL,
    source_id   integer NOT NULL REFERENCES sources (id),
    target      text COLLATE "C" NOT NULL,
    rule        text    NOT NULL,
    subject     bytea   NOT NULL,
    subject_key text    NOT NULL,
    at_us       bigint  NOT NULL,
    dedupe_key  text COLLATE "C" UNIQUE,
    data        text    NOT NULL
);
CREATE INDEX events_subject ON events (subject);

-- The last event of a rule about a record, as long as its quiet time counts.
CREATE TABLE notices (
    source_id   integer NOT NULL REFERENCES sources (id),
    rule        text COLLATE "C" NOT NULL,
    fingerprint bytea   NOT NULL,
    at_us       bigint  NOT NULL,
    until_us    bigint  NOT NULL,
    PRIMARY KEY (source_id, rule, fingerprint)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX notices_until ON notices (until_us);

CREATE TABLE deliveries (
    sink     text COLLATE "C" NOT NULL,
    seq      bigint  NOT NULL,
    attempts bigint  NOT NULL DEFAULT 0,
    retry_us bigint  NOT NULL DEFAULT 0,
    error    text,
    dead     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (sink, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX deliveries_seq ON deliveries (seq);

-- Only notable polls; about in order of commit, so that the oldest are at the front.
CREATE TABLE polls (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target_id    bigint NOT NULL,
    poll_no      bigint NOT NULL,
    due_us       bigint NOT NULL,
    sent_us      bigint NOT NULL,
    ended_us     bigint NOT NULL,
    phase        text   NOT NULL,
    outcome      text   NOT NULL,
    late         text,
    missed       bigint NOT NULL,
    missed_cause text,
    requests     bigint NOT NULL,
    bytes        bigint NOT NULL,
    changes      bigint NOT NULL,
    events       bigint NOT NULL,
    error_class  text,
    detail       text
);
CREATE INDEX polls_target ON polls (target_id, poll_no);

-- Finished stretches of regular polling; the one that goes on is in the target's state. They outlive their target, so
-- they say themselves whose they are.
CREATE TABLE runs (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target_id bigint  NOT NULL,
    source_id integer NOT NULL REFERENCES sources (id),
    key       text COLLATE "C" NOT NULL,
    from_us   bigint  NOT NULL,
    to_us     bigint  NOT NULL,
    body      text    NOT NULL
);
CREATE INDEX runs_target ON runs (target_id, to_us);
CREATE INDEX runs_source ON runs (source_id, to_us);

-- The newest body that could not be understood, per target.
CREATE TABLE samples (
    target_id    bigint PRIMARY KEY,
    at_us        bigint NOT NULL,
    reason       text   NOT NULL,
    content_type text,
    body         bytea  NOT NULL
);

-- What a person switched off, by name: it stays off when a listing drops the target and lists it again.
CREATE TABLE switched_off (
    source_id integer NOT NULL REFERENCES sources (id),
    key       text COLLATE "C" NOT NULL,
    PRIMARY KEY (source_id, key)
);

CREATE TABLE settings (
    key        text COLLATE "C" PRIMARY KEY,
    value      text   NOT NULL,
    updated_us bigint NOT NULL
);

CREATE TABLE kv (
    namespace  text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    value      text   NOT NULL,
    updated_us bigint NOT NULL,
    PRIMARY KEY (namespace, key)
);

-- Who may ask. Only a hash of the secret is kept; `id` is the part of the token that may be shown.
CREATE TABLE tokens (
    id         text COLLATE "C" PRIMARY KEY,
    name       text   NOT NULL,
    scope      text   NOT NULL,
    hash       bytea  NOT NULL,
    created_us bigint NOT NULL,
    revoked_us bigint
);

-- The views made from the sources' kinds, so that those of kinds no longer there can be removed; in order of making.
CREATE TABLE made_views (
    id   bigint GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" PRIMARY KEY,
    sql  text NOT NULL
);
