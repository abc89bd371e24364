//! What a broker may do to us: say anything for as long as it likes, or nothing at all. Whatever it is, we hang up after a
//! limited number of bytes and within a limited time, and the event waits.

mod support;

use serde_json::json;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::nats::NatsSink;
use support::event;
use support::rogue::{FLOOD_BYTES_MAX, Rogue, Talk};

/// What is read of a line and of a message at most: the limits of the sink, as its documentation says them.
const LINE_BYTES_MAX: usize = 64 << 10;
const MESSAGE_BYTES_MAX: usize = 256 << 10;

fn sink(rogue: &Rogue) -> NatsSink {
    let config = json!({ "url": format!("nats://127.0.0.1:{}", rogue.port), "allow": ["127.0.0.1"] });
    let config = serde_json::from_value(config).expect("a configuration");
    NatsSink::new("events", &config, &Found::default()).expect("a sink")
}

/// What becomes of an event at a broker that behaves like this: it waits, for a reason with these words.
async fn waits(because: &str, behave: impl AsyncFnOnce(Talk)) {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let event = event(1);
    let (outcome, ()) = tokio::join!(sink.deliver(&event), async { behave(rogue.meet().await).await });
    match outcome {
        Err(SinkError::Down(words)) => assert!(words.contains(because), "{words}"),
        other => panic!("expected that it waits, found {other:?}"),
    }
}

#[tokio::test]
async fn an_endless_introduction_is_not_listened_to() {
    waits("a line of more than", async |mut talk: Talk| {
        talk.say("INFO {\"server_id\":\"").await;
        talk.hung_up_on_after(LINE_BYTES_MAX, "xxxxxxxxxxxxxxxx").await;
    })
    .await;
}

