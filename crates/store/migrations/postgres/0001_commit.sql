-- One row per poll that did not simply get in as it was offered.
CREATE TYPE stakeout_answer AS (
    -- Its place among those that brought nothing, or among the others, counted from 1.
    quiet        boolean,
    place        integer,
    -- done, already, stale, older, conflict, poisoned
    outcome      text,
    detail       text,
    -- Which of the proposed events came about, counted from 0; their numbers follow each other and end with `seq`.
    told         integer[],
    seq          bigint,
    target       text,
    touched      bigint[],
    history_rows integer,
    plan_version bigint,
    enabled      boolean,
    held         boolean,
    -- The row's own schedule; NULL when the poll's is in force.
    schedule     jsonb,
    -- Which of the offered values were published, counted from 0.
    published    integer[]
);

-- Whether a poll may be written at all: NULL, or what it is instead.
CREATE FUNCTION stakeout_refusal(p_row targets, p_fence bigint, p_poll_no bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN (p_row).id IS NULL OR (p_row).fence <> p_fence THEN 'stale'
        WHEN (p_row).poll_no = p_poll_no THEN 'already'
        WHEN (p_row).poll_no > p_poll_no THEN 'older'
        -- The claim was given back: its token is still the newest, but nobody may use it.
        WHEN (p_row).owner IS NULL THEN 'stale'
    END
$$;

-- The schedule of a row whose plan was changed from outside while the poll was under way.
CREATE FUNCTION stakeout_schedule_of(p_row targets) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('due', (p_row).due_us, 'interval', (p_row).interval_us, 'phase', (p_row).phase,
        'reason', (p_row).reason, 'slack', (p_row).slack_us)
$$;

-- Publishes values where they differ from what is there; answers which (counted from 0).
CREATE FUNCTION stakeout_publish(p_values jsonb, p_now bigint) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    v_value     record;
    v_published integer[] := '{}';
BEGIN
    FOR v_value IN
        SELECT (n - 1)::integer AS ordinal, w ->> 'namespace' AS namespace, w ->> 'key' AS key, w ->> 'value' AS value
        FROM jsonb_array_elements(p_values) WITH ORDINALITY AS x (w, n) ORDER BY n
    LOOP
        INSERT INTO kv (namespace, key, value, updated_us)
        VALUES (v_value.namespace, v_value.key, v_value.value, p_now)
        ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us
            WHERE kv.value <> excluded.value;
        IF FOUND THEN
            v_published := v_published || v_value.ordinal;
        END IF;
    END LOOP;
    RETURN v_published;
END $$;

-- Writes one poll that brought something: all of it, or (by an exception) nothing.
CREATE FUNCTION stakeout_write_poll(
    p_poll jsonb, p_snapshot bytea, p_sample bytea, INOUT io_seq bigint, OUT o_answer stakeout_answer)
LANGUAGE plpgsql AS $$
DECLARE
    v_id      bigint := (p_poll ->> 'target')::bigint;
    v_now     bigint := (p_poll ->> 'now')::bigint;
    v_plan    bigint := (p_poll ->> 'plan')::bigint;
    v_hold    bigint := (p_poll ->> 'hold')::bigint;
    v_due     bigint := (p_poll ->> 'due')::bigint;
    v_row     targets;
    v_effects stakeout_effect[];
    v_log     jsonb := p_poll -> 'log';
    v_run     jsonb := p_poll -> 'run';
BEGIN
    SELECT * INTO v_row FROM targets WHERE id = v_id FOR UPDATE;
    o_answer.outcome := stakeout_refusal(v_row, (p_poll ->> 'fence')::bigint, (p_poll ->> 'poll_no')::bigint);
    IF o_answer.outcome IS NOT NULL THEN
        RETURN;
    END IF;
    v_effects := stakeout_write_records(v_row.source_id, p_poll);
    IF v_effects IS NULL THEN
        o_answer.outcome := 'conflict';
        RETURN;
    END IF;
    o_answer.outcome := 'done';
    IF p_poll ? 'history' THEN
        o_answer.history_rows := stakeout_write_history(v_row.source_id, p_poll -> 'history', v_effects);
    END IF;
    IF p_poll ? 'events' THEN
        SELECT e.io_seq, e.o_told INTO io_seq, o_answer.told
        FROM stakeout_write_events(v_row.source_id, v_row.key, p_poll -> 'events',
            ARRAY(SELECT jsonb_array_elements_text(p_poll -> 'sinks')), v_effects, io_seq) e;
        o_answer.seq := io_seq;
        o_answer.target := v_row.key;
    END IF;
    IF p_poll ? 'upserts' THEN
        SELECT l.io_seq, l.o_touched INTO io_seq, o_answer.touched
        FROM stakeout_from_listing(v_row.source_id, v_id, p_poll -> 'upserts', p_poll -> 'retire', v_now, io_seq) l;
    END IF;
    IF p_poll ? 'kv' THEN
        o_answer.published := stakeout_publish(p_poll -> 'kv', v_now);
    END IF;
    IF p_snapshot IS NOT NULL THEN
        INSERT INTO snapshots AS s (target_id, version, records, body, baseline)
        VALUES (v_id, (p_poll ->> 'version')::bigint, length(p_snapshot) / 56, p_snapshot,
            CASE WHEN p_poll ->> 'outcome' = 'baseline' THEN p_snapshot END)
        ON CONFLICT (target_id) DO UPDATE SET version = excluded.version, records = excluded.records,
            body = excluded.body, baseline = coalesce(excluded.baseline, s.baseline);
    ELSIF p_poll ->> 'outcome' = 'baseline' THEN
        UPDATE snapshots SET baseline = body WHERE target_id = v_id;
    END IF;
    IF v_log IS NOT NULL THEN
        INSERT INTO polls (target_id, poll_no, due_us, sent_us, ended_us, phase, outcome, late, missed, missed_cause,
            requests, bytes, changes, events, error_class, detail)
        SELECT v_id, l.poll_no, l.due, l.sent, l.ended, l.phase, l.outcome, l.late, l.missed, l.missed_cause,
            l.requests, l.bytes, l.changes, l.events, l.error_class, l.detail
        FROM jsonb_to_record(v_log) AS l (poll_no bigint, due bigint, sent bigint, ended bigint, phase text,
            outcome text, late text, missed bigint, missed_cause text, requests bigint, bytes bigint, changes bigint,
            events bigint, error_class text, detail text);
    END IF;
    IF v_run IS NOT NULL THEN
        INSERT INTO runs (target_id, source_id, key, from_us, to_us, body)
        VALUES (v_id, v_row.source_id, v_row.key, (v_run ->> 'from')::bigint, (v_run ->> 'to')::bigint, v_run ->> 'body');
    END IF;
    IF p_sample IS NOT NULL THEN
        INSERT INTO samples (target_id, at_us, reason, content_type, body)
        SELECT v_id, (s ->> 'at')::bigint, s ->> 'reason', s ->> 'content_type', p_sample
        FROM (SELECT p_poll -> 'sample' AS s) AS x
        ON CONFLICT (target_id) DO UPDATE SET at_us = excluded.at_us, reason = excluded.reason,
            content_type = excluded.content_type, body = excluded.body;
    END IF;

    -- Nobody polls a disabled target, and a holder whose plan was changed from outside (perhaps by its own listing just
    -- now) has to read the row anew.
    UPDATE targets t SET
        due_us = CASE WHEN t.plan_version = v_plan THEN v_due ELSE t.due_us END,
        interval_us = CASE WHEN t.plan_version = v_plan THEN (p_poll ->> 'interval')::bigint ELSE t.interval_us END,
        phase = CASE WHEN t.plan_version = v_plan THEN p_poll ->> 'phase' ELSE t.phase END,
        reason = CASE WHEN t.plan_version = v_plan THEN p_poll ->> 'reason' ELSE t.reason END,
        slack_us = CASE WHEN t.plan_version = v_plan THEN (p_poll ->> 'slack')::bigint ELSE t.slack_us END,
        lease_until_us = CASE WHEN t.enabled AND t.plan_version = v_plan THEN v_hold END,
        owner = CASE WHEN t.enabled AND t.plan_version = v_plan AND v_hold IS NOT NULL THEN t.owner END,
        wake_us = CASE WHEN t.plan_version = v_plan THEN stakeout_wake(t.enabled, v_hold, v_due)
            ELSE stakeout_wake(t.enabled, NULL, t.due_us) END,
        rebaseline = t.plan_version <> v_plan AND t.rebaseline,
        poll_no = (p_poll ->> 'poll_no')::bigint, last_polled_us = v_now,
        last_changed_us = CASE WHEN p_snapshot IS NULL THEN t.last_changed_us ELSE v_now END,
        last_outcome = p_poll ->> 'outcome', last_error = p_poll ->> 'error', state = p_poll ->> 'state'
    WHERE t.id = v_id
    RETURNING t.* INTO v_row;
    o_answer.plan_version := v_row.plan_version;
    o_answer.enabled := v_row.enabled;
    o_answer.held := v_row.owner IS NOT NULL;
    IF v_row.plan_version <> v_plan THEN
        o_answer.schedule := stakeout_schedule_of(v_row);
    END IF;
END $$;

-- Writes polls that brought nothing but their next due time, offered in order of their targets; answers those that did
-- not simply get in.
CREATE FUNCTION stakeout_reschedule(
    p_target bigint[], p_fence bigint[], p_poll_no bigint[], p_plan bigint[], p_now bigint[], p_due bigint[],
    p_interval bigint[], p_phase text[], p_reason text[], p_slack bigint[], p_hold bigint[], p_outcome text[],
    p_error text[], p_state text[])
RETURNS SETOF stakeout_answer
LANGUAGE plpgsql AS $$
DECLARE
    v_written integer;
    v_plain   integer;
    v_odd     stakeout_answer[];
    v_places  integer[];
BEGIN
    WITH offered AS (
        SELECT * FROM unnest(p_target, p_fence, p_poll_no, p_plan, p_now, p_due, p_interval, p_phase, p_reason, p_slack,
            p_hold, p_outcome, p_error, p_state) WITH ORDINALITY AS o (target, fence, poll_no, plan, now, due,
            interval, phase, reason, slack, hold, outcome, error, state, place)
    ), written AS (
        UPDATE targets t SET
            due_us = CASE WHEN t.plan_version = o.plan THEN o.due ELSE t.due_us END,
            interval_us = CASE WHEN t.plan_version = o.plan THEN o.interval ELSE t.interval_us END,
            phase = CASE WHEN t.plan_version = o.plan THEN o.phase ELSE t.phase END,
            reason = CASE WHEN t.plan_version = o.plan THEN o.reason ELSE t.reason END,
            slack_us = CASE WHEN t.plan_version = o.plan THEN o.slack ELSE t.slack_us END,
            lease_until_us = CASE WHEN t.enabled AND t.plan_version = o.plan THEN o.hold END,
            owner = CASE WHEN t.enabled AND t.plan_version = o.plan AND o.hold IS NOT NULL THEN t.owner END,
            wake_us = CASE WHEN NOT t.enabled THEN NULL
                WHEN t.plan_version <> o.plan THEN t.due_us
                WHEN o.due IS NOT NULL THEN greatest(o.hold, o.due) END,
            rebaseline = t.plan_version <> o.plan AND t.rebaseline,
            poll_no = o.poll_no, last_polled_us = o.now, last_outcome = o.outcome, last_error = o.error,
            state = o.state
        FROM offered o
        WHERE t.id = o.target AND t.fence = o.fence AND t.poll_no < o.poll_no AND t.owner IS NOT NULL
        RETURNING o.place, o.plan, t.plan_version, t.enabled, t.owner IS NOT NULL AS held, t.due_us, t.interval_us,
            t.phase, t.reason, t.slack_us
    )
    SELECT count(*), count(*) FILTER (WHERE plan_version = plan AND enabled),
        array_agg(ROW(true, place, 'done', NULL, NULL, NULL, NULL, NULL, NULL, plan_version, enabled, held,
            CASE WHEN plan_version <> plan THEN jsonb_build_object('due', due_us, 'interval', interval_us,
                'phase', phase, 'reason', reason, 'slack', slack_us) END, NULL)::stakeout_answer)
            FILTER (WHERE plan_version <> plan OR NOT enabled),
        CASE WHEN count(*) < cardinality(p_target) THEN array_agg(place) END
    INTO v_written, v_plain, v_odd, v_places FROM written;
    IF v_written > v_plain THEN
        RETURN QUERY SELECT * FROM unnest(v_odd);
    END IF;
    IF v_written < cardinality(p_target) THEN
        RETURN QUERY
        SELECT true, o.place::integer, stakeout_refusal(t, o.fence, o.poll_no), NULL::text, NULL::integer[],
            NULL::bigint, NULL::text, NULL::bigint[], NULL::integer, NULL::bigint, NULL::boolean, NULL::boolean, NULL::jsonb,
            NULL::integer[]
        FROM unnest(p_target, p_fence, p_poll_no) WITH ORDINALITY AS o (target, fence, poll_no, place)
        LEFT JOIN targets t ON t.id = o.target
        WHERE o.place <> ALL (coalesce(v_places, '{}'));
    END IF;
END $$;

-- Commits polls, each whole or not at all. Savepoints cost more than most polls, and polls that have to be undone alone
-- are very rare: so the first try goes unguarded, and a poll that is to blame ends it; then they are guarded.
CREATE FUNCTION stakeout_commit(
    p_sources integer[], p_alone boolean, p_guarded boolean,
    p_target bigint[], p_fence bigint[], p_poll_no bigint[], p_plan bigint[], p_now bigint[], p_due bigint[],
    p_interval bigint[], p_phase text[], p_reason text[], p_slack bigint[], p_hold bigint[], p_outcome text[],
    p_error text[], p_state text[],
    p_polled bigint[], p_polls text[], p_snapshots bytea[], p_samples bytea[], p_synced boolean,
    p_publishes boolean)
RETURNS SETOF stakeout_answer
LANGUAGE plpgsql
-- Rows are updated in the order in which they are offered: by looking each of them up.
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    v_seq    bigint;
    v_wrote  record;
    v_answer stakeout_answer;
    v_news   boolean := false;
    v_plans  bigint[] := '{}';
BEGIN
    PERFORM stakeout_lock_targets(p_sources, p_alone);
    IF NOT p_synced THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF cardinality(p_polls) > 0 THEN
        PERFORM stakeout_lock_records(p_sources);
        IF p_publishes THEN
            PERFORM stakeout_lock_values();
        END IF;
        PERFORM 1 FROM targets
        WHERE id = ANY (p_target || p_polled) ORDER BY id FOR UPDATE;
    END IF;
    IF cardinality(p_target) > 0 THEN
        RETURN QUERY SELECT * FROM stakeout_reschedule(p_target, p_fence, p_poll_no, p_plan, p_now, p_due, p_interval,
            p_phase, p_reason, p_slack, p_hold, p_outcome, p_error, p_state);
    END IF;
    FOR n IN 1 .. cardinality(p_polls) LOOP
        IF p_guarded THEN
            BEGIN
                SELECT * INTO v_wrote
                FROM stakeout_write_poll(p_polls[n]::jsonb, p_snapshots[n], p_samples[n], v_seq);
                v_seq := v_wrote.io_seq;
                v_answer := v_wrote.o_answer;
            EXCEPTION
                -- Values are to blame, not the database: class 22 and 23, too much for an index or a row, our own.
                WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded OR SQLSTATE 'SP001' THEN
                    v_answer := NULL;
                    v_answer.outcome := 'poisoned';
                    v_answer.detail := SQLERRM;
            END;
        ELSE
            SELECT * INTO v_wrote
            FROM stakeout_write_poll(p_polls[n]::jsonb, p_snapshots[n], p_samples[n], v_seq);
            v_seq := v_wrote.io_seq;
            v_answer := v_wrote.o_answer;
        END IF;
        v_answer.quiet := false;
        v_answer.place := n;
        v_news := v_news OR cardinality(v_answer.told) > 0;
        v_plans := v_plans || v_answer.touched;
        RETURN NEXT v_answer;
    END LOOP;
    IF v_seq IS NOT NULL THEN
        PERFORM stakeout_end_numbering(v_seq);
    END IF;
    IF v_news THEN
        PERFORM stakeout_hint('events', ARRAY[v_seq]);
    END IF;
    IF cardinality(v_plans) > 0 THEN
        PERFORM stakeout_hint('plans', v_plans);
    END IF;
END $$;
