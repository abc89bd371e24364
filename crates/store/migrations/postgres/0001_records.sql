-- What a commit did to one record.
CREATE TYPE stakeout_effect AS (
    fingerprint bytea,
    -- Nobody who counts held it before, now somebody does, or may.
    appeared    boolean,
    -- Its content is another than before.
    changed     boolean,
    -- The last holder let go of it.
    vanished    boolean,
    -- When it had last been let go of, before this commit.
    gone_us     bigint
);

-- Writes the records of a poll and lets go of those it no longer holds. NULL, with nothing written, when a record is
-- another than the poll thinks.
CREATE FUNCTION stakeout_write_records(p_source integer, p_poll jsonb) RETURNS stakeout_effect[]
LANGUAGE plpgsql AS $$
DECLARE
    v_now     bigint := (p_poll ->> 'now')::bigint;
    v_effects stakeout_effect[] := '{}';
    v_gone    stakeout_effect[];
BEGIN
    IF p_poll ? 'records' THEN
        PERFORM 1
        FROM jsonb_to_recordset(p_poll -> 'records') AS w (print text, recalled boolean, base text)
        LEFT JOIN records r ON r.source_id = p_source AND r.fingerprint = decode(w.print, 'hex')
        WHERE w.recalled AND r.content IS DISTINCT FROM decode(w.base, 'hex');
        IF FOUND THEN
            RETURN NULL;
        END IF;

        -- The newest observation wins; an older one may still make its target a holder. Something seen far in the
        -- future was seen before the clock was set back: it is not newer.
        WITH offered AS MATERIALIZED (
            SELECT decode(w.print, 'hex') AS print, w.kind, w.key, decode(w.parent, 'hex') AS parent,
                decode(w.grp, 'hex') AS grp, decode(w.content, 'hex') AS content, w.ends, w.body, w.seen, w.added
            FROM jsonb_to_recordset(p_poll -> 'records') AS w (print text, kind text, key text, parent text, grp text,
                content text, ends bigint, body text, seen bigint, added boolean)
        ), known AS MATERIALIZED (
            SELECT o.*, r.id, r.holders, r.content AS content_before, r.gone_us AS gone_before,
                o.seen >= r.seen_us OR r.seen_us > v_now + 60000000 AS newest
            FROM offered o LEFT JOIN records r ON r.source_id = p_source AND r.fingerprint = o.print
        ), inserted AS (
            INSERT INTO records (source_id, fingerprint, kind, key, parent, group_print, content, ends_us, holders,
                first_seen_us, changed_us, seen_us, body)
            SELECT p_source, print, kind, key, parent, grp, content, ends, 1, seen, seen, seen, body
            FROM known WHERE id IS NULL ORDER BY print
        ), updated AS (
            UPDATE records r SET
                key = CASE WHEN k.newest THEN k.key ELSE r.key END,
                parent = CASE WHEN k.newest THEN k.parent ELSE r.parent END,
                group_print = CASE WHEN k.newest THEN k.grp ELSE r.group_print END,
                content = CASE WHEN k.newest THEN k.content ELSE r.content END,
                ends_us = CASE WHEN k.newest THEN k.ends ELSE r.ends_us END,
                seen_us = CASE WHEN k.newest THEN k.seen ELSE r.seen_us END,
                body = CASE WHEN k.newest THEN k.body ELSE r.body END,
                changed_us = CASE WHEN k.newest AND (k.content <> r.content OR k.added AND r.holders = 0)
                    THEN k.seen ELSE r.changed_us END,
                holders = r.holders + k.added::integer,
                gone_us = CASE WHEN k.added THEN NULL ELSE r.gone_us END,
                gone_natural = NOT k.added AND r.gone_natural
            FROM known k WHERE r.id = k.id AND (k.newest OR k.added)
        )
        SELECT array_agg(ROW(print, id IS NULL OR (added AND holders = 0),
                id IS NOT NULL AND newest AND content <> content_before, false, gone_before)::stakeout_effect)
        INTO v_effects FROM known;
    END IF;

    IF p_poll ? 'releases' THEN
        WITH let_go AS (
            UPDATE records r SET
                holders = r.holders - 1,
                gone_us = CASE WHEN r.holders = 1 THEN v_now ELSE r.gone_us END,
                gone_natural = CASE WHEN r.holders = 1 THEN w.ended ELSE r.gone_natural END
            FROM jsonb_to_recordset(p_poll -> 'releases') AS w (print text, ended boolean)
            WHERE r.source_id = p_source AND r.fingerprint = decode(w.print, 'hex') AND r.holders > 0
            RETURNING r.fingerprint, r.holders
        )
        SELECT array_agg(ROW(fingerprint, false, false, true, NULL)::stakeout_effect)
        INTO v_gone FROM let_go WHERE holders = 0;
        v_effects := coalesce(v_effects, '{}') || coalesce(v_gone, '{}');
    END IF;

    -- Our own hold, where this poll added one, came after those that no longer count.
    IF p_poll ? 'lapsed' THEN
        SELECT array_agg(ROW(r.fingerprint, true, false, false, NULL)::stakeout_effect) INTO v_gone
        FROM jsonb_to_recordset(p_poll -> 'lapsed') AS l (print text, holders integer)
        JOIN records r ON r.source_id = p_source AND r.fingerprint = decode(l.print, 'hex')
        LEFT JOIN jsonb_to_recordset(coalesce(p_poll -> 'records', '[]')) AS w (print text, added boolean)
            ON w.print = l.print
        WHERE r.holders - coalesce(w.added, false)::integer <= l.holders;
        v_effects := coalesce(v_effects, '{}') || coalesce(v_gone, '{}');
    END IF;
    RETURN coalesce(v_effects, '{}');
END $$;

-- Writes history rows, answers how many. What the poll itself stamped counts only if the record really changed by this
-- commit: of two targets that see one change, the first writes it. What the upstream stamped counts only if it is newer
-- than all it told us before: every answer repeats the latest ones.
CREATE FUNCTION stakeout_write_history(p_source integer, p_history jsonb, p_effects stakeout_effect[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_row     record;
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
                (o ->> 'at')::bigint AS at, o ->> 'body' AS body, (o ->> 'upstream')::boolean AS upstream,
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
        INSERT INTO history (source_id, fingerprint, stream, at_us, upstream, gap, values_json)
        VALUES (p_source, v_row.print, v_row.stream, v_row.at, v_row.upstream, v_row.upstream AND v_row.oldest,
            v_row.body)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            v_written := v_written + 1;
            -- A row that a poll stamped gives way to the upstream's own row of the same move: the very next one, if it
            -- says the same. Later ones are other moves.
            IF v_row.upstream THEN
                DELETE FROM history h
                WHERE h.source_id = p_source AND h.fingerprint = v_row.print AND h.stream = v_row.stream
                    AND NOT h.upstream AND h.values_json = v_row.body
                    AND h.at_us = (SELECT min(n.at_us) FROM history n
                        WHERE n.source_id = p_source AND n.fingerprint = v_row.print AND n.stream = v_row.stream
                            AND n.at_us > v_row.at);
            END IF;
        END IF;
    END LOOP;
    RETURN v_written;
END $$;
