-- Writes what follows from a source's records, unless something is another than it was read.
CREATE FUNCTION stakeout_derive(
    p_derived text, OUT o_done boolean, OUT o_told integer[], OUT o_seq bigint, OUT o_touched bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_derived jsonb := p_derived::jsonb;
    v_now     bigint := (v_derived ->> 'now')::bigint;
    v_source  integer;
    v_row     record;
BEGIN
    o_done := false;
    SELECT id INTO v_source FROM sources WHERE name = v_derived ->> 'source';
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM stakeout_lock_targets(ARRAY[v_source], true);
    PERFORM stakeout_lock_records(ARRAY[v_source]);
    IF jsonb_array_length(v_derived -> 'kv') > 0 THEN
        PERFORM stakeout_lock_values();
    END IF;

    IF ARRAY(SELECT t.id FROM targets t WHERE t.source_id = v_source AND t.focused ORDER BY t.id)
        <> ARRAY(SELECT f::bigint FROM jsonb_array_elements_text(v_derived -> 'focused_before') AS f) THEN
        RETURN;
    END IF;
    PERFORM 1 FROM targets t JOIN jsonb_array_elements(v_derived -> 'create') AS w ON t.key = w ->> 'key'
    WHERE t.source_id = v_source;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM jsonb_to_recordset(v_derived -> 'kv') AS w (namespace text, key text, before text)
    LEFT JOIN kv ON kv.namespace = w.namespace AND kv.key = w.key
    WHERE kv.value::jsonb IS DISTINCT FROM w.before::jsonb;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM 1 FROM jsonb_to_recordset(v_derived -> 'records') AS w (print text, base text)
    LEFT JOIN records r ON r.source_id = v_source AND r.fingerprint = decode(w.print, 'hex') AND r.holders > 0
    WHERE r.content IS DISTINCT FROM decode(w.base, 'hex');
    IF FOUND THEN
        RETURN;
    END IF;

    o_done := true;
    o_touched := '{}';
    IF jsonb_array_length(v_derived -> 'create') > 0 THEN
        SELECT c.io_seq, c.o_created INTO o_seq, o_touched
        FROM stakeout_create_targets(v_source, NULL, v_derived -> 'create', NULL) c;
    END IF;
    FOR v_row IN
        SELECT t.id, w, (w ->> 'focused')::boolean AS focused
        FROM jsonb_array_elements(v_derived -> 'refocus') WITH ORDINALITY AS x (w, n)
        JOIN targets t ON t.source_id = v_source AND t.key = w ->> 'key' ORDER BY n
    LOOP
        UPDATE targets SET focused = v_row.focused, due_us = (v_row.w ->> 'due')::bigint,
            interval_us = (v_row.w ->> 'interval')::bigint, phase = v_row.w ->> 'phase', reason = v_row.w ->> 'reason',
            slack_us = (v_row.w ->> 'slack')::bigint, plan_version = plan_version + 1,
            wake_us = stakeout_wake(enabled, lease_until_us, (v_row.w ->> 'due')::bigint)
        WHERE id = v_row.id;
        o_touched := o_touched || v_row.id;
    END LOOP;
    PERFORM stakeout_publish(v_derived -> 'kv', v_now);
    UPDATE records r SET content = decode(w.content, 'hex'), body = w.body, changed_us = v_now
    FROM jsonb_to_recordset(v_derived -> 'records') AS w (print text, content text, body text)
    WHERE r.source_id = v_source AND r.fingerprint = decode(w.print, 'hex');
    SELECT e.io_seq, e.o_told INTO o_seq, o_told
    FROM stakeout_write_events(v_source, v_derived ->> 'target', v_derived -> 'events',
        ARRAY(SELECT jsonb_array_elements_text(v_derived -> 'sinks')), '{}', o_seq) e;
    IF o_seq IS NOT NULL THEN
        PERFORM stakeout_end_numbering(o_seq);
    END IF;
    IF cardinality(o_told) > 0 THEN
        PERFORM stakeout_hint('events', ARRAY[o_seq]);
    END IF;
    IF cardinality(o_touched) > 0 THEN
        PERFORM stakeout_hint('plans', o_touched);
    END IF;
END $$;
