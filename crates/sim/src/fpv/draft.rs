//! From what happens when to what each file holds when.

use std::collections::BTreeMap;

use stakeout_core::Time;

use super::guid::Guid;
use super::line::{ALWAYS, Line};
use super::state::{Content, EventFile, File, Outcome, Pilot, Race, Round};

/// Everything one event's directory holds at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) event: EventFile,
    pub(crate) pilots: Vec<Pilot>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) races: BTreeMap<Guid, Race>,
    pub(crate) results: BTreeMap<Guid, Vec<Outcome>>,
}

impl Tree {
    fn content(&self, file: File) -> Content {
        let results =
            |list: Vec<Outcome>| if list.is_empty() { Content::Missing } else { Content::Results(list) };
        match file {
            File::Event => Content::Event(self.event.clone()),
            File::Pilots => Content::Pilots(self.pilots.clone()),
            File::Rounds => Content::Rounds(self.rounds.clone()),
            File::Results => results(self.results.values().flatten().copied().collect()),
            File::Race(race) => self.races.get(&race).cloned().map_or(Content::Missing, Content::Race),
            File::Result(race) => results(self.results.get(&race).cloned().unwrap_or_default()),
        }
    }
}

/// Edits of an event's files, given in any order.
pub(crate) struct Draft {
    tree: Tree,
    edits: Vec<Edit>,
}

struct Edit {
    at: Time,
    file: File,
    apply: Box<dyn FnOnce(&mut Tree)>,
}

impl Draft {
    /// An event that has always been as `tree` says.
    pub(crate) fn new(tree: Tree) -> Draft {
        Draft { tree, edits: Vec::new() }
    }

    /// At `at`, `file` is saved after that was done to it.
    pub(crate) fn save(&mut self, at: Time, file: File, apply: impl FnOnce(&mut Tree) + 'static) {
        self.edits.push(Edit { at, file, apply: Box::new(apply) });
    }

    /// A change of a race that is there.
    pub(crate) fn race(&mut self, at: Time, race: Guid, apply: impl FnOnce(&mut Race) + 'static) {
        self.save(at, File::Race(race), move |tree| {
            apply(tree.races.get_mut(&race).expect("a race is edited only while its file is there"));
        });
    }

    /// What each file holds when. Of edits at the same time, the first given comes first.
    pub(crate) fn finish(self) -> BTreeMap<File, Line<Content>> {
        let Draft { mut tree, mut edits } = self;
        let mut files: BTreeMap<File, Line<Content>> = BTreeMap::new();
        let always = [File::Event, File::Pilots, File::Rounds, File::Results];
        for file in always.into_iter().chain(tree.races.keys().map(|race| File::Race(*race))) {
            files.entry(file).or_default().push(ALWAYS, tree.content(file));
        }
        edits.sort_by_key(|edit| edit.at);
        for Edit { at, file, apply } in edits {
            apply(&mut tree);
            files.entry(file).or_default().push(at, tree.content(file));
            if matches!(file, File::Result(_)) {
                files.entry(File::Results).or_default().push(at, tree.content(File::Results));
            }
        }
        files
    }
}
