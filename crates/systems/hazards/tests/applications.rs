//! The table of the applications' cells in `docs/hazards.md`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-hazards --test applications` writes it anew.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use stateplane_compile::shipped;
use stateplane_hazards::{Cell, CellKey, Profile, cells};

/// Line in front of the table.
const MARK: &str = "<!-- cells of the applications -->\n\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The programs of the applications' rooms.
fn programs() -> BTreeSet<String> {
    let rooms = std::fs::read_dir(root().join("apps")).expect("the applications");
    let mut programs = BTreeSet::new();
    for room in rooms {
        let room = room.expect("a room");
        let Ok(text) = std::fs::read_to_string(room.path().join("app.toml")) else {
            continue;
        };
        let file: toml::Table = toml::from_str(&text).expect("a room's file");
        let program = file["program"].as_str().expect("a program");
        programs.insert(format!("apps/{}/{program}", room.file_name().display()));
    }
    programs
}

fn key(cell: &Cell) -> String {
    match &cell.key {
        CellKey::Constant => "all packets use the same elements".to_owned(),
        CellKey::One { .. } => "one index".to_owned(),
        CellKey::Several(indices) => format!("{} indices", indices.len()),
        CellKey::Dependent => "depends on the cell".to_owned(),
    }
}

fn row(program: &str) -> String {
    let ir = shipped(program).program_with_places().expect(program);
    let cells = cells(&ir, &Profile::default());
    let deepest = cells.iter().max_by_key(|cell| cell.depth);
    let name = program.strip_prefix("apps/").unwrap_or(program);
    let single = cells.iter().filter(|cell| cell.depth == 1).count();
    match deepest {
        None => format!("| `{name}` | 0 | | | |\n"),
        Some(deepest) => format!(
            "| `{name}` | {}, {single} of depth 1 | {} | {} | {} |\n",
            cells.len(),
            deepest.registers.len(),
            deepest.depth,
            key(deepest),
        ),
    }
}

#[test]
fn the_page_has_the_cells_of_all_applications() {
    let mut table = String::from(
        "| program | cells | registers of the deepest | its depth | its key |\n|---|---|---|---|---|\n",
    );
    for program in programs() {
        let _ = table.write_str(&row(&program));
    }
    let path = root().join("docs/hazards.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(MARK).expect("the table's mark");
    let (_, after) = rest.split_once("\n\n").expect("text behind the table");
    let expected = format!("{before}{MARK}{table}\n{after}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, expected).expect("written");
        return;
    }
    assert_eq!(page, expected);
}
