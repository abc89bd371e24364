-- Which notifications, which are events of alerts, somebody has read. One that is pruned is nobody's concern.
CREATE TABLE notifications_read (
    seq     bigint PRIMARY KEY REFERENCES events (seq) ON DELETE CASCADE,
    read_us bigint NOT NULL
);
-- Alerts are few among many events.
CREATE INDEX events_alerts ON events (seq) WHERE type = 'alert.raised';

-- The rules of the configuration file that the engine runs with, so that whoever reads the database sees them too.
CREATE TABLE filed_alerts (
    name       text COLLATE "C" PRIMARY KEY,
    rule       text   NOT NULL,
    updated_us bigint NOT NULL
);
