//! How long answers take. Run with `--release -- --ignored --nocapture`.

use std::time::Instant;

use stakeout_core::Span;
use stakeout_sim::nztab::Body;

use super::*;

#[test]
#[ignore = "a measurement, not a check"]
#[expect(clippy::print_stdout, reason = "a measurement is there to be read")]
fn a_day_of_answers() {
    for body in [Body::Lean, Body::Full] {
        let began = Instant::now();
        let upstream = upstream(&DayConfig { body, ..DayConfig::new(1, DATE) });
        println!("{body:?}: the day is planned in {:?}", began.elapsed());
        let began = Instant::now();
        let races = upstream.days()[0].truth();
        println!("{body:?}: 96 books in {:?}", began.elapsed());
        let (began, mut bytes, mut count) = (Instant::now(), 0, 0_u32);
        for race in &races {
            for n in 0..47 {
                bytes += get(&upstream, &event_path(&race.id), race.starts[0].1 + Span::secs(n * 60 - 2_400))
                    .body
                    .len();
                count += 1;
            }
        }
        println!(
            "{body:?}: {count} events, {:?} and {} bytes each",
            began.elapsed() / count,
            bytes / count as usize
        );
        let (began, now) = (Instant::now(), races[0].starts[0].1);
        let listing = get(&upstream, "/affiliates/v1/racing/meetings?limit=200", now).body.len();
        println!("a listing of {listing} bytes in {:?}", began.elapsed());
    }
}
