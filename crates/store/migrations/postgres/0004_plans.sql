-- A commit looks up a few rows by their keys, in tables of any size. The planner takes every list that it is given for a
-- hundred rows, and a table that nobody has analysed yet for empty: then it reads all records of the source for every poll,
-- and plans anew each time. So it is told: by key, and planned once.
ALTER FUNCTION stakeout_commit SET enable_material = off;
ALTER FUNCTION stakeout_commit SET enable_seqscan = off;
ALTER FUNCTION stakeout_commit SET plan_cache_mode = force_generic_plan;
