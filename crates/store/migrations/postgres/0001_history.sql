-- The weeks of history. A week is a number: microseconds since the epoch divided by those of a week.
CREATE FUNCTION stakeout_week(p_at_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT floor(p_at_us / 604800000000.0)::bigint $$;

-- Makes the weeks around a time, unless they are there: the one before, its own, and four ahead. Whoever finds somebody
-- else at it, or a table in use, leaves it for the next time: until then the default takes the rows.
CREATE FUNCTION stakeout_make_weeks(p_now bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
BEGIN
    IF NOT pg_try_advisory_xact_lock(7303, 0) THEN
        RETURN;
    END IF;
    PERFORM set_config('lock_timeout', '250ms', true);
    FOR v_week IN stakeout_week(p_now) - 1 .. stakeout_week(p_now) + 4 LOOP
        v_name := 'history_w' || v_week;
        CONTINUE WHEN to_regclass(v_name) IS NOT NULL;
        -- Made apart and attached: that does not wait for whoever reads or writes other weeks.
        EXECUTE format('CREATE TABLE %I (LIKE history INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', v_name);
        EXECUTE format('WITH moved AS (DELETE FROM history_default WHERE at_us >= %s AND at_us < %s RETURNING *)
            INSERT INTO %I SELECT * FROM moved', v_week * 604800000000, (v_week + 1) * 604800000000, v_name);
        EXECUTE format('ALTER TABLE history ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            v_name, v_week * 604800000000, (v_week + 1) * 604800000000);
    END LOOP;
EXCEPTION WHEN lock_not_available OR check_violation OR duplicate_table THEN
    NULL;
END $$;

-- Drops the weeks that lie wholly before a time; answers how many. Rows that must stay (the newest of a stream whose
-- record somebody holds) go to the default.
CREATE FUNCTION stakeout_drop_weeks(p_before bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_name    text;
    v_dropped integer := 0;
BEGIN
    PERFORM set_config('lock_timeout', '250ms', true);
    FOR v_name IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'history'::regclass AND c.relname ~ '^history_w-?\d+$'
            AND substring(c.relname FROM 10)::bigint < stakeout_week(p_before)
        ORDER BY substring(c.relname FROM 10)::bigint
    LOOP
        EXECUTE format('ALTER TABLE history DETACH PARTITION %I', v_name);
        EXECUTE format('INSERT INTO history SELECT h.* FROM %I h
            WHERE EXISTS (SELECT 1 FROM records r WHERE r.source_id = h.source_id AND r.fingerprint = h.fingerprint
                    AND r.gone_us IS NULL)
                AND NOT EXISTS (SELECT 1 FROM %I n WHERE n.source_id = h.source_id AND n.fingerprint = h.fingerprint
                    AND n.stream = h.stream AND n.at_us > h.at_us)
                AND NOT EXISTS (SELECT 1 FROM history n WHERE n.source_id = h.source_id
                    AND n.fingerprint = h.fingerprint AND n.stream = h.stream AND n.at_us > h.at_us)',
            v_name, v_name);
        EXECUTE format('DROP TABLE %I', v_name);
        v_dropped := v_dropped + 1;
    END LOOP;
    RETURN v_dropped;
EXCEPTION WHEN lock_not_available OR undefined_table THEN
    -- Somebody reads it right now: the next pass finds it.
    RETURN 0;
END $$;
