//! Invented restaurants and where they are.

use crate::rng::SplitMix64;

const FIRST: [&str; 30] = [
    "Amber", "Bramble", "Cinder", "Dovetail", "Ember", "Fennel", "Gilded", "Hearth", "Indigo", "Juniper",
    "Kindling", "Larder", "Marrow", "Nettle", "Olive", "Parsley", "Quince", "Rosemary", "Saffron", "Tallow",
    "Umber", "Verbena", "Willow", "Yarrow", "Zinc", "Café", "Little", "Señora", "Uncle", "Lady",
];
const SECOND: [&str; 30] = [
    "Room",
    "Table",
    "& Salt",
    "Kitchen",
    "House",
    "Cellar",
    "Counter",
    "Garden",
    "Oven",
    "Pantry",
    "Corner",
    "& Daughters",
    "Spoon",
    "Lantern",
    "Alley",
    "Social",
    "Works",
    "Hall",
    "\"No. 9\"",
    "Grill",
    "Bodega",
    "Trattoria",
    "Izakaya",
    "Bistro",
    "Taqueria",
    "Noodle Bar",
    "Rooftop",
    "Yard",
    "Parlor",
    "Supper Club",
];
const NEIGHBORHOODS: [&str; 14] = [
    "Old Harbor",
    "Mill District",
    "Eastgate",
    "Riverside",
    "Chapel Hill",
    "Garment Row",
    "Northfield",
    "Canal Side",
    "Museum Park",
    "Lower Market",
    "West Yards",
    "Lantern Hill",
    "Foundry",
    // Some have none.
    "",
];
const CUISINES: [&str; 12] = [
    "American",
    "Italian",
    "Japanese",
    "French",
    "Mexican",
    "Steakhouse",
    "Seafood",
    "Thai",
    "Korean",
    "Indian",
    "Peruvian",
    "Italian & Pizza",
];
const ROOMS: [&str; 5] = ["Dining Room", "Bar", "Patio", "Chef's Counter", ""];

/// A venue's name; its number makes it unique where the words run out.
pub(crate) fn venue(rng: &mut SplitMix64, number: u32) -> String {
    let words = (FIRST.len() * SECOND.len()) as u32;
    let (first, second) = (pick(rng, &FIRST), pick(rng, &SECOND));
    match number / words {
        0 => format!("{first} {second}"),
        again => format!("{first} {second} {}", again + 1),
    }
}

pub(crate) fn neighborhood(rng: &mut SplitMix64) -> &'static str {
    pick(rng, &NEIGHBORHOODS)
}

pub(crate) fn cuisine(rng: &mut SplitMix64) -> &'static str {
    pick(rng, &CUISINES)
}

/// What a seating's room is called.
pub(crate) fn room(number: u8) -> &'static str {
    ROOMS[usize::from(number) % ROOMS.len()]
}

fn pick(rng: &mut SplitMix64, from: &[&'static str]) -> &'static str {
    from[rng.between(0, from.len() as u64 - 1) as usize]
}
