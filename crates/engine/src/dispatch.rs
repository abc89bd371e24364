//! Dispatch: holds claimed targets until they are due and lets them go, the most urgent first, within the limits.
//!
//! One task owns all of this; polls run in tasks of their own and come back as messages.
//!
//! ```text
//! claimer ──► held in the timer ──due──► ready queue ──limits──► in flight ──► kept: timer again
//!                                                                          └─► given back
//! ```

mod lane_state;
mod leases;
mod replanned;
mod time;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stakeout_core::adherence::{Cause, Timing};
use stakeout_core::{Source, Span, Time, cadence};
use stakeout_store::{Claim, TargetId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::warn;

use crate::clock::{STEP, StepDetector};
use crate::lane::Lane;
use crate::poll::{Afterwards, Departure, Finished, poll};
use crate::shared::Shared;

use self::lane_state::LaneState;
use self::leases::Renewal;
pub(crate) use self::leases::release;
use self::replanned::Overtaken;

/// Targets held in the timer at most; beyond it claims are given back to the store.
pub(crate) const MAX_HELD: usize = 50_000;
/// Messages handled before looking at the timer again.
const MESSAGES_PER_TURN: usize = 256;
/// The shortest time between two looks at the leases of held targets; short leases are looked at more often.
const RENEW_EVERY: Span = Span::secs(5);
/// The longest the loop sleeps without looking around.
const LONGEST_SLEEP: Span = Span::secs(1);
/// The same in virtual time.
const AT_REST: Span = Span::hours(1);

/// Targets that are long overdue are spread over at most this.
const LONGEST_SPREAD: Span = Span::secs(10);

/// What others tell the dispatcher.
pub(crate) enum Message {
    /// What the claimer found.
    Found(Found),
    /// This node may no longer ask this source: its targets go to whoever may.
    Left(String),
    /// These targets' plans changed in the store: whoever holds them lets go.
    Changed(Vec<TargetId>),
    /// The clock is off by so much from the one that all nodes go by; answer when it was moved.
    ClockIsOff(Span, oneshot::Sender<()>),
    /// Answer which targets wait here, and by which version of their plans.
    Waiting(oneshot::Sender<Vec<(TargetId, u64)>>),
    /// Answer when everything due by now has been polled, with the due time of what is held next.
    Barrier(oneshot::Sender<Option<Time>>),
}

/// What a look found.
pub(crate) struct Found {
    pub(crate) claims: Vec<Claim>,
    /// Which look it was, counted from the start.
    pub(crate) look: u64,
    /// Everything that was due at this time is in the dispatcher's hands now.
    pub(crate) complete: Option<Time>,
}

/// How the dispatcher treats a target after its poll.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keep polling.
    Service,
    /// Poll every target at most once.
    Pass,
}

/// What is known of a poll in flight.
struct InFlight {
    target: TargetId,
    fence: u64,
    poll_no: u64,
    due: Time,
    lease_us: Arc<AtomicI64>,
    /// How far the clock had been set back when it went.
    set_back: Span,
    /// Its target was planned anew meanwhile, perhaps after it was committed.
    replanned: bool,
}

pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
    mode: Mode,
    messages: mpsc::Receiver<Message>,
    /// Claims by target, with the moment each was claimed.
    held: HashMap<TargetId, (Claim, Time)>,
    /// (fire time, target); stale entries are recognised by their time.
    timer: BinaryHeap<Reverse<(Time, TargetId)>>,
    fires: HashMap<TargetId, Time>,
    lanes: BTreeMap<String, LaneState>,
    polls: JoinSet<Finished>,
    /// The polls in flight.
    tasks: HashMap<tokio::task::Id, InFlight>,
    /// Targets polled in this pass.
    polled: HashSet<TargetId>,
    overtaken: Overtaken,
    barriers: Vec<(Time, oneshot::Sender<Option<Time>>)>,
    /// The last time the claimer looked and found nothing more.
    looked: Time,
    /// The last time a poll came back.
    landed: Time,
    /// When the leases are looked at again, and when they last were.
    next_renewal: Time,
    last_renewal: Time,
    renew_every: Span,
    /// A renewal under way, where the store may take its time to answer.
    renewals: JoinSet<Renewal>,
    /// Claims whose polls came to nothing, until they are given back.
    resting: Vec<(Time, Claim)>,
    steps: StepDetector,
    /// By how much the clock was set back since the start, all together.
    set_back: Span,
    /// A poll was planned by a clock that was far off.
    misled: bool,
}

