//! Differences between two texts, line by line.

use std::fmt::Write;

/// Equal lines shown around those that differ.
const CONTEXT: usize = 3;

/// Pairs of lines that are compared at most; beyond, all lines between the first and the
/// last difference count as changed.
const MAX_PAIRS: usize = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'t> {
    Both(&'t str),
    Old(&'t str),
    New(&'t str),
}

/// The differences as a unified diff of `name`; empty if there are none.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let lines = compare(&old, &new);
    let changed: Vec<usize> = (0..lines.len())
        .filter(|at| !matches!(lines[*at], Line::Both(_)))
        .collect();
    let mut out = String::new();
    if changed.is_empty() {
        return out;
    }
    // Writing to a string does not fail.
    let _ = writeln!(out, "--- {name}\n+++ {name} (formatted)");
    let mut next = 0;
    while next < changed.len() {
        let start = changed[next].saturating_sub(CONTEXT);
        let mut end = changed[next] + 1;
        while next < changed.len() && changed[next] <= end + 2 * CONTEXT {
            end = changed[next] + 1;
            next += 1;
        }
        let end = (end + CONTEXT).min(lines.len());
        hunk(&mut out, &lines, start, end);
    }
    out
}

fn hunk(out: &mut String, lines: &[Line<'_>], start: usize, end: usize) {
    let olds = |lines: &[Line<'_>]| {
        let is_old = |line: &&Line<'_>| !matches!(line, Line::New(_));
        lines.iter().filter(is_old).count()
    };
    let news = |lines: &[Line<'_>]| {
        let is_new = |line: &&Line<'_>| !matches!(line, Line::Old(_));
        lines.iter().filter(is_new).count()
    };
    let (before, shown) = (&lines[..start], &lines[start..end]);
    let range = |before: usize, count: usize| match count {
        0 => format!("{before},0"),
        _ => format!("{},{count}", before + 1),
    };
    let old_range = range(olds(before), olds(shown));
    let new_range = range(news(before), news(shown));
    // Writing to a string does not fail.
    let _ = writeln!(out, "@@ -{old_range} +{new_range} @@");
    for line in shown {
        let _ = match line {
            Line::Both(text) => writeln!(out, " {text}"),
            Line::Old(text) => writeln!(out, "-{text}"),
            Line::New(text) => writeln!(out, "+{text}"),
        };
    }
}

/// The lines of both texts, as many as possible shared.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let shared = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (head, old, new) = (&old[..shared], &old[shared..], &new[shared..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let shared = pairs.take_while(|(a, b)| a == b).count();
    let tail = &old[old.len() - shared..];
    let old = &old[..old.len() - shared];
    let new = &new[..new.len() - shared];
    let mut lines: Vec<Line<'t>> = head.iter().map(|line| Line::Both(line)).collect();
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        lines.extend(old.iter().map(|line| Line::Old(line)));
        lines.extend(new.iter().map(|line| Line::New(line)));
    } else {
        middle(old, new, &mut lines);
    }
    lines.extend(tail.iter().map(|line| Line::Both(line)));
    lines
}

/// Lines by a longest common subsequence.
fn middle<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<Line<'t>>) {
    // Element (i, j) is the length for what follows line i and line j.
    let columns = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * columns + j] = if old[i] == new[j] {
                lengths[(i + 1) * columns + j + 1] + 1
            } else {
                lengths[(i + 1) * columns + j].max(lengths[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Both(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && lengths[(i + 1) * columns + j] >= lengths[i * columns + j + 1]
        {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(unified("a", "1\n2\n", "1\n2\n"), "");
        assert_eq!(unified("a", "", ""), "");
    }

    #[test]
    fn differences_stand_in_their_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n";
        assert_eq!(
            unified("a.p4", old, new),
            "--- a.p4\n+++ a.p4 (formatted)\n\
             @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -13,3 +13,4 @@\n 13\n 14\n 15\n+16\n"
        );
        assert_eq!(
            unified("a", "", "1\n"),
            "--- a\n+++ a (formatted)\n@@ -0,0 +1,1 @@\n+1\n"
        );
    }

    #[test]
    fn what_is_common_is_kept() {
        let lines = compare(&["a", "b", "c", "d"], &["x", "b", "d", "y"]);
        assert_eq!(
            lines,
            [
                Line::Old("a"),
                Line::New("x"),
                Line::Both("b"),
                Line::Old("c"),
                Line::Both("d"),
                Line::New("y")
            ]
        );
    }
}
