-- Takes the earliest due targets of all sources under a lease. What others are about to take is skipped, so nobody waits. A
-- held row whose lease ends between now and the horizon is found by its wake time, but must not be taken early. Only what
-- was taken comes back: a large answer would keep the rows locked while a slow reader reads.
--
-- Nobody waits for the disk, so a server that crashes may forget a claim; the token therefore comes from the clock, and
-- whoever claims the target afterwards does not get the token of somebody who still believes in his.
--
-- The planner is told to walk the index in its order and to stop at the limit. On a table that nobody has analysed yet it
-- takes what is due for a handful of rows, and would fetch and sort all of it for every claim.
CREATE FUNCTION stakeout_take(
    p_by_database boolean, p_now bigint, p_horizon bigint, p_limit bigint, p_sources text[], p_node text, p_lease bigint)
RETURNS TABLE (o_id bigint, o_fence bigint, o_lease_until bigint, o_held boolean, o_now bigint)
LANGUAGE plpgsql
SET enable_bitmapscan = off SET enable_seqscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_now bigint := CASE WHEN p_by_database THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE p_now END;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY
    WITH candidates AS MATERIALIZED (
        SELECT c.* FROM sources s, LATERAL (
            SELECT t.id, t.due_us, t.focused, t.priority, t.owner IS NOT NULL AS held FROM targets t
            WHERE t.source_id = s.id AND t.wake_us <= p_horizon
                AND (t.owner IS NULL OR t.lease_until_us <= v_now)
            ORDER BY t.wake_us, t.focused DESC, t.priority DESC LIMIT p_limit
            FOR UPDATE SKIP LOCKED
        ) AS c
        WHERE s.name = ANY (p_sources)
        ORDER BY c.due_us, c.focused DESC, c.priority DESC LIMIT p_limit
    )
    UPDATE targets t SET fence = greatest(t.fence + 1, CASE WHEN p_by_database THEN v_now END), owner = p_node,
        lease_until_us = greatest(v_now, c.due_us) + p_lease, wake_us = greatest(v_now, c.due_us) + p_lease
    FROM candidates c WHERE t.id = c.id
    RETURNING t.id, t.fence, t.lease_until_us, c.held, v_now;
END $$;
