//! The radio channels, which the upstream serves beside the event.

use super::guid::Guid;
use super::json::Doc;

/// Band, its letter, and the frequencies of its channels in MHz. Ids count through all of them.
const BANDS: [(&str, &str, [u32; 8]); 4] = [
    ("Fatshark", "F", [5740, 5760, 5780, 5800, 5820, 5840, 5860, 5880]),
    ("Raceband", "R", [5658, 5695, 5732, 5769, 5806, 5843, 5880, 5917]),
    ("A", "A", [5865, 5845, 5825, 5805, 5785, 5765, 5745, 5725]),
    ("B", "B", [5733, 5752, 5771, 5790, 5809, 5828, 5847, 5866]),
];

/// The colours of an event's channels, by their place in it.
pub(crate) const COLORS: [&str; 8] =
    ["#FF0000", "#0000FF", "#FFFF00", "#FF00FF", "#32F000", "#FFFFFF", "#00F0F0", "#FFA800"];

/// The channels an event uses, by place: Raceband, odd ones first so that neighbours are far apart.
pub(crate) fn channel(place: usize) -> Guid {
    const RACEBAND_FIRST: u32 = 9;
    const SPREAD: [u32; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
    Guid::channel(RACEBAND_FIRST + SPREAD[place % SPREAD.len()])
}

/// `Channels.json`.
pub(crate) fn body() -> String {
    let all =
        BANDS.iter().flat_map(|(band, short, mhz)| (1..).zip(mhz).map(move |(n, mhz)| (band, short, n, mhz)));
    Doc::of((1..).zip(all), |doc, (id, (band, short, number, mhz))| {
        doc.object(|o| {
            o.bare("Number", number).text("Band", band).text("ChannelPrefix", "\u{0}");
            o.bare("Frequency", mhz).null("DisplayName");
            o.ids(Guid::channel(id));
            o.text("ShortBand", short);
        });
    })
}
