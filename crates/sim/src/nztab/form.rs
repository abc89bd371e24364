//! Padding of the realistic kind: runners' form, which makes up most of a real body and which nobody here reads.

use super::names;
use crate::json::{Object, list};
use crate::rng::SplitMix64;

/// What all runners' form takes in a full body, the favourite and the mover being shown twice.
const FORM_BYTES: usize = 172_000;

const SUMMARIES: [&str; 22] = [
    "first_up",
    "second_up",
    "third_up",
    "fourth_up",
    "track",
    "distance",
    "track_distance",
    "good",
    "soft",
    "heavy",
    "turf",
    "synthetic",
    "overall",
    "left_handed",
    "right_handed",
    "hurdle",
    "steeple",
    "fresh_30",
    "fresh_90",
    "weight_for_age",
    "slow",
    "firm",
];
const STIPES: [&str; 10] = [
    "Began awkwardly and settled at the rear of the field.",
    "Raced wide without cover throughout the middle stages.",
    "Was held up for clear running rounding the final bend.",
    "Had to be steadied when tightened for room near the 400m.",
    "Improved along the rail and finished strongly.",
    "Rider reported that the runner resented the track conditions.",
    "Underwent a veterinary examination which revealed no abnormality.",
    "Over-raced early and failed to run the distance out.",
    "Lugged in under pressure over the concluding stages.",
    "Was slow to jump and lost about two lengths at the start.",
];

/// How much form each of `runners` gets, so that bodies are alike in size however many run.
pub(crate) fn bytes_per_runner(runners: usize) -> usize {
    FORM_BYTES / (runners + 2)
}

/// Appends about `bytes` of form to an object that is begun and not ended.
pub(crate) fn append(rng: &mut SplitMix64, out: &mut String, bytes: usize) {
    let until = out.len() + bytes;
    let silk = "https://silks.example.invalid/events/racing";
    let mut o = Object::resume(out);
    o.text("foaling_date", "2019-10-13")
        .text("owners", "The Riverside Syndicate")
        .text("silk_colours", "White, green spots");
    o.text("silk_url_64x64", &format!("{silk}/{}_64x64.png", rng.next_u64()));
    o.text("silk_url_128x128", &format!("{silk}/{}_128x128.png", rng.next_u64()));
    o.text("sire", "Northern Sky")
        .text("dam", "Evening Tide")
        .text("breeding", "5 Northern Sky-Evening Tide");
    o.text("rating", "")
        .text("handicap_rating", "61")
        .text("win_p", "12%")
        .text("place_p", "38%")
        .bare("spr", 284);
    o.bare("horse_id", rng.between(100_000, 999_999)).raw("meta", "null").text("form_comment", STIPES[4]);
    for name in SUMMARIES {
        let starts = rng.between(0, 24);
        let wins = rng.between(0, starts / 3);
        let mut s = Object::begin(o.key(name));
        s.bare("number_of_starts", starts)
            .bare("number_of_wins", wins)
            .bare("number_of_placings", starts / 4);
        s.bare("number_of_seconds", starts / 6)
            .bare("number_of_thirds", starts / 7)
            .bare("winning_distance", wins * 1_200);
        s.end();
    }
    let starts = o.key("last_starts");
    let count = until.saturating_sub(starts.len()) / 920;
    list(starts, 0..count.max(1), |out, n| last_start(rng, out, n));
}

fn last_start(rng: &mut SplitMix64, out: &mut String, n: usize) {
    let mut o = Object::begin(out);
    let number = |rng: &mut SplitMix64, low, high| rng.between(low, high).to_string();
    o.text("barrier", &number(rng, 1, 14)).text("days_since", &(n * 17 + 9).to_string());
    o.text("distance", &number(rng, 1_000, 2_600)).text("finish", &number(rng, 1, 14));
    o.text("jockey", &names::person(rng)).text("limit_weight", "56.00").text("margin", &number(rng, 0, 12));
    o.text("number_of_runners", &number(rng, 6, 16)).text("class", "Rating 65 Benchmark").text("number", "9");
    o.text("prize_money", &number(rng, 9_000, 40_000));
    for place in ["winner", "second", "third"] {
        let number = rng.between(1, 24) as u32;
        o.text(place, &names::runner(rng, number));
    }
    o.text("starting_price", &format!("{}.{}0", rng.between(2, 60), rng.between(0, 9)));
    o.text("time_ran", &format!("1:{}.{}", rng.between(10, 59), rng.between(10, 99)));
    o.text("margin_1st_2nd", "Neck").text("margin_2nd_3rd", "1.5 Lengths").text("margin_3rd_4th", "");
    o.text("minimum_handicap", "54.00").text("gear", "Approved Plates, Lugging Bit, Blinkers");
    o.text("track", "RVSD").text("track_four_char", "RVSD").text("track_condition", "Good 4");
    o.text("weight_carried", &format!("{}.5", rng.between(52, 62)));
    o.text("date", &format!("{:02}/{:02}/2025", rng.between(1, 28), rng.between(1, 12)));
    o.text("last_600", &format!("0.3{}.{}", rng.between(3, 9), rng.between(10, 99)));
    o.text("track_surface", "Grass")
        .text("track_direction", "Left Handed")
        .text("run_rating", &number(rng, 40, 90));
    o.text("stipes", &format!("{} {}", names::pick(rng, &STIPES), names::pick(rng, &STIPES)));
    o.end();
}
