//! Faults: repeatable, switchable by rate and by script, each as announced.

use stakeout_sim::resy::{Fault, Faults, Incident, Reply, outages};

use super::*;

fn market() -> Upstream {
    upstream(MarketConfig::new(1))
}

fn bucket(upstream: &Upstream) -> Bucket {
    evening(date(3, upstream.market()))
}

fn replies(upstream: &Upstream, count: i64) -> Vec<Reply> {
    let (start, request) = (upstream.market().config().start, body(bucket(upstream), 2, 1));
    let asked = Asked { path: PATH, headers: &headers(), body: &request };
    (0..count).map(|n| upstream.answer(asked, start + Span::mins(n))).collect()
}

fn only(fault: Fault) -> Vec<Reply> {
    let upstream = market();
    upstream.set_faults(Faults::none(3).with(fault, 1.0));
    let replies = replies(&upstream, 60);
    assert_eq!(upstream.faulted(), [(fault, 60)].into());
    replies
}

fn answers(fault: Fault) -> Vec<Answer> {
    let whole = |reply| match reply {
        Reply::Answer(answer) => answer,
        other => panic!("{fault:?} gave {other:?}"),
    };
    only(fault).into_iter().map(whole).collect()
}

/// What each answer with that fault finds, next to what an honest one does.
fn pairs(fault: Fault) -> Vec<(Found, Found)> {
    let upstream = market();
    let (start, request) = (upstream.market().config().start, body(bucket(&upstream), 2, 1));
    let found = |answer: &Answer| {
        let mut found = Found::default();
        add(&mut found, &parse(answer));
        found
    };
    let pair = |(n, answer): (i64, Answer)| {
        (found(&answer), found(&ask(&upstream, &request, start + Span::mins(n))))
    };
    (0..).zip(answers(fault)).map(pair).collect()
}

fn retry_hint(answer: &Answer) -> Option<&str> {
    answer.headers.iter().find(|(name, _)| name == "Retry-After").map(|(_, value)| value.as_str())
}

