//! Invented runners and people, and where meetings are held.

use crate::rng::SplitMix64;

/// Where a meeting is held: name, country as the upstream writes it, state, category.
pub(crate) type Venue = (&'static str, &'static str, &'static str, Category);

/// The racing code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// Gallops.
    Thoroughbred,
    /// Trotters and pacers.
    Harness,
    /// Dogs.
    Greyhound,
}

impl Category {
    /// `T`, `H` or `G`.
    pub fn letter(self) -> &'static str {
        match self {
            Category::Thoroughbred => "T",
            Category::Harness => "H",
            Category::Greyhound => "G",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Category::Thoroughbred => "Thoroughbred Horse Racing",
            Category::Harness => "Harness Horse Racing",
            Category::Greyhound => "Greyhound Racing",
        }
    }
}

use Category::{Greyhound as G, Harness as H, Thoroughbred as T};

/// Meetings that are watched: AU and NZ, gallops and harness, in the order they begin.
pub(crate) const WATCHED: [Venue; 12] = [
    ("Southern Downs", "NZ", "NZ", H),
    ("Tarawera Park", "NZ", "NZ", T),
    ("Coolabah", "AUS", "NSW", T),
    ("Ironbark Flat", "AUS", "QLD", T),
    ("Wattle Creek", "AUS", "NSW", H),
    ("Banksia Vale", "AUS", "VIC", T),
    ("Rimu Raceway", "NZ", "NZ", H),
    ("Lorikeet Bay", "AUS", "QLD", H),
    ("Bluegum Heights", "AUS", "SA", T),
    ("Goldfields Road", "AUS", "VIC", H),
    ("Sandplain", "AUS", "WA", T),
    ("Harbour Lights", "AUS", "NSW", H),
];

/// Meetings that a watcher of AU/NZ horses must leave out: dogs, and everyone else's horses.
pub(crate) const UNWATCHED: [Venue; 16] = [
    ("Kauri Stadium", "NZ", "NZ", G),
    ("Mallee Straight", "AUS", "VIC", G),
    ("Jacaranda Lane", "AUS", "QLD", G),
    ("Saltbush Park", "AUS", "SA", G),
    ("Foxglove Downs", "UK", "UK", T),
    ("Thistle Moor", "UK", "UK", G),
    ("Clover Hill", "IRE", "IRE", T),
    ("Peat Bog Stadium", "IRE", "IRE", G),
    ("Hickory Grove", "USA", "KY", T),
    ("Maple Mile", "USA", "NY", H),
    ("Cedar Bluffs", "CA", "ON", T),
    ("Val de Brume", "FR", "FR", T),
    ("Pre Vert", "FR", "FR", H),
    ("Sakura Hills", "JPN", "JPN", T),
    ("Anatolia", "TUR", "TUR", T),
    ("Fynbos Cape", "SAF", "SAF", T),
];

const FIRST: [&str; 28] = [
    "Amber",
    "Bold",
    "Copper",
    "Dancing",
    "Electric",
    "Frosty",
    "Golden",
    "Hidden",
    "Iron",
    "Jolly",
    "Kindly",
    "Lucky",
    "Midnight",
    "Noble",
    "Orchard",
    "Paper",
    "Quiet",
    "Restless",
    "Silver",
    "Thunder",
    "Upland",
    "Velvet",
    "Windy",
    "Yonder",
    "Zephyr",
    "Marble",
    "Saffron",
    "Don't Tell",
];
const SECOND: [&str; 26] = [
    "Anchor", "Bandit", "Comet", "Drummer", "Echo", "Fable", "Gambit", "Harbour", "Isle", "Jester",
    "Kestrel", "Lantern", "Mirage", "Nugget", "Oracle", "Piper", "Quest", "Ranger", "Sonnet", "Tempest",
    "Union", "Voyage", "Whisper", "Yarn", "Zenith", "O'Clock",
];
const GIVEN: [&str; 16] = [
    "Aroha", "Ben", "Carla", "Dev", "Ella", "Finn", "Grace", "Hemi", "Ines", "Jack", "Kiri", "Liam", "Mei",
    "Noah", "Olive", "Priya",
];
const FAMILY: [&str; 16] = [
    "Abbott", "Barlow", "Cheung", "Dunne", "Everett", "Faleolo", "Grey", "Hartigan", "Ihaka", "Joss",
    "Kemble", "Lowe", "Marsh", "Ngata", "O'Dowd", "Pryor",
];
const SPONSORS: [&str; 12] = [
    "Harbour Bakery",
    "Kowhai Nurseries",
    "Two Rivers Feed",
    "Main Street Motors",
    "Fernleaf Dairy",
    "Summit Tiles",
    "Tui Plumbing",
    "Railway Hotel",
    "Coastline Freight",
    "Old Mill Timber",
    "Paddock to Plate",
    "Lakeside Legal",
];

pub(crate) fn pick<'a>(rng: &mut SplitMix64, from: &[&'a str]) -> &'a str {
    from[rng.between(0, from.len() as u64 - 1) as usize]
}

/// A runner's name. Its number makes it unique within a race.
pub(crate) fn runner(rng: &mut SplitMix64, number: u32) -> String {
    let second = SECOND[(rng.between(0, 1) as usize * 13 + number as usize) % SECOND.len()];
    format!("{} {second}", pick(rng, &FIRST))
}

pub(crate) fn person(rng: &mut SplitMix64) -> String {
    format!("{} {}", pick(rng, &GIVEN), pick(rng, &FAMILY))
}

pub(crate) fn race(rng: &mut SplitMix64, category: Category, distance: u32) -> String {
    let kind = match category {
        Category::Thoroughbred => pick(rng, &["Handicap", "Maiden", "Rating 65", "2YO Plate"]),
        Category::Harness => pick(rng, &["Mobile Pace", "Handicap Trot", "Standing Start"]),
        Category::Greyhound => pick(rng, &["Sprint", "Dash"]),
    };
    format!("{} {kind} {distance}", pick(rng, &SPONSORS)).to_uppercase()
}
