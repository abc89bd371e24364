//! Somebody who knows names, and changes his mind.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_sinks::address::Names;

/// Whatever is asked for is at the first of these addresses, the next time at the second, and at last always at the last.
pub struct InTurn {
    answers: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl InTurn {
    pub fn new(answers: &[&str]) -> Arc<InTurn> {
        let answers = answers.iter().map(|answer| answer.parse().expect("an address")).collect();
        Arc::new(InTurn { answers, asked: Mutex::default() })
    }

    /// What was asked for, each time.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("lock").clone()
    }
}

#[async_trait]
impl Names for InTurn {
    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut asked = self.asked.lock().expect("lock");
        let answer = self.answers.get(asked.len()).or(self.answers.last()).expect("an answer");
        asked.push(host.to_owned());
        Ok(vec![SocketAddr::new(*answer, port)])
    }
}
