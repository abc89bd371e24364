-- A row of history carries the number of its record and of its stream instead of a hash and a name, in the table and once
-- more in the index by time: it weighs a third less, and numbers are compared faster. A record is kept as long as it has
-- history, so its number stays its own. Whoever reads finds the hash and the name in the view that is called history.
CREATE TABLE history_streams (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
INSERT INTO history_streams (name) SELECT DISTINCT stream FROM history ORDER BY 1;

CREATE TABLE history_rows (
    record_id   INTEGER NOT NULL,
    stream_id   INTEGER NOT NULL,
    at_us       INTEGER NOT NULL,
    upstream    INTEGER NOT NULL,
    -- Moves between this row and the one before are lost.
    gap         INTEGER NOT NULL,
    values_json TEXT    NOT NULL,
    PRIMARY KEY (record_id, stream_id, at_us)
) WITHOUT ROWID;
INSERT INTO history_rows
    SELECT r.id, s.id, h.at_us, h.upstream, h.gap, h.values_json
    FROM history h JOIN records r USING (source_id, fingerprint) JOIN history_streams s ON s.name = h.stream
    ORDER BY 1, 2, 3;
CREATE INDEX history_rows_at ON history_rows (at_us);

DROP TABLE history;
CREATE VIEW history AS
    SELECT r.source_id, r.fingerprint, s.name AS stream, h.at_us, h.upstream, h.gap, h.values_json
    FROM records r JOIN history_rows h ON h.record_id = r.id JOIN history_streams s ON s.id = h.stream_id;
