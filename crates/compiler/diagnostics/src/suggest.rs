//! Suggestion of the known name that an unknown one probably stands for.

/// Longer texts are not compared: no name is so long, but input may be.
const LONGEST: usize = 200;

/// The candidate nearest to `name`, if one is near enough to be meant: about a third of
/// its characters differ at most. Of equally near ones the first counts.
#[must_use]
pub fn nearest<'n>(name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (name.chars().count() + 1) / 3;
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .filter_map(|candidate| {
            distance(name, candidate, allowed).map(|distance| (distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insertion, deletion, replacement, exchange of neighbours) from one name to the
/// other; a change of case alone costs one in all. `None` if it takes more than `allowed`,
/// or a text has more than 200 bytes.
#[must_use]
pub fn distance(left: &str, right: &str, allowed: usize) -> Option<usize> {
    if left == right {
        return Some(0);
    }
    if left.len() > LONGEST || right.len() > LONGEST {
        return None;
    }
    let case = left.eq_ignore_ascii_case(right).then_some(1);
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > allowed {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        row.push(i + 1);
        for (j, b) in right.iter().enumerate() {
            let replaced = above[j] + usize::from(a != b);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    let edits = above[right.len()];
    let edits = case.map_or(edits, |case| edits.min(case));
    (edits <= allowed).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["destination", "source", "ttl"];
        assert_eq!(nearest("destnation", names), Some("destination"));
        assert_eq!(nearest("tl", names), Some("ttl"));
        assert_eq!(nearest("SOURCE", names), Some("source"));
        assert_eq!(nearest("checksum", names), None);
        assert_eq!(nearest("ttl", ["ttl"]), None);
        assert_eq!(nearest("u", ["x", "y"]), None);
    }

    #[test]
    fn neighbours_that_changed_places_are_one_edit() {
        assert_eq!(distance("dorp", "drop", 1), Some(1));
        assert_eq!(distance("hti", "hit", 1), Some(1));
        assert_eq!(distance("abcd", "badc", 2), Some(2));
        assert_eq!(distance("abcd", "dcba", 2), None);
        assert_eq!(distance("", "ab", 2), Some(2));
    }

    #[test]
    fn very_long_names_are_not_compared() {
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(nearest(&long, [format!("{long}x").as_str()]), None);
    }
}
