-- Forgetting, in small steps. Each looks at no more than a batch of rows, however many have to stay, and the caller
-- remembers how far it got. One node at a time: the others find nothing to do.
CREATE TYPE stakeout_place AS (number bigint, source_id integer, print bytea, stream text);

CREATE FUNCTION stakeout_prune(
    p_stage text, p_cutoff bigint, p_budget integer, p_number bigint, p_source integer, p_print bytea, p_stream text,
    p_weekly boolean,
    OUT o_looked integer, OUT o_removed bigint, OUT o_after stakeout_place)
LANGUAGE plpgsql AS $$
DECLARE
    v_found stakeout_place[];
BEGIN
    o_looked := 0;
    o_removed := 0;
    o_after := ROW(p_number, p_source, p_print, p_stream);
    IF NOT pg_try_advisory_xact_lock(7304, 0) THEN
        RETURN;
    END IF;
    PERFORM stakeout_relaxed();
    IF p_stage = 'events' THEN
        -- In sequence order up to the first that is young enough; those still to be delivered are passed by.
        WITH looked AS MATERIALIZED (
            SELECT seq, at_us FROM events WHERE seq > p_number ORDER BY seq LIMIT p_budget
        ), old AS MATERIALIZED (
            SELECT seq FROM looked
            WHERE seq < coalesce((SELECT min(seq) FROM looked WHERE at_us > p_cutoff), 9223372036854775807)
        ), gone AS (
            DELETE FROM events e USING old WHERE e.seq = old.seq
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = e.seq) RETURNING e.seq
        ), marked AS (
            UPDATE meta SET value = newest.seq FROM (SELECT max(seq) AS seq FROM gone) AS newest
            WHERE key = 'pruned' AND value < newest.seq
        )
        SELECT count(*), coalesce(max(seq), p_number), (SELECT count(*) FROM gone)
        INTO o_looked, o_after.number, o_removed FROM old;
    ELSIF p_stage = 'polls' THEN
        WITH looked AS MATERIALIZED (SELECT id, ended_us FROM polls ORDER BY id LIMIT p_budget)
        DELETE FROM polls p USING looked l WHERE p.id = l.id
            AND l.id < coalesce((SELECT min(id) FROM looked WHERE ended_us > p_cutoff), 9223372036854775807);
        GET DIAGNOSTICS o_looked = ROW_COUNT;
        o_removed := o_looked;
    ELSIF p_stage = 'runs' THEN
        WITH looked AS MATERIALIZED (SELECT id, to_us FROM runs ORDER BY id LIMIT p_budget)
        DELETE FROM runs r USING looked l WHERE r.id = l.id
            AND l.id < coalesce((SELECT min(id) FROM looked WHERE to_us > p_cutoff), 9223372036854775807);
        GET DIAGNOSTICS o_looked = ROW_COUNT;
        o_removed := o_looked;
    ELSIF p_stage = 'notices' THEN
        DELETE FROM notices WHERE (source_id, rule, fingerprint) IN
            (SELECT source_id, rule, fingerprint FROM notices WHERE until_us <= p_cutoff LIMIT p_budget);
        GET DIAGNOSTICS o_looked = ROW_COUNT;
        o_removed := o_looked;
    ELSIF p_stage = 'history' THEN
        SELECT count(*), array_agg(ROW(h.at_us, h.source_id, h.fingerprint, h.stream)::stakeout_place
            ORDER BY h.at_us, h.source_id, h.fingerprint, h.stream)
        INTO o_looked, v_found FROM (
            SELECT * FROM history h
            -- Where weeks are dropped whole, only what they left behind is looked at row by row.
            WHERE h.at_us <= p_cutoff AND (NOT p_weekly OR h.tableoid = 'history_default'::regclass)
                AND (h.at_us, h.source_id, h.fingerprint, h.stream) > (p_number, p_source, p_print, p_stream)
            ORDER BY h.at_us, h.source_id, h.fingerprint, h.stream LIMIT p_budget
        ) AS h;
        o_after := coalesce(v_found[cardinality(v_found)], o_after);
        PERFORM stakeout_lock_records((SELECT array_agg(DISTINCT f.source_id) FROM unnest(v_found) f));
        -- The newest of each stream stays as long as somebody holds the record.
        DELETE FROM history h USING unnest(v_found) f
        WHERE h.source_id = f.source_id AND h.fingerprint = f.print AND h.stream = f.stream AND h.at_us = f.number
            AND NOT (EXISTS (SELECT 1 FROM records r WHERE r.source_id = h.source_id
                    AND r.fingerprint = h.fingerprint AND r.gone_us IS NULL)
                AND NOT EXISTS (SELECT 1 FROM history n WHERE n.source_id = h.source_id
                    AND n.fingerprint = h.fingerprint AND n.stream = h.stream AND n.at_us > h.at_us));
        GET DIAGNOSTICS o_removed = ROW_COUNT;
    ELSIF p_stage = 'records' THEN
        -- Those that nobody holds, once nothing refers to them: no history, no child, no event on its way.
        SELECT count(*), array_agg(ROW(r.gone_us, r.source_id, r.fingerprint, r.id::text)::stakeout_place
            ORDER BY r.gone_us, r.id)
        INTO o_looked, v_found FROM (
            SELECT * FROM records r WHERE r.gone_us <= p_cutoff AND (r.gone_us, r.id) > (p_number, p_stream::bigint)
            ORDER BY r.gone_us, r.id LIMIT p_budget
        ) AS r;
        o_after := coalesce(v_found[cardinality(v_found)], o_after);
        PERFORM stakeout_lock_records((SELECT array_agg(DISTINCT f.source_id) FROM unnest(v_found) f));
        DELETE FROM records r USING unnest(v_found) f
        WHERE r.id = f.stream::bigint AND r.gone_us <= p_cutoff
            AND NOT EXISTS (SELECT 1 FROM history h WHERE h.source_id = r.source_id AND h.fingerprint = r.fingerprint)
            AND NOT EXISTS (SELECT 1 FROM records c WHERE c.source_id = r.source_id AND c.parent = r.fingerprint)
            AND NOT EXISTS (SELECT 1 FROM events e JOIN deliveries d ON d.seq = e.seq
                WHERE e.subject = r.fingerprint AND e.source_id = r.source_id);
        GET DIAGNOSTICS o_removed = ROW_COUNT;
    END IF;
