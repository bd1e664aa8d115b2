//! Which known name an unknown one probably stands for.

/// The candidate nearest to `name`, if one is near enough to be meant: about a third of
/// its characters differ at most. Of equally near ones the first counts.
#[must_use]
pub fn nearest<'n>(name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (name.chars().count() + 1) / 3;
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insertion, deletion, replacement) from one name to the other; a change of case
/// alone costs one in all.
fn distance(left: &str, right: &str) -> usize {
    if left.eq_ignore_ascii_case(right) {
        return 1;
    }
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
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
}
