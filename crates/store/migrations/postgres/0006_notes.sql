-- Commits polls like stakeout_commit, which is called for it, and writes down what the log says of those that brought
-- nothing: their lines, and the stretches of regular polling that they ended. All lines of a batch are one statement:
-- when polls are late, every one of them has a line, and writing them must not make the next ones later.
CREATE FUNCTION stakeout_commit_noting(
    p_sources integer[], p_alone boolean, p_guarded boolean,
    p_target bigint[], p_fence bigint[], p_poll_no bigint[], p_plan bigint[], p_now bigint[], p_due bigint[],
    p_interval bigint[], p_phase text[], p_reason text[], p_slack bigint[], p_hold bigint[], p_outcome text[],
    p_error text[], p_state text[],
    p_polled bigint[], p_polls text[], p_snapshots bytea[], p_samples bytea[], p_synced boolean,
    p_publishes boolean, p_notes text)
RETURNS SETOF stakeout_answer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_notes   jsonb := p_notes::jsonb;
    v_answer  stakeout_answer;
    v_refused integer[] := '{}';
BEGIN
    FOR v_answer IN
        SELECT * FROM stakeout_commit(p_sources, p_alone, p_guarded, p_target, p_fence, p_poll_no, p_plan, p_now, p_due,
            p_interval, p_phase, p_reason, p_slack, p_hold, p_outcome, p_error, p_state, p_polled, p_polls,
            p_snapshots, p_samples, p_synced, p_publishes)
    LOOP
        IF v_answer.quiet AND v_answer.outcome <> 'done' THEN
            v_refused := v_refused || v_answer.place;
        END IF;
        RETURN NEXT v_answer;
    END LOOP;
    INSERT INTO polls (target_id, poll_no, due_us, sent_us, ended_us, phase, outcome, late, missed, missed_cause,
        requests, bytes, changes, events, error_class, detail)
    SELECT p_target[n.place], n.poll_no, n.due, n.sent, n.ended, n.phase, n.outcome, n.late, n.missed, n.missed_cause,
        n.requests, n.bytes, n.changes, n.events, n.error_class, n.detail
    FROM jsonb_to_recordset(v_notes -> 'logs') AS n (place integer, poll_no bigint, due bigint, sent bigint,
        ended bigint, phase text, outcome text, late text, missed bigint, missed_cause text, requests bigint,
        bytes bigint, changes bigint, events bigint, error_class text, detail text)
    WHERE n.place <> ALL (v_refused);
    INSERT INTO runs (target_id, source_id, key, from_us, to_us, body)
    SELECT t.id, t.source_id, t.key, n."from", n."to", n.body
    FROM jsonb_to_recordset(v_notes -> 'runs') AS n (place integer, "from" bigint, "to" bigint, body text)
    CROSS JOIN LATERAL (SELECT id, source_id, key FROM targets WHERE id = p_target[n.place]) AS t
    WHERE n.place <> ALL (v_refused);
END $$;
