//! A writer in memory that puts polls off until somebody needs them written, so that a simulated day has one transaction
//! for several instants. They are written in the order they were handed in, before anything else that is asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::writer::{GROUP_POLLS_MAX, Group, Job, Writer};

pub(super) struct Deferred(Mutex<State>);

struct State {
    writer: Writer,
    handed_in: Vec<Group>,
    /// How many polls that is.
    polls: usize,
}

impl State {
    fn write(&mut self) {
        if !self.handed_in.is_empty() {
            self.polls = 0;
            self.writer.commit_group(std::mem::take(&mut self.handed_in));
        }
    }
}

impl Deferred {
    pub(super) fn new(writer: Writer) -> Deferred {
        Deferred(Mutex::new(State { writer, handed_in: Vec::new(), polls: 0 }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, job: Job) {
        let mut state = self.state();
        match job {
            Job::Commit { polls, reply } => {
                state.polls += polls.len();
                state.handed_in.push((polls, reply));
                if state.polls >= GROUP_POLLS_MAX {
                    state.write();
                }
            }
            Job::Work(work) => {
                state.write();
                work(&mut state.writer);
            }
        }
    }

    /// Writes what has been handed in.
    pub(super) fn write(&self) {
        self.state().write();
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.write();
    }
}
