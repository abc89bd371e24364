-- When a row can next be claimed. Not greatest(): it would ignore that a target is never due.
CREATE FUNCTION stakeout_wake(p_enabled boolean, p_lease_us bigint, p_due_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_enabled AND p_due_us IS NOT NULL THEN greatest(p_lease_us, p_due_us) END
$$;

-- Gives targets new due times from outside: whoever holds the claim learns of it by the plan version, and the row cannot
-- be claimed before the lease ends.
CREATE FUNCTION stakeout_replan(p_id bigint, p_schedule jsonb) RETURNS void
LANGUAGE sql AS $$
    UPDATE targets SET due_us = (p_schedule ->> 'due')::bigint, interval_us = (p_schedule ->> 'interval')::bigint,
        phase = p_schedule ->> 'phase', reason = p_schedule ->> 'reason', slack_us = (p_schedule ->> 'slack')::bigint,
        plan_version = plan_version + 1,
        wake_us = stakeout_wake(enabled, lease_until_us, (p_schedule ->> 'due')::bigint)
    WHERE id = p_id
$$;

-- Makes targets that do not exist, in the given order; each gets its own number of the sequence as incarnation.
CREATE FUNCTION stakeout_create_targets(
    p_source integer, p_lister bigint, p_wanted jsonb, INOUT io_seq bigint, OUT o_created bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    IF io_seq IS NULL THEN
        io_seq := stakeout_begin_numbering();
    END IF;
    WITH wanted AS (
        SELECT w, n, NOT EXISTS (SELECT 1 FROM switched_off o WHERE o.source_id = p_source AND o.key = w ->> 'key') AS enabled
        FROM jsonb_array_elements(p_wanted) WITH ORDINALITY AS x (w, n)
    ), created AS (
        INSERT INTO targets (source_id, key, role, params, priority, meaning, start_us, spec_hash, incarnation, listed_by,
            due_us, interval_us, phase, reason, slack_us, wake_us, state, enabled)
        SELECT p_source, w ->> 'key', w ->> 'role', w ->> 'params', (w ->> 'priority')::smallint,
            (w ->> 'meaning')::bigint, (w ->> 'start')::bigint, decode(w ->> 'hash', 'hex'), io_seq + n, p_lister,
            (w ->> 'due')::bigint, (w ->> 'interval')::bigint, w ->> 'phase', w ->> 'reason', (w ->> 'slack')::bigint,
            stakeout_wake(enabled, NULL, (w ->> 'due')::bigint), w ->> 'state', enabled
        FROM wanted ORDER BY n
        RETURNING id, incarnation
    )
    SELECT coalesce(array_agg(id ORDER BY incarnation), '{}') INTO o_created FROM created;
    io_seq := io_seq + cardinality(o_created);
END $$;

-- Creates what is wanted and updates what differs. Never touches a person's switch.
CREATE FUNCTION stakeout_upsert_targets(
    p_source integer, p_lister bigint, p_wanted jsonb,
    INOUT io_seq bigint, OUT o_created bigint[], OUT o_updated bigint[], OUT o_replanned bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_new jsonb;
    v_old record;
BEGIN
    o_created := '{}';
    o_updated := '{}';
    o_replanned := '{}';
    FOR v_old IN
        SELECT t.id, w, t.spec_hash <> decode(w ->> 'hash', 'hex') AS differs,
            t.start_us IS DISTINCT FROM (w ->> 'start')::bigint AS moved,
            -- A root stays a root; otherwise the last one to list a target is responsible for it.
            t.listed_by IS NOT NULL AND t.listed_by IS DISTINCT FROM p_lister AS adopted
        FROM jsonb_array_elements(p_wanted) WITH ORDINALITY AS x (w, n)
        JOIN targets t ON t.source_id = p_source AND t.key = w ->> 'key'
        WHERE t.spec_hash <> decode(w ->> 'hash', 'hex')
            OR t.listed_by IS NOT NULL AND t.listed_by IS DISTINCT FROM p_lister
        ORDER BY n
    LOOP
        IF v_old.adopted THEN
            UPDATE targets SET listed_by = p_lister WHERE id = v_old.id;
        END IF;
        o_updated := o_updated || v_old.id;
        CONTINUE WHEN NOT v_old.differs;
        UPDATE targets SET role = v_old.w ->> 'role', params = v_old.w ->> 'params',
            priority = (v_old.w ->> 'priority')::smallint, meaning = (v_old.w ->> 'meaning')::bigint,
            start_us = (v_old.w ->> 'start')::bigint, spec_hash = decode(v_old.w ->> 'hash', 'hex'),
            plan_version = plan_version + 1
        WHERE id = v_old.id;
        CONTINUE WHEN NOT v_old.moved;
        -- The listing knows better than the last poll until there is another one.
        PERFORM stakeout_move_start(v_old.id, v_old.w -> 'start_text');
        PERFORM stakeout_replan(v_old.id, v_old.w);
        o_replanned := o_replanned || v_old.id;
    END LOOP;

    SELECT jsonb_agg(w ORDER BY n) INTO v_new
    FROM (
        SELECT DISTINCT ON (w ->> 'key') w, n
        FROM jsonb_array_elements(p_wanted) WITH ORDINALITY AS x (w, n)
        WHERE NOT EXISTS (SELECT 1 FROM targets t WHERE t.source_id = p_source AND t.key = w ->> 'key')
        ORDER BY w ->> 'key', n
    ) AS missing;
    IF v_new IS NOT NULL THEN
        SELECT c.io_seq, c.o_created INTO io_seq, o_created
        FROM stakeout_create_targets(p_source, p_lister, v_new, io_seq) c;
    END IF;
END $$;

-- A memory that is no longer readable is left alone: it starts afresh at the next claim.
CREATE FUNCTION stakeout_move_start(p_id bigint, p_start jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE targets SET state = jsonb_set(state::jsonb, '{facts,start}', coalesce(p_start, 'null'))::text WHERE id = p_id;
EXCEPTION WHEN data_exception THEN
    NULL;
END $$;

-- A time as it stands in a target's memory, in microseconds.
CREATE FUNCTION stakeout_time(p_text text) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT (extract(epoch FROM p_text::timestamptz) * 1000000)::bigint $$;

-- The stretches of regular polling that are going on end with their targets. A memory that is no longer readable has
-- lost its run, too; that must not keep the target.
CREATE FUNCTION stakeout_finish_runs(p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_target record;
    v_run    json;
BEGIN
    FOR v_target IN SELECT id, source_id, key, state FROM targets WHERE id = ANY (p_ids) ORDER BY id LOOP
        BEGIN
            v_run := v_target.state::json -> 'run';
            INSERT INTO runs (target_id, source_id, key, from_us, to_us, body)
            SELECT v_target.id, v_target.source_id, v_target.key, stakeout_time(v_run ->> 'from'),
                stakeout_time(v_run ->> 'to'), v_run::text
            WHERE json_typeof(v_run) = 'object';
        EXCEPTION WHEN data_exception OR not_null_violation THEN
            NULL;
        END;
    END LOOP;
END $$;

-- Removes targets and everything they listed, letting go of their records; answers how many. Poll log and runs stay
-- until their retention ends: they are the proof of what was watched.
CREATE FUNCTION stakeout_retire(p_source integer, p_ids bigint[], p_now bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_all      bigint[];
    v_id       bigint;
    v_body     bytea;
    v_retired  integer;
BEGIN
    WITH RECURSIVE going AS (
        SELECT unnest(p_ids) AS id
        UNION
        SELECT t.id FROM targets t JOIN going g ON t.listed_by = g.id WHERE t.source_id = p_source
    )
    SELECT array_agg(id ORDER BY id) INTO v_all FROM going;
    PERFORM 1 FROM targets WHERE id = ANY (v_all) ORDER BY id FOR UPDATE;

    FOREACH v_id IN ARRAY coalesce(v_all, '{}') LOOP
        -- Joined to nothing so that it is read once and not again for every slice.
        SELECT body || ''::bytea INTO v_body FROM snapshots WHERE target_id = v_id;
        CONTINUE WHEN NOT FOUND;
        IF length(v_body) % 56 <> 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'data_corrupted',
                MESSAGE = format('the stored snapshot of target %s is damaged', v_id);
        END IF;
        -- Entries of 56 bytes: fingerprint, group, content, and when the record's own time is over.
        UPDATE records r SET
            holders = r.holders - 1,
            gone_us = CASE WHEN r.holders = 1 THEN p_now ELSE r.gone_us END,
            gone_natural = CASE WHEN r.holders = 1 THEN e.ends_us <= p_now ELSE r.gone_natural END
        FROM (
            SELECT substring(v_body FROM n * 56 + 1 FOR 16) AS print,
                ('x' || encode(substring(v_body FROM n * 56 + 49 FOR 8), 'hex'))::bit(64)::bigint AS ends_us
            FROM generate_series(0, length(v_body) / 56 - 1) AS n
        ) AS e
        WHERE r.source_id = p_source AND r.fingerprint = e.print AND r.holders > 0;
    END LOOP;
    PERFORM stakeout_finish_runs(v_all);
    DELETE FROM snapshots WHERE target_id = ANY (v_all);
    DELETE FROM samples WHERE target_id = ANY (v_all);
    DELETE FROM targets WHERE id = ANY (v_all);
    GET DIAGNOSTICS v_retired = ROW_COUNT;
    RETURN v_retired;
END $$;

-- Applies what a listing found; answers the targets that were made or re-planned. Roots are never retired by a listing.
CREATE FUNCTION stakeout_from_listing(
    p_source integer, p_lister bigint, p_upserts jsonb, p_retire jsonb, p_now bigint,
    INOUT io_seq bigint, OUT o_touched bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
BEGIN
    SELECT u.io_seq, u.o_created || u.o_replanned INTO io_seq, o_touched
    FROM stakeout_upsert_targets(p_source, p_lister, p_upserts, io_seq) u;
    SELECT array_agg(t.id) INTO v_ids
    FROM jsonb_array_elements_text(p_retire) AS k (key) JOIN targets t ON t.source_id = p_source AND t.key = k.key
    WHERE t.listed_by = p_lister OR t.id = p_lister;
    IF p_lister = ANY (v_ids) THEN
        PERFORM stakeout_poison(format('target %s lists its own removal', p_lister));
    END IF;
    IF v_ids IS NOT NULL THEN
        PERFORM stakeout_retire(p_source, v_ids, p_now);
    END IF;
END $$;

-- Makes `p_desired` the whole set of root targets of a source.
CREATE FUNCTION stakeout_roots(
    p_source_name text, p_desired text, p_now bigint,
    OUT o_created integer, OUT o_updated integer, OUT o_retired integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_desired jsonb := p_desired::jsonb;
    v_source  integer;
    v_seq     bigint;
    v_made    bigint[];
    v_changed bigint[];
    v_surplus bigint[];
BEGIN
    SELECT id INTO v_source FROM sources WHERE name = p_source_name;
    IF NOT FOUND THEN
        INSERT INTO sources (name) VALUES (p_source_name) ON CONFLICT DO NOTHING;
        SELECT id INTO v_source FROM sources WHERE name = p_source_name;
    END IF;
    PERFORM stakeout_lock_targets(ARRAY[v_source], true);
    PERFORM stakeout_lock_records(ARRAY[v_source]);
    SELECT u.io_seq, u.o_created, u.o_updated INTO v_seq, v_made, v_changed
    FROM stakeout_upsert_targets(v_source, NULL, v_desired, NULL) u;
    o_created := cardinality(v_made);
    o_updated := cardinality(v_changed);
    SELECT array_agg(t.id) INTO v_surplus FROM targets t
    WHERE t.source_id = v_source AND t.listed_by IS NULL
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(v_desired) AS w WHERE w ->> 'key' = t.key);
    o_retired := 0;
    IF v_surplus IS NOT NULL THEN
        o_retired := stakeout_retire(v_source, v_surplus, p_now);
    END IF;
    IF v_seq IS NOT NULL THEN
        PERFORM stakeout_end_numbering(v_seq);
    END IF;
    IF o_created + o_updated + o_retired > 0 THEN
        PERFORM stakeout_hint('plans', v_changed || v_surplus);
    END IF;
END $$;

-- Switches a target on or off; writes nothing when it is so already. Answers whether it exists.
CREATE FUNCTION stakeout_switch(p_id bigint, p_enabled boolean, p_now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_row record;
BEGIN
    SELECT source_id, key, enabled INTO v_row FROM targets WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF v_row.enabled = p_enabled THEN
        RETURN true;
    END IF;
    IF p_enabled THEN
        DELETE FROM switched_off WHERE source_id = v_row.source_id AND key = v_row.key;
        UPDATE targets SET enabled = true, due_us = p_now, reason = 'switched on', plan_version = plan_version + 1,
            wake_us = stakeout_wake(true, lease_until_us, p_now)
        WHERE id = p_id;
    ELSE
        INSERT INTO switched_off (source_id, key) VALUES (v_row.source_id, v_row.key) ON CONFLICT DO NOTHING;
        UPDATE targets SET enabled = false, wake_us = NULL, plan_version = plan_version + 1 WHERE id = p_id;
    END IF;
    PERFORM stakeout_hint('plans', ARRAY[p_id]);
    RETURN true;
END $$;

-- Makes an enabled target due now. NULL when there is none, false when it is switched off.
CREATE FUNCTION stakeout_poll_now(p_id bigint, p_now bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_enabled boolean;
BEGIN
    PERFORM stakeout_relaxed();
    SELECT enabled INTO v_enabled FROM targets WHERE id = p_id FOR UPDATE;
    IF v_enabled THEN
        UPDATE targets SET due_us = p_now, reason = 'asked for', plan_version = plan_version + 1,
            wake_us = stakeout_wake(true, lease_until_us, p_now)
        WHERE id = p_id;
        PERFORM stakeout_hint('plans', ARRAY[p_id]);
    END IF;
    RETURN v_enabled;
END $$;

-- Re-plans targets whose rows are as they were read; the others are passed over.
CREATE FUNCTION stakeout_replan_all(p_plans text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_plan jsonb;
    v_some bigint[] := '{}';
BEGIN
    PERFORM stakeout_relaxed();
    PERFORM stakeout_lock_targets((SELECT array_agg(DISTINCT t.source_id)
        FROM jsonb_array_elements(p_plans::jsonb) AS p JOIN targets t ON t.id = (p ->> 'target')::bigint), false);
    FOR v_plan IN SELECT p FROM jsonb_array_elements(p_plans::jsonb) AS p ORDER BY (p ->> 'target')::bigint LOOP
        PERFORM 1 FROM targets WHERE id = (v_plan ->> 'target')::bigint AND plan_version = (v_plan ->> 'plan')::bigint
            AND poll_no = (v_plan ->> 'poll_no')::bigint FOR UPDATE;
        IF FOUND THEN
            PERFORM stakeout_replan((v_plan ->> 'target')::bigint, v_plan);
            v_some := v_some || (v_plan ->> 'target')::bigint;
        END IF;
    END LOOP;
    IF cardinality(v_some) > 0 THEN
        PERFORM stakeout_hint('plans', v_some);
    END IF;
END $$;

-- Claims that are still held with these tokens, their rows locked in order.
CREATE FUNCTION stakeout_lock_claims(p_ids bigint[], p_fences bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stakeout_relaxed();
    PERFORM stakeout_lock_targets(ARRAY(SELECT DISTINCT source_id FROM targets WHERE id = ANY (p_ids)), false);
    RETURN ARRAY(
        SELECT t.id FROM targets t JOIN unnest(p_ids, p_fences) AS c (id, fence) ON t.id = c.id AND t.fence = c.fence
        WHERE t.owner IS NOT NULL ORDER BY t.id FOR UPDATE OF t
    );
END $$;

-- Gives claims back untouched, as if they had never been made.
CREATE FUNCTION stakeout_release(p_ids bigint[], p_fences bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_held bigint[] := stakeout_lock_claims(p_ids, p_fences);
BEGIN
    UPDATE targets SET owner = NULL, lease_until_us = NULL, wake_us = stakeout_wake(enabled, NULL, due_us)
    WHERE id = ANY (v_held);
END $$;

-- Extends claims; answers those that are still held.
CREATE FUNCTION stakeout_renew(p_ids bigint[], p_fences bigint[], p_until bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_held bigint[] := stakeout_lock_claims(p_ids, p_fences);
BEGIN
    UPDATE targets SET lease_until_us = p_until, wake_us = stakeout_wake(enabled, p_until, due_us)
    WHERE id = ANY (v_held);
    RETURN v_held;
END $$;

-- Frees what an earlier process of this name held; answers how many. Due times and fencing tokens stay.
CREATE FUNCTION stakeout_free(p_owner text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
BEGIN
    SELECT array_agg(id) INTO v_ids FROM targets WHERE owner = p_owner;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM stakeout_release(v_ids, ARRAY(SELECT fence FROM unnest(v_ids) WITH ORDINALITY AS x (id, n)
        JOIN targets USING (id) ORDER BY n));
    RETURN cardinality(v_ids);
END $$;
