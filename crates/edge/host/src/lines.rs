//! Lines of a TOML file that set keys, for messages.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// Lines of keys, by their path: `replication.class.0.state_length`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines(BTreeMap<String, u32>);

impl Lines {
    /// The lines of the keys of `text`; none if it is not TOML.
    pub(crate) fn of(text: &str) -> Lines {
        let mut lines = Lines::default();
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        if let Ok(table) = DeTable::parse(text) {
            lines.add_table(table.get_ref(), "", &ends);
        }
        lines
    }

    fn add_table(&mut self, table: &DeTable<'_>, path: &str, ends: &[usize]) {
        for (key, value) in table {
            let path = join(path, key.get_ref());
            self.add(&path, key.span().start, value.get_ref(), ends);
        }
    }

    fn add(&mut self, path: &str, start: usize, value: &DeValue<'_>, ends: &[usize]) {
        let line = 1 + ends.partition_point(|end| *end < start);
        self.0.insert(path.to_owned(), line as u32);
        match value {
            DeValue::Table(table) => self.add_table(table, path, ends),
            DeValue::Array(array) => {
                for (at, element) in array.iter().enumerate() {
                    let start = element.span().start;
                    self.add(&join(path, &at.to_string()), start, element.get_ref(), ends);
                }
            }
            _ => {}
        }
    }

    /// The line that sets the key at `path`, if one does.
    pub(crate) fn line(&self, path: &str) -> Option<u32> {
        self.0.get(path).copied()
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn keys_have_the_lines_that_set_them() {
        let text = "a = 1\n[replication]\nshards = 4\nheads = [\n  { address = \"x\" },\n  { address = \"y\" },\n]\n\n[[replication.class]]\nid = 1\n[[replication.class]]\nid = 2\n";
        let lines = Lines::of(text);
        for (path, line) in [
            ("a", 1),
            ("replication.shards", 3),
            ("replication.heads.1.address", 6),
            ("replication.class.0.id", 10),
            ("replication.class.1.id", 12),
        ] {
            assert_eq!(lines.line(path), Some(line), "{path}");
        }
        assert_eq!(lines.line("b"), None);
        assert_eq!(Lines::of("a = ").line("a"), None);
    }
}
