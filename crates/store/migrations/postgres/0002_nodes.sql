-- What nodes must agree on beyond targets: who does what only one may do, and who may ask a source how fast.
--
-- Everything here is a single call and waits for nobody but another call of its kind. Rows that have run out stay for
-- a while: they say that somebody was here before.

-- Something that one node does at a time: asking a source, delivering to a sink, dividing a budget.
CREATE TABLE leases (
    name     text COLLATE "C" PRIMARY KEY,
    owner    text,
    until_us bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);

-- What a node may ask of a source that several nodes ask. What it was given is what it may use; what it counts for is
-- what it may still be using, because the answer with less may not have reached it yet.
CREATE TABLE grants (
    source_id integer NOT NULL REFERENCES sources (id),
    node      text COLLATE "C" NOT NULL,
    until_us  bigint NOT NULL,
    demand    double precision NOT NULL,
    rate      double precision NOT NULL,
    burst     bigint NOT NULL,
    places    bigint NOT NULL,
    -- Until when the upstream asked to be left alone.
    slow_us   bigint,
    PRIMARY KEY (source_id, node)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);

-- What a poll of a source is worth: one node works it out, all read it.
CREATE TABLE prices (
    source_id integer PRIMARY KEY REFERENCES sources (id),
    price     double precision NOT NULL,
    at_us     bigint NOT NULL
) WITH (fillfactor = 20);

-- The database's time, or the caller's.
CREATE FUNCTION stakeout_now(p_database boolean, p_now bigint) RETURNS bigint
LANGUAGE sql AS $$
    SELECT CASE WHEN p_database THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE p_now END
$$;

-- Takes or keeps a lease. `o_until` is NULL when another node has it; `o_expired` when it was taken from one that was
-- not heard of for too long.
CREATE FUNCTION stakeout_lease(
    p_name text, p_node text, p_holds bigint, p_database boolean, p_now bigint,
    OUT o_until bigint, OUT o_expired boolean, OUT o_now bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_row leases;
BEGIN
    PERFORM stakeout_relaxed();
    INSERT INTO leases (name, until_us) VALUES (p_name, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO v_row FROM leases WHERE name = p_name FOR UPDATE;
    -- After the wait for the row, or a lease might be given out that has ended already.
    o_now := stakeout_now(p_database, p_now);
    o_expired := v_row.owner IS NOT NULL AND v_row.owner <> p_node;
    IF v_row.owner IS NULL OR v_row.owner = p_node OR v_row.until_us <= o_now THEN
        o_until := o_now + p_holds;
        UPDATE leases SET owner = p_node, until_us = o_until WHERE name = p_name;
    END IF;
END $$;

-- Divides a source's limits among the nodes that want to ask it, by how much each wants, and answers this node's part.
-- Nobody is ever given what another may still be using, so the limits hold for all together at every moment.
CREATE FUNCTION stakeout_grant(
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
    o_until := o_now + p_holds;
    INSERT INTO grants AS g (source_id, node, until_us, demand, rate, burst, places, slow_us)
    VALUES (v_source, p_node, o_until, p_demand, greatest(o_rate, p_using_rate), greatest(o_burst, p_using_burst),
        greatest(o_places, p_using_places), p_slow)
    ON CONFLICT (source_id, node) DO UPDATE SET until_us = excluded.until_us, demand = excluded.demand,
        rate = excluded.rate, burst = excluded.burst, places = excluded.places, slow_us = excluded.slow_us;
END $$;

-- A node goes: what it had is free at once.
CREATE FUNCTION stakeout_leave(p_node text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE leases SET owner = NULL, until_us = 0 WHERE owner = p_node;
    UPDATE grants SET until_us = 0, rate = 0, burst = 0, places = 0, demand = 0 WHERE node = p_node AND until_us > 0;
    PERFORM stakeout_hint('plans', '{}');
END $$;

-- Gives claims back and says so: whoever has time takes them.
CREATE FUNCTION stakeout_give_back(p_ids bigint[], p_fences bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stakeout_release(p_ids, p_fences);
    PERFORM stakeout_hint('plans', '{}');
END $$;

CREATE FUNCTION stakeout_set_price(p_source text, p_price double precision, p_now bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO prices (source_id, price, at_us) SELECT id, p_price, p_now FROM sources WHERE name = p_source
    ON CONFLICT (source_id) DO UPDATE SET price = excluded.price, at_us = excluded.at_us
$$;

-- Whoever shows published values hears that some are others.
CREATE FUNCTION stakeout_values_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stakeout_hint('values', '{}');
    RETURN NULL;
END $$;
CREATE TRIGGER values_changed AFTER INSERT OR UPDATE ON kv FOR EACH ROW EXECUTE FUNCTION stakeout_values_changed();