impl Dispatcher {
    pub(crate) fn new(shared: Arc<Shared>, mode: Mode, messages: mpsc::Receiver<Message>) -> Dispatcher {
        let lane = |name: &String| (name.clone(), LaneState::default());
        let lanes = shared.lanes.keys().map(lane).collect();
        let now = shared.clock.now();
        let renew_every = RENEW_EVERY.min(shared.lease.over(4));
        let steps = StepDetector::new(&shared.clock, shared.follows_store);
        Dispatcher {
            renew_every,
            shared,
            mode,
            messages,
            held: HashMap::new(),
            timer: BinaryHeap::new(),
            fires: HashMap::new(),
            lanes,
            polls: JoinSet::new(),
            tasks: HashMap::new(),
            polled: HashSet::new(),
            overtaken: Overtaken::default(),
            barriers: Vec::new(),
            looked: Time(i64::MIN),
            landed: Time(i64::MIN),
            next_renewal: now + renew_every,
            last_renewal: now,
            renewals: JoinSet::new(),
            resting: Vec::new(),
            steps,
            set_back: Span::ZERO,
            misled: false,
        }
    }

    /// Dispatches until told to stop, lets the polls in flight finish (or abandons them after `grace`) and gives
    /// everything back.
    pub(crate) async fn run(mut self, stop: tokio_util::sync::CancellationToken, grace: std::time::Duration) {
        loop {
            match self.steps.check() {
                Some(step) if self.shared.follows_store => self.doubt_the_clock(step),
                Some(step) => self.clock_was_stepped(step).await,
                None if std::mem::take(&mut self.misled) => self.clock_was_stepped(Span::ZERO).await,
                None => {}
            }
            let now = self.shared.clock.now();
            self.fire(now);
            self.release_ready(now);
            self.renew_leases(now).await;
            self.end_rests(now);
            self.answer_barriers();
            self.shared.held.store(self.held.len(), Ordering::Relaxed);
            let wake = self.next_wake(now);
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(finished) = self.polls.join_next_with_id(), if !self.polls.is_empty() => self.landed(finished),
                Some(renewal) = self.renewals.join_next(), if !self.renewals.is_empty() => {
                    if let Ok(renewal) = renewal {
                        self.renewed(renewal);
                    }
                }
                message = self.messages.recv() => match message {
                    Some(message) => self.handle(message).await,
                    None => break,
                },
                () = shared.freed.notified() => {}
                () = shared.clock.sleep_until(wake) => {}
            }
            self.drain().await;
        }
        self.wind_down(grace).await;
    }

    /// Takes what else has arrived, so that a burst costs one turn.
    async fn drain(&mut self) {
        for _ in 0..MESSAGES_PER_TURN {
            if let Some(finished) = self.polls.try_join_next_with_id() {
                self.landed(finished);
            } else if let Ok(message) = self.messages.try_recv() {
                self.handle(message).await;
            } else {
                return;
            }
        }
    }

    async fn handle(&mut self, message: Message) {
        match message {
            Message::Found(found) => {
                let mut surplus = Vec::new();
                for claim in self.arrived(found).await {
                    // An older claim of the same target lost its lease: this one takes its place.
                    self.let_go(claim.target);
                    let again = self.mode == Mode::Pass && self.polled.contains(&claim.target);
                    if again || self.waiting() >= MAX_HELD || !self.lanes.contains_key(&claim.source) {
                        surplus.push(claim);
                    } else {
                        self.hold(claim, self.shared.clock.now());
                    }
                }
                self.give_back(surplus).await;
            }
            Message::Left(source) => self.leave(&source).await,
            Message::ClockIsOff(by, moved) => {
                self.set_clock(by).await;
                // Whoever asked may be gone.
                let _ = moved.send(());
            }
            Message::Waiting(answer) => {
                let held = self.held.values().map(|(claim, _)| claim);
                let ready = self.lanes.values().flat_map(|lane| lane.ready.iter()).map(|d| &d.claim);
                let plans = held.chain(ready).map(|claim| (claim.target, claim.plan_version)).collect();
                let _ = answer.send(plans);
            }
            Message::Changed(targets) => {
                self.shared.live.replanned();
                let dropped = self.let_go_of_replanned(&targets);
                self.give_back_and_look(dropped).await;
            }
            Message::Barrier(answer) => self.barriers.push((self.shared.clock.now(), answer)),
        }
    }

    /// Puts a claim into the timer.
    fn hold(&mut self, claim: Claim, claimed: Time) {
        let Some(slot) = claim.schedule.due else { return };
        let Some(lane) = self.shared.lanes.get(&claim.source) else { return };
        let fire = match self.mode {
            Mode::Service => fire_time(&*lane.source(), &claim, slot, claimed),
            // A pass is somebody else's schedule: what is due goes at once.
            Mode::Pass => claimed,
        };
        if let Some(lane) = self.lanes.get_mut(&claim.source) {
            lane.held += 1;
            if claim.state.facts.focused {
                lane.focus = Some((claim.target, fire));
            } else {
                lane.forget_focus(claim.target);
            }
        }
        self.next_renewal = self.next_renewal.min(self.renews_at(claim.lease_until));
        self.fires.insert(claim.target, fire);
        self.timer.push(Reverse((fire, claim.target)));
        self.held.insert(claim.target, (claim, claimed));
    }

    /// Moves everything whose time has come into its source's ready queue.
    fn fire(&mut self, now: Time) {
        while let Some(Reverse((fire, target))) = self.timer.peek().copied() {
            if fire > now {
                return;
            }
            self.timer.pop();
            if self.fires.get(&target) != Some(&fire) {
                continue;
            }
            self.fires.remove(&target);
            let Some((claim, claimed)) = self.held.remove(&target) else { continue };
            let Some(lane) = self.lanes.get_mut(&claim.source) else { continue };
            lane.held -= 1;
            let due = due_time(&*self.shared.lanes[&claim.source].source(), &claim).unwrap_or(fire).min(fire);
            let timing = Timing { due, claimed, ready: now, admitted: now, sent: now, limited_by: None };
            let slack = claim.schedule.slack;
            let lease_us = Arc::new(AtomicI64::new(claim.lease_until.us()));
            lane.ready.push(Departure { claim, timing, place: None, lease_us }, slack);
        }
    }

    /// Lets ready polls go as far as concurrency and rate allow.
    fn release_ready(&mut self, now: Time) {
        for (name, lane) in &mut self.lanes {
            lane.blocked_until = None;
            if lane.ready.is_empty() {
                lane.held_back_by = None;
            }
            let Some(limits) = self.shared.lanes.get(name) else { continue };
            while !lane.ready.is_empty() {
                if !limits.has_place() {
                    lane.held_back_by = Some(Cause::UpstreamSlow);
                    break;
                }
                if let Some(next) = lane.keeps_free_until(limits, now) {
                    lane.blocked_until = Some(next);
                    lane.held_back_by = Some(Cause::Queue);
                    break;
                }
                if let Err(later) = limits.admit(now) {
                    lane.blocked_until = Some(later);
                    lane.held_back_by = Some(Cause::RateLimit);
                    break;
                }
                let Some(mut departure) = lane.next_departure() else { break };
                if departure.lease_us.load(Ordering::Acquire) <= now.us() {
                    // The store was out of reach for too long: whoever claims it next polls it, perhaps we do.
                    continue;
                }
                let waited = now - departure.timing.ready;
                departure.timing.admitted = now;
                departure.timing.limited_by = lane.held_back_by.filter(|_| waited > Span::ms(1));
                departure.place = Some(limits.take_place());
                lane.focus_went = departure.claim.state.facts.focused;
                if lane.focus_went {
                    let next = departure.timing.due + departure.claim.schedule.interval;
                    lane.focus = Some((departure.claim.target, next));
                }
                let shared = Arc::clone(&self.shared);
                let source = name.clone();
                let in_flight = InFlight {
                    target: departure.claim.target,
                    fence: departure.claim.fence,
                    poll_no: departure.claim.poll_no,
                    due: departure.timing.due,
                    lease_us: Arc::clone(&departure.lease_us),
                    set_back: self.set_back,
                    replanned: false,
                };
                let task = self.polls.spawn(async move {
                    let lane = shared.lanes.get(&source).expect("exists, because lanes are never removed");
                    poll(&shared, lane, departure).await
                });
                self.tasks.insert(task.id(), in_flight);
            }
            limits.set_waiting(lane.ready.len(), lane.held);
        }
    }

    /// A poll came back.
    fn landed(&mut self, landed: Result<(tokio::task::Id, Finished), tokio::task::JoinError>) {
        let task = landed.as_ref().map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
        let went = self.tasks.remove(&task);
        self.misled |= went.as_ref().is_some_and(|went| self.set_back - went.set_back > STEP);
        let Finished { target, claim, report } = match landed {
            Ok((_, finished)) => finished,
            Err(error) => {
                // A bug of ours: the claim runs out with its lease, everything else goes on.
                warn!(%error, "a poll's task died");
                return;
            }
        };
        if self.mode == Mode::Pass {
            self.landed = self.shared.clock.now();
            self.shared.look.notify_one();
            self.polled.insert(target);
        }
        let relisted = self.waiting_here(&report.source, &report.relisted);
        let touched = self.let_go_of_replanned(&[report.touched.as_slice(), &relisted].concat());
        if !touched.is_empty() {
            self.give_back_later(touched);
        }
        self.shared.stats.record(&report);
        let now = self.shared.clock.now();
        match claim {
            Afterwards::Kept(mut claim) => {
                let replanned = went.as_ref().is_some_and(|went| went.replanned);
                // Its end may have been worked out before the clock was set back.
                claim.lease_until += went.map_or(Span::ZERO, |went| went.set_back) - self.set_back;
                let sheds = self.shared.lanes.get(&claim.source).is_some_and(Lane::sheds);
                if self.waiting() < MAX_HELD && self.mode == Mode::Service && !sheds && !replanned {
                    self.hold(claim, now);
                } else {
                    self.give_back_later(vec![claim]);
                }
            }
            Afterwards::Gone => {}
            Afterwards::GiveBack(claim) => self.give_back_later(vec![claim]),
            Afterwards::Rest(claim) => self.rest(claim, now),
        }
    }

    /// Targets in the timer and in the ready queues.
    fn waiting(&self) -> usize {
        self.held.len() + self.lanes.values().map(|lane| lane.ready.len()).sum::<usize>()
    }

    /// Takes a held target out of the timer or the ready queue.
    fn let_go(&mut self, target: TargetId) -> Option<Claim> {
        self.lanes.values_mut().for_each(|lane| lane.forget_focus(target));
        if let Some((claim, _)) = self.held.remove(&target) {
            self.fires.remove(&target);
            if let Some(lane) = self.lanes.get_mut(&claim.source) {
                lane.held -= 1;
            }
            return Some(claim);
        }
        self.lanes.values_mut().find_map(|lane| lane.ready.remove(target)).map(|departure| departure.claim)
    }

    /// Gives back everything of a source that waits here; what is in flight finishes.
    async fn leave(&mut self, source: &str) {
        let held =
            self.held.values().filter(|(claim, _)| claim.source == source).map(|(claim, _)| claim.target);
        let ready = self.lanes.get(source).into_iter().flat_map(|lane| lane.ready.iter());
        let targets: Vec<TargetId> = held.chain(ready.map(|departure| departure.claim.target)).collect();
        let claims = targets.into_iter().filter_map(|target| self.let_go(target)).collect();
        self.give_back(claims).await;
    }

    /// Answers those who wait for everything that was due when they asked.
    fn answer_barriers(&mut self) {
        if self.barriers.is_empty() {
            return;
        }
        let in_flight = self.tasks.values().map(|poll| poll.due).min();
        let ready = self.lanes.values().filter_map(|lane| lane.ready.earliest_due()).min();
        let earliest_fire = self.timer.peek().map(|Reverse((fire, _))| *fire);
        let earliest = [in_flight, ready, earliest_fire].into_iter().flatten().min();
        let looked = self.looked;
        let (mode, landed) = (self.mode, self.landed);
        let reached = |asked: Time| match mode {
            // What a poll brought to light belongs to the pass, too.
            Mode::Pass => earliest.is_none() && looked >= asked.max(landed),
            Mode::Service => looked >= asked && earliest.is_none_or(|due| due > asked),
        };
        for (asked, answer) in std::mem::take(&mut self.barriers) {
            if reached(asked) {
                let _ = answer.send(earliest_fire);
            } else {
                self.barriers.push((asked, answer));
            }
        }
    }

    fn next_wake(&self, now: Time) -> Time {
        let timer = self.timer.peek().map(|Reverse((fire, _))| *fire);
        let blocked = self.lanes.values().filter_map(|lane| lane.blocked_until);
        let longest = now + LONGEST_SLEEP;
        // In virtual time nothing happens between wake-ups that somebody else did not announce.
        let limit =
            if self.shared.clock.is_virtual() { self.next_renewal.min(now + AT_REST) } else { longest };
        let rests = self.resting.iter().map(|(until, _)| *until);
        blocked.chain(timer).chain(rests).chain([limit]).min().unwrap_or(longest)
    }

    /// No new polls; those in flight finish or are abandoned without a trace; every claim is given back.
    async fn wind_down(mut self, grace: std::time::Duration) {
        let finishing = async {
            while let Some(finished) = self.polls.join_next_with_id().await {
                let Ok((task, Finished { claim, report, .. })) = finished else { continue };
                self.tasks.remove(&task);
                self.shared.stats.record(&report);
                if let Afterwards::Kept(claim) | Afterwards::GiveBack(claim) | Afterwards::Rest(claim) = claim
                {
                    let now = self.shared.clock.now();
                    self.held.insert(claim.target, (claim, now));
                }
            }
        };
        if tokio::time::timeout(grace, finishing).await.is_err() {
            warn!(abandoned = self.polls.len(), "polls in flight were abandoned");
            self.polls.shutdown().await;
        }
        // What was claimed and not yet taken in goes back, too; whoever claims now hears that nobody takes it.
        self.messages.close();
        let mut late = Vec::new();
        while let Some(message) = self.messages.recv().await {
            if let Message::Found(found) = message {
                late.extend(found.claims);
            }
        }
        let ready = self.lanes.values_mut().flat_map(|lane| lane.ready.drain().map(|d| d.claim));
        let held = self.held.drain().map(|(_, (claim, _))| claim);
        let rested = self.resting.drain(..).map(|(_, claim)| claim);
        let waiting = ready.chain(held).chain(rested).chain(late).map(|claim| (claim.target, claim.fence));
        // What was abandoned must not be committed any more, and nobody should wait for its lease.
        let abandoned = self.tasks.values().map(|poll| (poll.target, poll.fence));
        release(Arc::clone(&self.shared), waiting.chain(abandoned).collect()).await;
    }
}

/// The due time with its jitter: what lateness is measured against.
fn due_time(source: &dyn Source, claim: &Claim) -> Option<Time> {
    let slot = claim.schedule.due?;
    let spread = claim.spec.spread(source.name());
    Some(slot + cadence::jitter(spread, slot, claim.schedule.interval, source.limits().max_jitter))
}

/// When the timer lets a claim go: at its due time, but for two cases.
fn fire_time(source: &dyn Source, claim: &Claim, slot: Time, claimed: Time) -> Time {
    let mut fire = due_time(source, claim).unwrap_or(slot);
    if slot + claim.schedule.interval < claimed {
        // Long overdue, after a crash or a pause: whoever has slack waits some of it, so that a herd spreads out.
        let room = claim.schedule.slack.min(LONGEST_SPREAD).as_us().max(1);
        fire = claimed + Span((claim.spec.spread(source.name()) % room as u64) as i64);
    }
    if claim.after_expired_lease {
        // The former owner's last request may still be on its way: wait until it must have ended.
        fire = fire.max(claimed + source.limits().timeout);
    }
    fire
}
