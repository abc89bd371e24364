//! The benchmark upstream.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;
use stakeout_sim::{FAST_RECORDS, FastServer};

use crate::client::Client;

fn values(answer: &Value) -> Vec<u64> {
    let items = answer["items"].as_array().expect("items is a list");
    items.iter().map(|item| item["value"].as_u64().expect("a value")).collect()
}

#[test]
fn same_stays_the_same_and_is_about_4_kb() {
    let server = FastServer::start(1);
    let mut client = Client::connect(server.addr());
    let first = client.get("/same/17");
    assert!((3_500..4_700).contains(&first.body.len()), "{} bytes", first.body.len());
    let json = first.json();
    assert_eq!(json["items"].as_array().map(Vec::len), Some(FAST_RECORDS as usize));
    assert_eq!(
        (json["items"][0]["id"].as_str(), json["items"][19]["id"].as_str()),
        (Some("17-0"), Some("17-19"))
    );
    for _ in 0..30 {
        assert_eq!(client.get("/same/17").body, first.body);
    }
    assert_eq!(client.get("/same/1048576?x=1").json()["items"][3]["id"].as_str(), Some("1048576-3"));
    assert_eq!(server.requests(), 32);
}

#[test]
fn changing_changes_exactly_one_record_in_turn_per_path() {
    let server = FastServer::start(1);
    let mut client = Client::connect(server.addr());
    let mut last = values(&client.get("/changing/3").json());
    for turn in 0..50 {
        client.get("/changing/4");
        let next = values(&client.get("/changing/3").json());
        let changed: Vec<usize> = (0..last.len()).filter(|&i| last[i] != next[i]).collect();
        assert_eq!(changed, [turn % 20]);
        last = next;
    }
}

#[test]
fn it_counts_on_every_thread_and_knows_its_paths() {
    let server = FastServer::start(2);
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(server.addr())).collect();
    for client in &mut clients {
        client.get("/same/1");
        assert_eq!(client.get("/other").status, 404);
        assert_eq!(client.get("/same/x").status, 404);
    }
    assert_eq!(clients[0].get("/count").json()["requests"], 8);
}

#[test]
fn the_program_prints_its_address_and_ends_with_its_stdin() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fast-upstream"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(program.stdout.take().expect("stdout is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a first line");
    let addr = line.trim().parse().expect("the first line is an address");
    assert_eq!(Client::connect(addr).get("/same/1").status, 200);
    drop(program.stdin.take());
    let mut last = String::new();
    out.read_to_string(&mut last).expect("the rest of its output");
    assert_eq!(last, "1 requests\n");
    assert!(program.wait().expect("it ends").success());
}
