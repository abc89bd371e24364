-- Writes history rows, answers how many. What the poll itself stamped counts only if the record really changed by this
-- commit: of two targets that see one change, the first writes it. What the upstream stamped counts only if it is newer
-- than all it told us before: every answer repeats the latest ones.
CREATE OR REPLACE FUNCTION stakeout_write_history(p_source integer, p_history jsonb, p_effects stakeout_effect[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_row     record;
    v_values  text;
    v_written integer := 0;
BEGIN
    SELECT w.print INTO v_row
    FROM jsonb_to_recordset(p_history) AS w (print text)
    WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.source_id = p_source AND r.fingerprint = decode(w.print, 'hex'))
    LIMIT 1;
    IF FOUND THEN
        PERFORM stakeout_poison('history of a record that is not stored: ' || v_row.print);
    END IF;

    FOR v_row IN
        WITH points AS MATERIALIZED (
            SELECT (o ->> 'ord')::integer AS ord, decode(o ->> 'print', 'hex') AS print, o ->> 'stream' AS stream,
                (o ->> 'at')::bigint AS at, o ->> 'body' AS body,
                -- A node of the step before does not say what was carried forward.
                coalesce(o ->> 'said', o ->> 'body') AS said, (o ->> 'upstream')::boolean AS upstream,
                (o ->> 'oldest')::boolean AS oldest
            FROM jsonb_array_elements(p_history) AS o
        ), told AS MATERIALIZED (
            SELECT s.print, s.stream, (
                SELECT max(h.at_us) FROM history h
                WHERE h.source_id = p_source AND h.fingerprint = s.print AND h.stream = s.stream AND h.upstream
            ) AS newest
            FROM (SELECT DISTINCT print, stream FROM points WHERE upstream) s
        )
        SELECT p.* FROM points p
        LEFT JOIN told t ON p.upstream AND t.print = p.print AND t.stream = p.stream
        WHERE CASE WHEN p.upstream THEN t.newest IS NULL OR p.at > t.newest
            ELSE EXISTS (SELECT 1 FROM unnest(p_effects) e
                WHERE e.fingerprint = p.print AND (e.appeared OR e.changed)) END
        ORDER BY p.ord
    LOOP
        v_values := v_row.body;
        -- Where polls have stamped rows since, what the upstream's row does not say itself is as in the row before it, or in
        -- the first one after it.
        IF v_row.upstream AND EXISTS (SELECT 1 FROM history h
            WHERE h.source_id = p_source AND h.fingerprint = v_row.print AND h.stream = v_row.stream
                AND h.at_us > v_row.at)
        THEN
            SELECT (h.values_json::jsonb || v_row.said::jsonb)::text INTO v_values FROM history h
            WHERE h.source_id = p_source AND h.fingerprint = v_row.print AND h.stream = v_row.stream
                AND h.at_us < v_row.at
            ORDER BY h.at_us DESC LIMIT 1;
            IF NOT FOUND THEN
                SELECT (h.values_json::jsonb || v_row.said::jsonb)::text INTO v_values FROM history h
                WHERE h.source_id = p_source AND h.fingerprint = v_row.print AND h.stream = v_row.stream
                    AND h.at_us > v_row.at
                ORDER BY h.at_us LIMIT 1;
            END IF;
        END IF;
        INSERT INTO history (source_id, fingerprint, stream, at_us, upstream, gap, values_json)
        VALUES (p_source, v_row.print, v_row.stream, v_row.at, v_row.upstream, v_row.upstream AND v_row.oldest,
            v_values)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            v_written := v_written + 1;
            -- A row that a poll stamped gives way to the upstream's own row of the same move: the very next one, if it
            -- says the same. Later ones are other moves.
            IF v_row.upstream THEN
                DELETE FROM history h
                WHERE h.source_id = p_source AND h.fingerprint = v_row.print AND h.stream = v_row.stream
                    AND NOT h.upstream AND h.values_json::jsonb = v_values::jsonb
                    AND h.at_us = (SELECT min(n.at_us) FROM history n
                        WHERE n.source_id = p_source AND n.fingerprint = v_row.print AND n.stream = v_row.stream
                            AND n.at_us > v_row.at);
            END IF;
        END IF;
    END LOOP;
    RETURN v_written;
END $$;
