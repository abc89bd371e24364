//! Writing JSON as the upstream does: indented by two, keys in the order of its classes.

use std::fmt::{Display, Write};

use super::guid::Guid;

/// A document being written.
#[derive(Default)]
pub(crate) struct Doc {
    out: String,
    depth: usize,
}

/// The fields of an object being written.
pub(crate) struct Fields<'a> {
    doc: &'a mut Doc,
    empty: bool,
}

impl Doc {
    /// A document that is a list of what `each` writes.
    pub(crate) fn of<I: IntoIterator>(items: I, each: impl FnMut(&mut Doc, I::Item)) -> String {
        let mut doc = Doc { out: String::with_capacity(4 * 1024), depth: 0 };
        doc.list(items, each);
        doc.out
    }

    pub(crate) fn list<I: IntoIterator>(&mut self, items: I, mut each: impl FnMut(&mut Doc, I::Item)) {
        self.out.push('[');
        self.depth += 1;
        let mut empty = true;
        for item in items {
            if !empty {
                self.out.push(',');
            }
            empty = false;
            self.line();
            each(self, item);
        }
        self.depth -= 1;
        if !empty {
            self.line();
        }
        self.out.push(']');
    }

    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Fields<'_>)) {
        self.out.push('{');
        self.depth += 1;
        let mut fields = Fields { doc: self, empty: true };
        fill(&mut fields);
        let empty = fields.empty;
        self.depth -= 1;
        if !empty {
            self.line();
        }
        self.out.push('}');
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.out.push('"');
        for c in value.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                c if c < ' ' => self.put(format_args!("\\u{:04x}", u32::from(c))),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    pub(crate) fn guid(&mut self, id: Guid) {
        self.put(format_args!("\"{id}\""));
    }

    pub(crate) fn null(&mut self) {
        self.out.push_str("null");
    }

    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        self.out.write_fmt(what).expect("writing to a string cannot fail");
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', self.depth * 2));
    }
}

impl Fields<'_> {
    /// Writes the key and hands out the document for the value.
    pub(crate) fn key(&mut self, key: &str) -> &mut Doc {
        if !self.empty {
            self.doc.out.push(',');
        }
        self.empty = false;
        self.doc.line();
        self.doc.put(format_args!("\"{key}\": "));
        self.doc
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key).text(value);
        self
    }

    /// Anything whose `Display` is JSON: numbers, booleans.
    pub(crate) fn bare(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.key(key).put(format_args!("{value}"));
        self
    }

    pub(crate) fn null(&mut self, key: &str) -> &mut Self {
        self.key(key).null();
        self
    }

    pub(crate) fn guid(&mut self, key: &str, id: Guid) -> &mut Self {
        self.key(key).guid(id);
        self
    }

    /// What every object of the upstream ends with.
    pub(crate) fn ids(&mut self, id: Guid) {
        self.guid("ID", id).bare("ExternalID", 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_and_empty_lists_are_not() {
        let text = Doc::of([1, 2], |doc, n| {
            doc.object(|o| {
                o.bare("N", n).text("T", "a\"\u{0}").null("Z");
                o.key("L").list(std::iter::empty::<u8>(), |_, _| {});
            });
        });
        let one = |n| {
            format!(
                "  {{\n    \"N\": {n},\n    \"T\": \"a\\\"\\u0000\",\n    \"Z\": null,\n    \"L\": []\n  }}"
            )
        };
        assert_eq!(text, format!("[\n{},\n{}\n]", one(1), one(2)));
    }
}
