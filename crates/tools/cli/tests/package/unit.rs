//! Units of systemd, as far as the tests need them.

use crate::support::repository;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A unit of `packaging/systemd`: keys and values of each section, in order.
pub struct Unit(Vec<(String, String, String)>);

impl Unit {
    /// The unit `stateplane-KIND@.service`.
    pub fn read(kind: &str) -> Unit {
        let name = format!("packaging/systemd/stateplane-{kind}@.service");
        let text = fs::read_to_string(repository().join(name)).unwrap();
        let mut section = "";
        let mut entries = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                section = name;
            } else if !line.is_empty() && !line.starts_with('#') {
                let (key, value) = line.split_once('=').expect(line);
                entries.push([section, key, value].map(str::to_owned).into());
            }
        }
        Unit(entries)
    }

    /// The last value of a key; it has to be there.
    pub fn value(&self, section: &str, key: &str) -> &str {
        let found = self.0.iter().rfind(|it| it.0 == section && it.1 == key);
        &found.unwrap_or_else(|| panic!("no {key} in [{section}]")).2
    }

    /// Words that the unit starts for an instance: `%i` and the like replaced, `${NAME}` by one
    /// word, `$NAME` by those of the value, as systemd.service(5) says under "Command lines".
    pub fn start(&self, instance: &str, values: &BTreeMap<String, String>) -> Vec<String> {
        let value = |name: &str| values.get(name).map_or("", String::as_str);
        let mut words = Vec::new();
        for word in self.value("Service", "ExecStart").split_whitespace() {
            let word = word
                .replace("%i", instance)
                .replace("%t", "/run")
                .replace("%S", "/var/lib");
            assert!(!word.contains('%'), "{word}");
            if let Some(name) = word.strip_prefix("${").and_then(|it| it.strip_suffix('}')) {
                words.push(value(name).to_owned());
            } else if let Some(name) = word.strip_prefix('$') {
                words.extend(value(name).split_whitespace().map(str::to_owned));
            } else {
                words.push(word);
            }
        }
        words
    }
}

/// The variables of a file of environment.
pub fn environment(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once('=').expect(line));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
