-- What was told of a target is found by the target: most have told little, and for those the whole log was read.
CREATE INDEX events_target ON events (target, source_id, seq);
