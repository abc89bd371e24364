//! Notifications: the events of alerts, as people read them.

use stakeout_core::{Event, Time};

/// What an alert told, and when somebody read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The event.
    pub event: Event,
    /// When it was read; `None` as long as nobody has.
    pub read: Option<Time>,
}

/// Which notifications are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Only those that nobody has read.
    pub unread: bool,
    /// Only those of this user and of everybody.
    pub user: Option<String>,
}

/// Which notifications somebody has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadMark {
    /// That of the event with this number.
    One(u64),
    /// All up to this number, as far as they are this user's and everybody's.
    UpTo(u64, Option<String>),
}

/// What waits for a sink, and what was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// The sink.
    pub sink: String,
    /// Deliveries that are still to be made.
    pub waiting: u64,
    /// Deliveries that were given up.
    pub dead: u64,
}
