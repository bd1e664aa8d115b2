//! `${name}` in commands and configuration templates.

use std::collections::BTreeMap;

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
