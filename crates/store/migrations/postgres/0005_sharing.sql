-- A source is asked by one node or by several in parts, and a setting may turn the one into the other. Both ways go through
-- the same lock and look at each other: nobody is given the whole while another may still be using a part, nor a part while
-- another has the whole.

-- Takes or keeps the lease on a whole source. `o_until` is NULL when another node has it or a part of it; `o_expired` when
-- it was taken from one that was not heard of for too long. What the upstream asked for (`p_slow`) is kept with the parts,
-- for whoever asks the source next. A node that goes for the whole gives its own part up, once nothing is on its way that
-- it asked for in that time.
CREATE FUNCTION stakeout_lane(
    p_source text, p_node text, p_holds bigint, p_database boolean, p_now bigint, p_slow bigint, p_under_way boolean,
    OUT o_until bigint, OUT o_expired boolean, OUT o_slow bigint, OUT o_now bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_source integer;
    v_name   text := 'source ' || p_source;
BEGIN
    SELECT id INTO v_source FROM sources WHERE name = p_source;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM stakeout_relaxed();
    PERFORM pg_advisory_xact_lock(7307, v_source);
    o_now := stakeout_now(p_database, p_now);
    IF NOT p_under_way THEN
        UPDATE grants g SET until_us = o_now, demand = 0, rate = 0, burst = 0, places = 0
        WHERE g.source_id = v_source AND g.node = p_node AND g.until_us > o_now;
    END IF;
    IF p_slow IS NOT NULL THEN
        INSERT INTO grants AS g (source_id, node, until_us, demand, rate, burst, places, slow_us)
        VALUES (v_source, p_node, o_now, 0, 0, 0, 0, p_slow)
        ON CONFLICT (source_id, node) DO UPDATE SET slow_us = excluded.slow_us;
    END IF;
    IF EXISTS (SELECT 1 FROM grants g WHERE g.source_id = v_source AND g.node <> p_node AND g.until_us > o_now
            AND (g.rate > 0 OR g.burst > 0 OR g.places > 0))
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.name = v_name AND l.owner = p_node AND l.until_us > o_now)
    THEN
        RETURN;
    END IF;
    SELECT l.o_until, l.o_expired, l.o_now INTO o_until, o_expired, o_now
    FROM stakeout_lease(v_name, p_node, p_holds, p_database, p_now) l;
    -- A part that ran out without a word, and not long ago: its node may not know yet either.
    o_expired := o_expired OR EXISTS (SELECT 1 FROM grants g WHERE g.source_id = v_source AND g.node <> p_node
        AND g.places > 0 AND g.until_us > o_now - p_holds);
    SELECT max(g.slow_us) INTO o_slow FROM grants g WHERE g.source_id = v_source;
END $$;

-- As before, but for the lease on the whole; nodes that know only the earlier step call it without noticing.
-- Divides a source's limits among the nodes that want to ask it, by how much each wants, and answers this node's part.
-- Nobody is ever given what another may still be using, so the limits hold for all together at every moment.
CREATE OR REPLACE FUNCTION stakeout_grant(
    p_source text, p_node text, p_holds bigint, p_database boolean, p_now bigint,
    p_rate double precision, p_burst bigint, p_places bigint, p_demand double precision,
    p_using_rate double precision, p_using_burst bigint, p_using_places bigint, p_slow bigint,
    OUT o_until bigint, OUT o_rate double precision, OUT o_burst bigint, OUT o_places bigint, OUT o_first boolean,
    OUT o_slow bigint, OUT o_mean double precision, OUT o_now bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_source integer;
    v_nodes  bigint;
    v_part   double precision;
    v_others record;
    v_name   text := 'source ' || p_source;
BEGIN
    SELECT id INTO v_source FROM sources WHERE name = p_source;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM stakeout_relaxed();
    PERFORM pg_advisory_xact_lock(7307, v_source);
    o_now := stakeout_now(p_database, p_now);
    SELECT count(*) = 0, max(g.slow_us) INTO o_first, o_slow FROM grants g WHERE g.source_id = v_source;
    o_slow := greatest(o_slow, p_slow);
    DELETE FROM grants g WHERE g.source_id = v_source AND g.until_us < o_now - 86400000000;
    -- Whoever goes for a part has done with the whole; what it has under way counts with the part.
    UPDATE leases l SET owner = NULL, until_us = 0 WHERE l.name = v_name AND l.owner = p_node;

    -- Whoever wants little is still left a little, so that it can begin to want more.
    SELECT count(*) + 1 INTO v_nodes FROM grants g
    WHERE g.source_id = v_source AND g.node <> p_node AND g.until_us > o_now;
    SELECT coalesce(sum(g.rate), 0) AS rate, coalesce(sum(g.burst), 0) AS burst, coalesce(sum(g.places), 0) AS places,
        coalesce(sum(greatest(g.demand, p_rate / (10 * v_nodes))), 0) AS demand, coalesce(sum(g.demand), 0) AS asked
    INTO v_others FROM grants g
    WHERE g.source_id = v_source AND g.node <> p_node AND g.until_us > o_now;
    o_mean := (p_demand + v_others.asked) / v_nodes;
    v_part := greatest(p_demand, p_rate / (10 * v_nodes));
    v_part := v_part / (v_part + v_others.demand);
    o_rate := greatest(0, least(p_rate * v_part, p_rate - v_others.rate));
    -- Whole things: at least one each as long as there are enough, and never all while others wait.
    o_burst := greatest(0, least(greatest(1, round(p_burst * v_part)), greatest(1, p_burst - v_nodes + 1),
        p_burst - v_others.burst));
    o_places := greatest(0, least(greatest(1, round(p_places * v_part)), greatest(1, p_places - v_nodes + 1),
        p_places - v_others.places));
    IF EXISTS (SELECT 1 FROM leases l WHERE l.name = v_name AND l.owner IS NOT NULL AND l.until_us > o_now) THEN
        o_rate := 0;
        o_burst := 0;
        o_places := 0;
    END IF;
    o_until := o_now + p_holds;
    INSERT INTO grants AS g (source_id, node, until_us, demand, rate, burst, places, slow_us)
    VALUES (v_source, p_node, o_until, p_demand, greatest(o_rate, p_using_rate), greatest(o_burst, p_using_burst),
        greatest(o_places, p_using_places), p_slow)
    ON CONFLICT (source_id, node) DO UPDATE SET until_us = excluded.until_us, demand = excluded.demand,
        rate = excluded.rate, burst = excluded.burst, places = excluded.places, slow_us = excluded.slow_us;
END $$;
