-- Functions of earlier steps with better bodies. What they take, answer and leave behind is as before, so nodes that
-- know only the earlier step call them without noticing.

-- A word to the other nodes when this transaction commits: who says it, what, and which, in as many parts as it takes.
-- Words get lost; whoever hears none finds out by looking.
CREATE OR REPLACE FUNCTION stakeout_hint(p_word text, p_which bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_sender text := coalesce(nullif(current_setting('stakeout.sender', true), ''), '?');
    v_from   integer := 1;
BEGIN
    LOOP
        -- Three hundred of the longest numbers still fit into the 8,000 bytes that a word may have.
        PERFORM pg_notify('stakeout', concat_ws(' ', v_sender, p_word,
            array_to_string(p_which[v_from:v_from + 299], ',')));
        v_from := v_from + 300;
        EXIT WHEN v_from > coalesce(cardinality(p_which), 0);
    END LOOP;
END $$;

-- Drops the first week that lies wholly before a time; answers how many (one or none). Rows that must stay (the newest
-- of a stream whose record somebody holds) go to the default: they are collected first, while everybody reads and writes
-- on; only then is the table taken away, and readers wait for no more than that.
CREATE OR REPLACE FUNCTION stakeout_drop_weeks(p_before bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
BEGIN
    -- Whoever makes or drops weeks does it alone.
    IF NOT pg_try_advisory_xact_lock(7303, 0) THEN
        RETURN 0;
    END IF;
    PERFORM set_config('lock_timeout', '250ms', true);
    SELECT c.relname INTO v_name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'history'::regclass AND c.relname ~ '^history_w-?\d+$'
        AND substring(c.relname FROM 10)::bigint < stakeout_week(p_before)
    ORDER BY substring(c.relname FROM 10)::bigint LIMIT 1;
    IF v_name IS NULL THEN
        RETURN 0;
    END IF;
    -- From now on nobody writes to this week, so that nothing is missed; nobody has a reason to.
    EXECUTE format('LOCK TABLE %I IN SHARE MODE', v_name);
    EXECUTE format('CREATE TEMPORARY TABLE stakeout_kept ON COMMIT DROP AS SELECT h.* FROM %I h
        WHERE EXISTS (SELECT 1 FROM records r WHERE r.source_id = h.source_id AND r.fingerprint = h.fingerprint
                AND r.gone_us IS NULL)
            AND NOT EXISTS (SELECT 1 FROM history n WHERE n.source_id = h.source_id
                AND n.fingerprint = h.fingerprint AND n.stream = h.stream AND n.at_us > h.at_us)', v_name);
    EXECUTE format('ALTER TABLE history DETACH PARTITION %I', v_name);
    EXECUTE 'INSERT INTO history SELECT * FROM pg_temp.stakeout_kept';
    EXECUTE format('DROP TABLE %I', v_name);
    EXECUTE 'DROP TABLE pg_temp.stakeout_kept';
    RETURN 1;
EXCEPTION WHEN lock_not_available OR undefined_table THEN
    -- Somebody reads it right now: the next pass finds it.
    RETURN 0;
END $$;