#[tokio::test]
async fn an_endless_line_after_the_login_is_not_listened_to() {
    for begun in ["PI", "MSG _INBOX.", "-ERR '", "+OK "] {
        waits("a line of more than", async |mut talk: Talk| {
            talk.let_in().await;
            talk.say(begun).await;
            talk.hung_up_on_after(LINE_BYTES_MAX, "xxxxxxxxxxxxxxxx").await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_huge_message_is_known_by_its_announcement() {
    for size in [MESSAGE_BYTES_MAX + 1, 9_000_000_000] {
        waits(&format!("a message of {size} bytes"), async |mut talk: Talk| {
            talk.let_in().await;
            let reply = talk.asked_for_the_stream().await;
            talk.say(&format!("MSG {reply} 1 {size}\r\n")).await;
            talk.hung_up_on_after(0, "xxxxxxxxxxxxxxxx").await;
        })
        .await;
    }
}

/// Many answers may be waited for at once, so each of them is small.
#[tokio::test]
async fn an_acknowledgement_as_large_as_a_message_is_not_kept() {
    waits("it answered with 100000 bytes, expected at most 4096", async |mut talk: Talk| {
        talk.let_in().await;
        talk.has_the_stream().await;
        let reply = talk.published().await.reply;
        talk.answer(&reply, &" ".repeat(100_000)).await;
    })
    .await;
}

#[tokio::test]
async fn what_nobody_asked_for_is_listened_to_for_a_while_only() {
    for unasked in [
        "MSG somewhere.else 1 2\r\nhi\r\n",
        "MSG _INBOX.7 1 2\r\nhi\r\n",
        "INFO {}\r\n",
        "+OK\r\n",
        "PONG\r\n",
    ] {
        waits("that nobody asked for", async |mut talk: Talk| {
            talk.let_in().await;
            talk.hung_up_on_after(1_000 * unasked.len(), unasked).await;
        })
        .await;
    }
}

/// Nor before the login is through.
#[tokio::test]
async fn a_broker_that_never_comes_to_the_point_is_left() {
    for unasked in ["INFO {}\r\n", "+OK\r\n"] {
        waits("that nobody asked for", async |mut talk: Talk| {
            talk.introduce("{}").await;
            talk.hung_up_on_after(1_000 * unasked.len(), unasked).await;
        })
        .await;
    }
}

/// It does not read our answers either: neither they nor its questions pile up.
#[tokio::test]
async fn a_broker_that_asks_all_the_time_whether_we_are_there_is_left() {
    waits("that nobody asked for", async |mut talk: Talk| {
        talk.let_in().await;
        talk.hung_up_on_after(1_000 * 6, "PING\r\n").await;
    })
    .await;
}

/// From here on time passes as soon as everybody waits.
fn let_time_pass() {
    tokio::time::pause();
}

#[tokio::test]
async fn a_broker_that_says_nothing_is_not_waited_for() {
    waits("not connected within 5 s", async |mut talk: Talk| {
        let_time_pass();
        talk.ended().await;
    })
    .await;
}

#[tokio::test]
async fn a_broker_that_does_not_say_whether_we_are_let_in_is_not_waited_for() {
    waits("not connected within 5 s", async |mut talk: Talk| {
        talk.introduce("{}").await;
        assert!(talk.line().await.starts_with("CONNECT "));
        let_time_pass();
        talk.ended().await;
    })
    .await;
}

#[tokio::test]
async fn an_acknowledgement_that_stops_in_the_middle_is_not_waited_for() {
    waits("it did not answer within 5 s", async |mut talk: Talk| {
        talk.let_in().await;
        talk.has_the_stream().await;
        let reply = talk.published().await.reply;
        talk.say(&format!("MSG {reply} 1 30\r\n{{\"stream\":\"STAK")).await;
        let_time_pass();
        // That it is hung up on is the end of it: nothing is left that could be taken for the rest.
        talk.ended().await;
    })
    .await;
}

/// A broker that takes nothing: what is written to it does not wait for ever.
#[tokio::test]
async fn a_broker_that_does_not_read_is_not_waited_for() {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let mut large = event(1);
    large.data = json!({ "text": "x".repeat(FLOOD_BYTES_MAX) });
    let behave = async {
        let mut talk = rogue.meet().await;
        talk.let_in().await;
        talk.has_the_stream().await;
        assert!(talk.line().await.starts_with("HPUB "));
        let_time_pass();
        // It stays there, and does nothing.
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = sink.deliver(&large) => outcome,
        () = behave => unreachable!(),
    };
    let Err(SinkError::Down(words)) = outcome else { panic!("{outcome:?}") };
    assert!(words.contains("did not take what was sent to it within 10 s"), "{words}");
}

#[tokio::test]
async fn words_in_the_clear_before_tls_are_nobodys() {
    waits("it said more in the clear than who it is", async |mut talk: Talk| {
        talk.say("INFO {\"tls_required\":true}\r\nPONG\r\n").await;
        talk.ended().await;
    })
    .await;
}

#[tokio::test]
async fn what_a_broker_has_against_us_is_said_at_once() {
    waits("it says: Permissions Violation for Publish", async |mut talk: Talk| {
        talk.let_in().await;
        talk.has_the_stream().await;
        talk.published().await;
        talk.say("-ERR 'Permissions Violation for Publish to \"x\"'\r\n").await;
        talk.ended().await;
    })
    .await;
}

/// No event is to blame for it.
#[tokio::test]
async fn a_broker_that_takes_next_to_nothing_makes_everything_wait() {
    waits("takes messages of 10 at most", async |mut talk: Talk| {
        talk.introduce("{\"max_payload\":10}").await;
        assert!(talk.line().await.starts_with("CONNECT {"));
        talk.say("INFO {}\r\nPONG\r\n").await;
        // It is not there, and has to be made.
        while !talk.line().await.starts_with("SUB ") {}
        let reply = talk.asked_for_the_stream().await;
        talk.answer(&reply, r#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#)
            .await;
    })
    .await;
}

/// The first is acknowledged after the last was sent; whose answer it is does not depend on when it comes.
#[tokio::test]
async fn all_are_sent_in_order_before_the_first_is_acknowledged() {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let events: Vec<Event> = (1..=3).map(event).collect();
    let events: Vec<&Event> = events.iter().collect();
    let (outcomes, talk) = tokio::join!(sink.deliver_all(&events), async {
        let mut talk = rogue.meet().await;
        talk.let_in().await;
        talk.has_the_stream().await;
        let mut replies = Vec::new();
        for event in &events {
            let published = talk.published().await;
            assert!(published.text.contains(&format!("Nats-Msg-Id: {}\r\n", event.id)), "{}", published.text);
            replies.push(published.reply);
        }
        let taken = r#"{"stream":"STAKEOUT","seq":7}"#;
        let refused = r#"{"error":{"code":400,"err_code":10054,"description":"too large"}}"#;
        for (reply, answer) in replies.iter().zip([taken, refused, taken]).rev() {
            talk.answer(reply, answer).await;
        }
        talk
    });
    assert!(
        matches!(&outcomes[..], [Ok(()), Err(SinkError::Refused(words)), Ok(())] if words.contains("too large")),
        "{outcomes:?}"
    );
    drop(talk);
}

/// When one is answered with what stops them all, nobody waits for the answers to the others; but they are owed still.
#[tokio::test]
async fn a_broker_that_owes_too_many_answers_is_left() {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let events: Vec<Event> = (1..=500).map(event).collect();
    let events: Vec<&Event> = events.iter().collect();
    let full = r#"{"error":{"code":503,"err_code":10077,"description":"full"}}"#;
    let deliver = async {
        for because in ["full", "full", "it owes 1000 answers"] {
            let outcomes = sink.deliver_all(&events).await;
            assert!(
                matches!(&outcomes[..], [Err(SinkError::Down(words))] if words.contains(because)),
                "{because}: {outcomes:?}"
            );
        }
    };
    let behave = async {
        let mut talk = rogue.meet().await;
        talk.let_in().await;
        talk.has_the_stream().await;
        for _ in 0..2 {
            let reply = talk.published().await.reply;
            for _ in 1..events.len() {
                talk.published().await;
            }
            talk.answer(&reply, full).await;
        }
        talk.ended().await;
    };
    tokio::join!(deliver, behave);
}

#[tokio::test]
async fn an_idle_connection_answers_and_hears_news_and_ends_with_its_sink() {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let (event, mut talk) = (event(1), None);
    let (outcome, ()) = tokio::join!(sink.deliver(&event), async {
        let talk = talk.insert(rogue.meet().await);
        talk.let_in().await;
        talk.has_the_stream().await;
        let reply = talk.published().await.reply;
        talk.answer(&reply, r#"{"stream":"STAKEOUT","seq":1}"#).await;
    });
    outcome.expect("taken");
    let mut talk = talk.expect("they met");
    talk.say("INFO {\"max_payload\":10}\r\nPING\r\n").await;
    assert_eq!(talk.line().await, "PONG", "nobody delivers anything");
    let outcome = sink.deliver(&event).await;
    assert!(
        matches!(&outcome, Err(SinkError::Refused(words)) if words.contains("10 at most")),
        "{outcome:?}"
    );
    drop(sink);
    talk.ended().await;
}

/// Half a message is followed by nothing: the next one goes over another connection.
#[tokio::test]
async fn a_delivery_that_is_given_up_leaves_no_half_message_behind() {
    let rogue = Rogue::new().await;
    let sink = sink(&rogue);
    let mut large = event(1);
    large.data = json!({ "text": "x".repeat(FLOOD_BYTES_MAX) });
    let mut talk = tokio::select! {
        biased;
        talk = async {
            let mut talk = rogue.meet().await;
            talk.let_in().await;
            talk.has_the_stream().await;
            assert!(talk.line().await.starts_with("HPUB "));
            talk
        } => talk,
        outcome = sink.deliver(&large) => panic!("nobody reads it all: {outcome:?}"),
    };
    let outcome = sink.deliver(&event(2)).await;
    let Err(SinkError::Down(words)) = outcome else { panic!("{outcome:?}") };
    assert!(words.contains("in part only"), "{words}");
    talk.ended().await;
    let next = event(3);
    let (outcome, ()) = tokio::join!(sink.deliver(&next), async {
        let mut talk = rogue.meet().await;
        talk.let_in().await;
        let reply = talk.published().await.reply;
        talk.answer(&reply, r#"{"stream":"STAKEOUT","seq":1}"#).await;
    });
    outcome.expect("taken");
}
