//! `${name}` in commands and configuration templates.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Reads a configuration template. Of `FILE#TABLE`, the table `TABLE` of a TOML file, with its
/// name.
///
/// # Errors
/// Those of reading, and [`io::ErrorKind::InvalidData`] if the file is not TOML or lacks the
/// table.
pub fn read(path: &Path) -> io::Result<String> {
    let split = path.to_str().and_then(|path| path.rsplit_once('#'));
    let Some((file, table)) = split else {
        return std::fs::read_to_string(path);
    };
    let text = std::fs::read_to_string(file)?;
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let tables: toml::Table = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let content = tables.get(table).filter(|content| content.is_table());
    let content = content.ok_or_else(|| invalid(format!("there is no table [{table}]")))?;
    let named = toml::Table::from_iter([(table.to_owned(), content.clone())]);
    toml::to_string(&named).map_err(|error| invalid(error.to_string()))
}

/// Replaces every `${name}` by its value.
///
/// # Errors
/// A name without a value, and a `${` without `}`, with a text that says so.
pub fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let (name, behind) = after
            .split_once('}')
            .ok_or_else(|| "`${` without `}`".to_owned())?;
        let value = values.get(name).ok_or_else(|| {
            let known: Vec<_> = values.keys().map(String::as_str).collect();
            format!("`${{{name}}}` has no value; there are {}", known.join(", "))
        })?;
        filled.push_str(value);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> BTreeMap<String, String> {
        BTreeMap::from([("a".to_owned(), "1".to_owned())])
    }

    #[test]
    fn names_are_replaced() {
        assert_eq!(fill("x ${a}${a} $a", &values()).unwrap(), "x 11 $a");
    }

    #[test]
    fn a_table_of_a_file_is_a_template() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "b = 1\n[[store.c]]\nd = \"${a}\"\n").unwrap();
        let of = |name: &str| read(&folder.path().join(name));
        assert_eq!(of("a.toml#store").unwrap(), "[[store.c]]\nd = \"${a}\"\n");
        assert!(of("a.toml").unwrap().starts_with("b = 1"));
        let error = of("a.toml#switch").unwrap_err();
        assert!(error.to_string().contains("[switch]"), "{error}");
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(fill("${b}", &values()).unwrap_err().contains("`${b}`"));
        assert!(fill("${a", &values()).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_refused(text in "[${}a-c ]*") {
            let _ = fill(&text, &values());
        }
    }
}
