//! What several nodes agree on besides targets: who does what only one may do, and who may ask a source how fast.

use stakeout_core::{Span, Time};

/// Something that only one node does at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// What it is about.
    pub name: String,
    /// Who asks.
    pub node: String,
    /// The engine's time.
    pub now: Time,
    /// How long it holds if the node is never heard of again.
    pub holds: Span,
}

/// A lease that the asking node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Until when, in the engine's time.
    pub until: Time,
    /// It was another node's, which was not heard of for too long and may not know yet.
    pub taken_over: bool,
}

/// A node's wish for a whole source: one that only one node can ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRequest {
    /// The source.
    pub source: String,
    /// Who asks.
    pub node: String,
    /// The engine's time.
    pub now: Time,
    /// How long it holds if the node is never heard of again.
    pub holds: Span,
    /// Whether requests are on their way that the node made when it had a part of the source's limits.
    pub under_way: bool,
    /// Until when the upstream told this node to leave it alone.
    pub slow_until: Option<Time>,
}

/// A whole source that the asking node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLease {
    /// For how long, and from whom.
    pub lease: Lease,
    /// Until when the upstream told any node to leave it alone.
    pub slow_until: Option<Time>,
}

/// How fast a source may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Requests per second.
    pub requests_per_second: f64,
    /// How many at once before the rate binds.
    pub burst: u32,
    /// How many in flight.
    pub concurrency: u32,
}

/// A node's wish for a part of a source's limits.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRequest {
    /// The source.
    pub source: String,
    /// Who asks.
    pub node: String,
    /// The engine's time.
    pub now: Time,
    /// How long the part is the node's own if it is never heard of again.
    pub holds: Span,
    /// The limits for all nodes together.
    pub limits: Allowance,
    /// How many requests per second the node would make.
    pub demand: f64,
    /// What it may be using at this moment.
    pub using: Allowance,
    /// Until when the upstream told this node to leave it alone.
    pub slow_until: Option<Time>,
}

/// A node's part of a source's limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// Until when, in the engine's time.
    pub until: Time,
    /// How fast this node may ask; nothing at all when the others leave nothing.
    pub allowance: Allowance,
    /// Nobody asked this source before: there is nothing to make up for.
    pub first: bool,
    /// Until when the upstream told any node to leave it alone.
    pub slow_until: Option<Time>,
    /// What a node wants on average, in requests per second.
    pub mean_demand: f64,
}
