-- Extends claims; answers those that are still held. A commit that was under way may have kept one for longer than was known
-- when this was asked for: that stands.
CREATE OR REPLACE FUNCTION stakeout_renew(p_ids bigint[], p_fences bigint[], p_until bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_held bigint[] := stakeout_lock_claims(p_ids, p_fences);
BEGIN
    UPDATE targets SET lease_until_us = greatest(lease_until_us, p_until),
        wake_us = stakeout_wake(enabled, greatest(lease_until_us, p_until), due_us)
    WHERE id = ANY (v_held);
    RETURN v_held;
END $$;