END $$;

-- Makes these views and removes those made for others; does nothing when all is as it should be.
CREATE FUNCTION stakeout_views(p_names text[], p_sqls text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
BEGIN
    PERFORM pg_advisory_xact_lock(7305, 0);
    IF ARRAY(SELECT name || ' ' || sql FROM made_views ORDER BY name)
        = ARRAY(SELECT n || ' ' || s FROM unnest(p_names, p_sqls) AS w (n, s) ORDER BY n COLLATE "C") THEN
        RETURN;
    END IF;
    -- The later ones are made of the earlier ones.
    FOR v_name IN SELECT name FROM made_views ORDER BY id DESC LOOP
        EXECUTE format('DROP VIEW IF EXISTS %I', v_name);
    END LOOP;
    DELETE FROM made_views;
    FOR n IN 1 .. cardinality(p_names) LOOP
        EXECUTE format('DROP VIEW IF EXISTS %I', p_names[n]);
        EXECUTE p_sqls[n];
        INSERT INTO made_views (name, sql) VALUES (p_names[n], p_sqls[n]);
    END LOOP;
END $$;

-- About how many rows a large table has; NULL when it is small enough to count.
CREATE FUNCTION stakeout_estimate(p_table regclass) RETURNS bigint
LANGUAGE sql AS $$
    SELECT CASE WHEN sum(c.reltuples) >= 1000000 THEN sum(c.reltuples)::bigint END
    FROM pg_class c
    WHERE c.relkind = 'r' AND (c.oid = p_table OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = p_table))
$$;