#[test]
fn a_run_with_faults_can_be_repeated() {
    let run = |seed| {
        let upstream = market();
        upstream.set_faults(Faults::each(seed, 0.03));
        replies(&upstream, 200)
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

#[test]
fn refusals_have_their_status() {
    for (fault, status) in [
        (Fault::Redirect, 302),
        (Fault::Unauthorized, 401),
        (Fault::Forbidden, 403),
        (Fault::TooMany, 429),
        (Fault::ServerError, 500),
        (Fault::Unavailable, 503),
    ] {
        assert!(answers(fault).iter().all(|answer| answer.status == status), "{fault:?}");
    }
    let location =
        |answer: &Answer| answer.headers.iter().any(|(n, v)| n == "Location" && v.contains("login"));
    assert!(answers(Fault::Redirect).iter().all(location));
    let too_many = answers(Fault::TooMany);
    let hints: Vec<Option<&str>> = too_many.iter().map(retry_hint).collect();
    assert!(hints.contains(&None));
    assert!(hints.iter().flatten().any(|hint| hint.parse::<u32>().is_ok()));
    assert!(hints.iter().flatten().any(|hint| hint.ends_with(" GMT")));
}

#[test]
fn transport_faults_carry_no_whole_answer() {
    assert!(only(Fault::Reset).iter().all(|reply| *reply == Reply::Reset));
    assert!(only(Fault::Timeout).iter().all(|reply| *reply == Reply::Timeout));
    for reply in only(Fault::Truncated) {
        let Reply::Truncated { answer, sent } = reply else { panic!("expected a torn body, got {reply:?}") };
        assert!(sent > 0 && sent < answer.body.len());
    }
}

#[test]
fn bodies_that_are_not_what_they_should_be() {
    for answer in answers(Fault::Malformed) {
        assert_eq!(answer.status, 200);
        assert!(serde_json::from_slice::<Value>(&answer.body).is_err());
    }
    for answer in answers(Fault::LoginPage) {
        assert!(answer.status == 200 && answer.body.starts_with(b"<!doctype html>"));
    }
    for answer in answers(Fault::Empty) {
        let page = parse(&answer);
        assert_eq!((&page["meta"]["total"], &page["search"]["hits"]), (&json!(0), &json!([])));
    }
}

#[test]
fn pages_that_lie_about_their_venues() {
    for (found, honest) in pairs(Fault::NoSlots) {
        assert!(found.slots.is_empty() && !honest.slots.is_empty());
        assert_eq!((found.hits, found.totals), (honest.hits, honest.totals));
    }
    for (found, honest) in pairs(Fault::ShortPage) {
        assert!(found.hits < honest.hits && found.totals == honest.totals);
    }
    for (found, honest) in pairs(Fault::OtherTotal) {
        assert!(found.totals > honest.totals && found.slots == honest.slots);
    }
    let shifted = pairs(Fault::Shifted);
    assert!(shifted.iter().any(|(found, honest)| found.slots != honest.slots));
    assert!(shifted.iter().all(|(found, honest)| found.totals == honest.totals));
    let old = pairs(Fault::Older);
    assert!(old.iter().any(|(found, honest)| found != honest), "tables moved meanwhile");
}

#[test]
fn other_words_for_the_same() {
    for fault in [Fault::TimeDrift, Fault::IdDrift] {
        assert!(fault.is_harmless());
        assert!(pairs(fault).iter().all(|(found, honest)| found == honest), "{fault:?}");
    }
    let text = |answer: &Answer| String::from_utf8(answer.body.to_vec()).expect("text");
    let drifted: Vec<String> = answers(Fault::TimeDrift).iter().map(text).collect();
    let with_t = drifted.iter().filter(|text| text.contains("\"start\":\"2026-02-28T")).count();
    let short = drifted.iter().filter(|text| text.contains(":30\",\"end\"")).count();
    assert!(
        (1..60).contains(&with_t) && (1..60).contains(&short),
        "{with_t} with T, {short} without seconds"
    );
}

#[test]
fn ids_that_are_missing_or_anothers() {
    let (mut missing, mut double) = (0, 0);
    for answer in answers(Fault::BadIds) {
        let page = parse(&answer);
        let ids: Vec<Option<u64>> = page["search"]["hits"].as_array().expect("hits").iter().map(id).collect();
        let distinct: BTreeSet<&Option<u64>> = ids.iter().collect();
        missing += usize::from(ids.contains(&None));
        double += usize::from(distinct.len() < ids.len());
    }
    assert_eq!(missing + double, 60);
    assert!(missing > 10 && double > 10);
}

#[test]
fn an_incident_befalls_its_bucket_page_and_time_alone() {
    let upstream = market();
    let start = upstream.market().config().start;
    let (own, other) = (bucket(&upstream), evening(date(4, upstream.market())));
    let (from, until) = (start + Span::mins(10), start + Span::mins(14));
    upstream.set_incidents(vec![Incident::new(Fault::ServerError, from, until).of(own).on_page(2)]);
    let status = |bucket, page, now| {
        let request = body(bucket, 2, page);
        match upstream.answer_and_tell(Asked { path: PATH, headers: &headers(), body: &request }, now) {
            (Reply::Answer(answer), fault) => {
                assert_eq!(fault, (answer.status == 500).then_some(Fault::ServerError));
                answer.status
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status(own, 2, from), 500);
    assert_eq!(status(own, 2, until - Span::us(1)), 500);
    assert_eq!([status(own, 1, from), status(other, 2, from)], [200, 200]);
    assert_eq!([status(own, 2, from - Span::us(1)), status(own, 2, until)], [200, 200]);
}

#[test]
fn outages_answer_empty_for_minutes_and_then_it_goes_on() {
    let upstream = market();
    let (start, span) = (upstream.market().config().start, upstream.market().config().span);
    let script = outages(5, start, start + span, 4.0);
    assert_eq!(script, outages(5, start, start + span, 4.0));
    assert!((6..=20).contains(&script.len()), "{} in three days", script.len());
    assert_eq!(outages(5, start, start + span, 0.0), []);
    upstream.set_incidents(script.clone());
    let request = body(bucket(&upstream), 2, 1);
    let slots = |now| match upstream.answer(Asked { path: PATH, headers: &headers(), body: &request }, now) {
        Reply::Answer(answer) => parse(&answer).to_string().matches("\"start\"").count(),
        other => panic!("{other:?}"),
    };
    for outage in script {
        assert!((Span::mins(1)..=Span::mins(8)).contains(&(outage.until - outage.from)));
        assert_eq!([slots(outage.from), slots(outage.until - Span::us(1))], [0, 0]);
        assert!(slots(outage.from - Span::us(1)) > 50 && slots(outage.until) > 50);
    }
}

#[test]
fn a_request_must_be_right() {
    let upstream = market();
    let (now, good) = (upstream.market().config().start, body(bucket(&upstream), 2, 1));
    let status = |path: &str, without: &str, body: &[u8]| {
        let headers: Vec<_> = headers().into_iter().filter(|(name, _)| name != without).collect();
        upstream.honest(Asked { path, headers: &headers, body }, now).status
    };
    assert_eq!(status(PATH, "", &good), 200);
    assert_eq!(status(PATH, "User-Agent", &good), 500);
    assert_eq!(status(PATH, "Authorization", &good), 401);
    assert_eq!(status("/4/find", "", &good), 404);
    for bad in [
        "{",
        "{}",
        r#"{"slot_filter":{"day":"2026-02-30","party_size":2}}"#,
        r#"{"slot_filter":{"day":"2026-02-28","party_size":0}}"#,
        r#"{"slot_filter":{"day":"2026-02-28","party_size":2,"time_filter":"late"}}"#,
        r#"{"slot_filter":{"day":"2026-02-28","party_size":2},"geo":{"bounding_box":[1,2]}}"#,
    ] {
        assert_eq!(status(PATH, "", bad.as_bytes()), 400, "{bad}");
    }
}
