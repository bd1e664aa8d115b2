//! The tables of fields in `docs` are those of the crate.
//!
//! Behind a line `<!-- fields: TITLE -->` in a page stands the table of the layout of that
//! title. `UPDATE_GOLDEN=1 cargo test -p stateplane-wire --test docs` writes the tables anew.
//! Lines about what follows the fields may stand behind them. Where their place is a number,
//! their length is none.

use std::collections::BTreeSet;
use std::path::PathBuf;

use stateplane_wire::LAYOUTS;
use stateplane_wire::layout::Layout;

/// Layouts that others define.
const OF_OTHERS: [&str; 4] = ["Ethernet", "IPv4", "UDP", "TCP"];

/// True if `line` belongs to the table of `layout`, rather than to what follows its fields.
fn is_of_table(layout: &Layout, line: &str) -> bool {
    let mut cells = line.split('|').map(str::trim);
    if cells.next() != Some("") {
        return false;
    }
    let offset = cells.next().unwrap_or_default();
    let width = cells.next().unwrap_or_default();
    let has_number = width.parse::<usize>().is_ok();
    offset == "offset"
        || offset == "---"
        || offset
            .parse::<f32>()
            .is_ok_and(|offset| has_number || (offset as usize) < layout.bits() / 8)
}

/// `page` with the tables of the layouts that it names, and their titles.
fn with_tables(page: &str) -> (String, Vec<&'static str>) {
    let mut text = String::new();
    let mut titles = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let title = line.strip_prefix("<!-- fields: ");
        let Some(title) = title.and_then(|title| title.strip_suffix(" -->")) else {
            continue;
        };
        let layout = LAYOUTS.iter().find(|layout| layout.title == title);
        let layout = layout.unwrap_or_else(|| panic!("no layout has the title {title:?}"));
        titles.push(layout.title);
        while lines.next_if(|line| is_of_table(layout, line)).is_some() {}
        text.push_str(&layout.markdown());
    }
    (text, titles)
}

#[test]
fn rows_of_fields_that_are_no_more_go_and_what_follows_stays() {
    let layout = LAYOUTS.iter().find(|layout| layout.title == "chain entry");
    let table = layout.expect("the layout of an entry").markdown();
    let marker = "<!-- fields: chain entry -->\n";
    let follows = "| 24 | n | request | as the head received it |\n";
    let page = format!("{marker}{table}| 28 | 2 | gone | |\n{follows}");
    let (text, _) = with_tables(&page);
    assert_eq!(text, format!("{marker}{table}{follows}"));
}

#[test]
fn pages_have_the_tables_of_the_crate() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(folder).expect("the folder of pages") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).expect("a page");
        let (text, titles) = with_tables(&page);
        if std::env::var_os("UPDATE_GOLDEN").is_some() && text != page {
            std::fs::write(&path, &text).expect("the page is written");
        } else {
            for (found, expected) in page.lines().zip(text.lines()) {
                assert_eq!(found, expected, "{}", path.display());
            }
            assert_eq!(page.len(), text.len(), "{}", path.display());
        }
        for title in titles {
            assert!(found.insert(title), "{title:?} stands twice in docs");
        }
    }
    let ours = LAYOUTS.iter().map(|layout| layout.title);
    let ours: BTreeSet<_> = ours.filter(|title| !OF_OTHERS.contains(title)).collect();
    assert_eq!(found, ours, "each layout has its place in docs");
}
