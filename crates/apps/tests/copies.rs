//! `lab/nat` has files that a user runs as they are. Their facts of the NAT are those that its room
//! says.

use stateplane_apps::app;
use std::fs;
use std::path::Path;
use toml::{Table, Value};

fn read(path: &str) -> Table {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(path)).expect(path);
    text.replace("${id}", "1").parse().expect(path)
}

fn list<'t>(table: &'t Table, name: &str) -> &'t [Value] {
    let list = table.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

#[test]
fn the_demonstration_s_store_is_that_of_the_room() {
    let room = app("nat").expect("an application").room();
    let own: Table = room.store_file().parse().expect("TOML");
    let lab = read("lab/nat/store.toml");
    let section = |table: &Table| table["replication"].as_table().cloned().expect("a section");
    let (own, lab) = (section(&own), section(&lab));
    assert_eq!(lab["nat"], own["nat"]);
    assert_eq!(lab["shards"], Value::from(i64::from(room.shards)));
    let classes = list(&lab, "class");
    assert!(!classes.is_empty());
    for class in classes {
        assert!(list(&own, "class").contains(class), "{class}");
    }
}

#[test]
fn the_demonstration_s_switches_have_the_entries_of_the_room() {
    let own = read("apps/nat/switch.toml");
    let lab = read("lab/nat/switch.toml");
    let entries = list(&own, "entries");
    assert!(!entries.is_empty());
    for entry in entries {
        assert!(list(&lab, "entries").contains(entry), "{entry}");
    }
}
