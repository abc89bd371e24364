-- What is no longer wanted is a difference of two sets, worked out at once. Looked for one by one, four thousand roots were
-- sixteen million comparisons on tables that nobody had analysed.
CREATE OR REPLACE FUNCTION stakeout_roots(
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
    WHERE t.source_id = v_source AND t.listed_by IS NULL AND t.key IN (
        SELECT key FROM targets WHERE source_id = v_source AND listed_by IS NULL
        EXCEPT SELECT w ->> 'key' FROM jsonb_array_elements(v_desired) AS w);
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
