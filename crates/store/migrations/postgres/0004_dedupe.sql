-- A dedupe key is unique within its source: two sources may watch the same things, and each tells what it sees.
ALTER TABLE events DROP CONSTRAINT events_dedupe_key_key;
CREATE UNIQUE INDEX events_dedupe ON events (source_id, dedupe_key) WHERE dedupe_key IS NOT NULL;

-- As before, but for the dedupe key; nodes that know only the earlier step call it without noticing.
-- Brings about the proposed events whose conditions hold, each once; answers which (counted from 0) and the newest
-- number. Their numbers follow each other and end with it.
CREATE OR REPLACE FUNCTION stakeout_write_events(
    p_source integer, p_target text, p_events jsonb, p_sinks text[], p_effects stakeout_effect[],
    INOUT io_seq bigint, OUT o_told integer[])
LANGUAGE plpgsql AS $$
DECLARE
    v_event  record;
    v_effect record;
    v_same   boolean;
BEGIN
    o_told := '{}';
    FOR v_event IN
        SELECT (n - 1)::integer AS ordinal, decode(e ->> 'id', 'hex') AS id, e ->> 'id' AS id_text, e ->> 'type' AS type,
            e ->> 'rule' AS rule, decode(e ->> 'subject', 'hex') AS subject, e ->> 'subject_key' AS subject_key,
            (e ->> 'at')::bigint AS at, e ->> 'dedupe_key' AS dedupe_key, e ->> 'data' AS data,
            e ->> 'requires' AS requires, (e ->> 'quiet')::bigint AS quiet, (e ->> 'unseen_for')::bigint AS unseen_for,
            decode(e ->> 'follows', 'hex') AS follows, ARRAY(SELECT jsonb_array_elements_text(e -> 'sinks')) AS sinks
        FROM jsonb_array_elements(p_events) WITH ORDINALITY AS x (e, n) ORDER BY n
    LOOP
        SELECT coalesce(bool_or(e.appeared), false) AS appeared, coalesce(bool_or(e.changed), false) AS changed,
            coalesce(bool_or(e.vanished), false) AS vanished, max(e.gone_us) AS gone_us
        INTO v_effect FROM unnest(p_effects) e WHERE e.fingerprint = v_event.subject;
        CONTINUE WHEN NOT CASE v_event.requires
            WHEN 'appeared' THEN v_effect.appeared
            WHEN 'appeared_first' THEN v_effect.appeared
            WHEN 'changed' THEN v_effect.changed
            WHEN 'vanished' THEN v_effect.vanished
            ELSE true END;
        CONTINUE WHEN v_event.at - v_effect.gone_us < v_event.unseen_for;
        -- Whether somebody held another record of the subject's group and parent before this commit. What came with it
        -- in the same commit was not there before either.
        CONTINUE WHEN v_event.requires = 'appeared_first' AND EXISTS (
            SELECT 1 FROM records r JOIN records o ON o.source_id = r.source_id AND o.parent = r.parent
                AND o.group_print = r.group_print AND o.gone_us IS NULL
            WHERE r.source_id = p_source AND r.fingerprint = v_event.subject
                AND NOT EXISTS (SELECT 1 FROM unnest(p_effects) e WHERE e.fingerprint = o.fingerprint AND e.appeared));

        -- What it follows from has to have come about; it stands before it in the list.
        CONTINUE WHEN v_event.follows IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events e WHERE e.id = v_event.follows);

        IF io_seq IS NULL THEN
            io_seq := stakeout_begin_numbering();
        END IF;
        SELECT e.source_id = p_source AND e.target = p_target AND e.type = v_event.type AND e.rule = v_event.rule
            AND e.subject = v_event.subject AND e.subject_key = v_event.subject_key
            AND e.dedupe_key IS NOT DISTINCT FROM v_event.dedupe_key AND e.data = v_event.data
        INTO v_same FROM events e WHERE e.id = v_event.id;
        IF FOUND THEN
            IF NOT v_same THEN
                PERFORM stakeout_poison(format('event %s of %s exists with other content', v_event.id_text, p_target));
            END IF;
            CONTINUE;
        END IF;
        IF v_event.dedupe_key IS NOT NULL THEN
            PERFORM 1 FROM events e WHERE e.source_id = p_source AND e.dedupe_key = v_event.dedupe_key;
            CONTINUE WHEN FOUND;
        END IF;
        -- The right to tell this rule's event about this record; refused within the quiet time of the last one. What is
        -- refused leaves no trace, so it does not extend the quiet time. An event in the future is from before the
        -- clock was set back and keeps nobody quiet.
        IF v_event.quiet IS NOT NULL THEN
            INSERT INTO notices AS n (source_id, rule, fingerprint, at_us, until_us)
            VALUES (p_source, v_event.rule, v_event.subject, v_event.at, v_event.at + v_event.quiet)
            ON CONFLICT (source_id, rule, fingerprint) DO UPDATE
                SET at_us = excluded.at_us, until_us = excluded.until_us
                WHERE n.at_us <= excluded.at_us - v_event.quiet OR n.at_us > excluded.at_us;
            CONTINUE WHEN NOT FOUND;
        END IF;

        io_seq := io_seq + 1;
        INSERT INTO events (seq, id, type, source_id, target, rule, subject, subject_key, at_us, dedupe_key, data)
        VALUES (io_seq, v_event.id, v_event.type, p_source, p_target, v_event.rule, v_event.subject,
            v_event.subject_key, v_event.at, v_event.dedupe_key, v_event.data);
        INSERT INTO deliveries (sink, seq) SELECT DISTINCT s, io_seq FROM unnest(p_sinks || v_event.sinks) AS s;
        o_told := o_told || v_event.ordinal;
    END LOOP;
END $$;
