-- Who waits for whom. Everybody takes locks in this order and therefore nobody waits in a circle:
--
--   1. the targets of a source: shared by whoever changes rows he names, alone for whoever changes others on the side
--   2. the records of a source: alone for whoever writes records, history or events
--   3. the published values: alone for whoever publishes; they belong to no source
--   4. rows of targets, in order of id (claims wait for nobody: they skip what is locked)
--   5. the row of the commit sequence: from the first event of a call to its commit
--
-- Several sources are locked in order of their number. Every lock ends with the one call that took it.

CREATE FUNCTION stakeout_lock_targets(p_sources integer[], p_alone boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_source integer;
BEGIN
    FOR v_source IN SELECT DISTINCT s FROM unnest(p_sources) AS s ORDER BY s LOOP
        IF p_alone THEN
            PERFORM pg_advisory_xact_lock(7301, v_source);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(7301, v_source);
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION stakeout_lock_records(p_sources integer[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_source integer;
BEGIN
    FOR v_source IN SELECT DISTINCT s FROM unnest(p_sources) AS s ORDER BY s LOOP
        PERFORM pg_advisory_xact_lock(7302, v_source);
    END LOOP;
END $$;

CREATE FUNCTION stakeout_lock_values() RETURNS void
LANGUAGE sql AS $$ SELECT pg_advisory_xact_lock(7306, 0) $$;

-- The newest number handed out. From now on nobody else numbers, until this transaction ends: whoever reads events
-- finds numbers in the order of their commits.
CREATE FUNCTION stakeout_begin_numbering() RETURNS bigint
LANGUAGE sql AS $$ SELECT value FROM meta WHERE key = 'seq' FOR UPDATE $$;

CREATE FUNCTION stakeout_end_numbering(p_seq bigint) RETURNS void
LANGUAGE sql AS $$ UPDATE meta SET value = p_seq WHERE key = 'seq' AND value <> p_seq $$;

-- Losing this transaction with the power costs nothing but a poll.
CREATE FUNCTION stakeout_relaxed() RETURNS void
LANGUAGE sql AS $$ SELECT set_config('synchronous_commit', 'off', true) $$;

-- A word to the other nodes when this transaction commits: who says it, what, and which. Words get lost and may be
-- cut short; whoever hears none finds out by looking.
CREATE FUNCTION stakeout_hint(p_word text, p_which bigint[]) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_notify('stakeout', concat_ws(' ', coalesce(current_setting('stakeout.sender', true), '?'), p_word,
        array_to_string(p_which[1:300], ',')))
$$;

-- Something in the work itself is wrong: only what proposes it is refused.
CREATE FUNCTION stakeout_poison(p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = p_reason;
END $$;
