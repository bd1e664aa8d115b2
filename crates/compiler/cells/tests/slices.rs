//! Slices of the shipped applications that compute keys of frames: which have one, and the tables
//! that a key depends on.

use stateplane_cells::KeySlice;
use stateplane_ir::passes::{Whole, guard, optimise};

fn slice(app: &str) -> Option<KeySlice> {
    let path = format!("apps/{app}.p4");
    let program = stateplane_compile::shipped(&path).program();
    let mut program = program.unwrap_or_else(|refused| panic!("{app}: {refused}"));
    optimise(&mut program);
    guard(&mut program, Whole::Words);
    let plan = stateplane_cells::locks(&program);
    let slice = stateplane_cells::key_slice(&program, &plan)?;
    stateplane_ir::verify(&slice.program).unwrap_or_else(|broken| panic!("{app}: {broken:?}"));
    Some(slice)
}

#[test]
fn keys_of_shipped_applications_follow_from_frames_and_entries() {
    let in_library = ["replication_identity", "replication_shards"];
    for (app, own) in [
        ("counter/counter", &[][..]),
        ("firewall/firewall", &["interfaces"]),
        ("key-value/key_value", &["services"]),
        ("load-balancer/load_balancer", &["services"]),
        ("nat/nat", &["interfaces", "public_addresses"]),
        (
            "serving-gateway/serving_gateway",
            &["gateway_addresses", "controllers"],
        ),
    ] {
        let slice = slice(app).unwrap_or_else(|| panic!("{app} has no slice"));
        let applied = slice.applied.iter();
        let names = applied.map(|id| slice.program.tables[id.index()].name.as_str());
        // Without the names of the controls around the tables.
        let mut names: Vec<&str> = names.filter_map(|it| it.rsplit('.').next()).collect();
        names.retain(|it| !in_library.contains(it));
        let mut own = own.to_vec();
        own.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, own, "{app}");
    }
}

#[test]
fn applications_whose_first_lock_is_for_all_packets_have_none() {
    for app in ["heavy-hitter/heavy_hitter", "syn-defence/syn_defence"] {
        assert_eq!(slice(app), None, "{app}");
    }
}
