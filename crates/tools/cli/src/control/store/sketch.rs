//! Sketches of switches in bounded-inconsistency mode, as the store has them.

use super::{SwitchArguments, columns, row};
use crate::control::ask::Deployment;
use crate::exit::{CommandError, Failure};
use clap::{Args, ValueEnum};
use serde_json::json;
use stateplane_host::store::view::{parse_bytes, parse_key};
use stateplane_store::{Merge, merge_snapshots, newest_snapshots};

/// Operation that merges the counts of several switches.
#[derive(Clone, Copy, ValueEnum)]
enum Function {
    /// Counters, count-min sketches
    Add,
    /// Bloom filters, bitmaps
    Or,
    /// Maxima
    Greatest,
}

/// Arguments of `ctl store sketch`: the arrays to read.
#[derive(Args)]
pub struct SketchArguments {
    /// Flow class of the arrays' elements
    #[arg(long)]
    class: u8,
    /// Number of keys that the arrays serve: SNAPSHOT_KEYS of the program
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    keys: u32,
    /// Number of elements of each key: SNAPSHOT_SLOTS of the program
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    slots: u32,
    /// Operation that merges the counts of several starts of switches
    #[arg(long, value_enum, default_value = "add")]
    merge: Function,
}

/// Shows each key's arrays, merged from the newest complete snapshot of each start of each
/// switch.
pub fn show(
    switch: &SwitchArguments,
    deployment: &Deployment,
    arguments: &SketchArguments,
) -> Result<(), CommandError> {
    let records = deployment.records(arguments.class)?;
    let records: Option<Vec<_>> = records
        .iter()
        .map(|record| Some((parse_key(&record.key)?, parse_bytes(&record.state)?)))
        .collect();
    let records = records.ok_or_else(|| {
        CommandError::new(Failure::System, "a server's records are not hexadecimal")
    })?;
    let merge = match arguments.merge {
        Function::Add => Merge::Add,
        Function::Or => Merge::Or,
        Function::Greatest => Merge::Greatest,
    };
    let mut rows = vec![row(&[
        &"key",
        &"starts",
        &"elements in use",
        &"first array's sum",
    ])];
    let mut values = Vec::new();
    for key in 0..arguments.keys {
        let slots = arguments.slots;
        let of_key = records.iter().map(|(key, state)| (key, &state[..]));
        let newest = newest_snapshots(of_key, key.saturating_mul(slots), slots);
        let elements = merge_snapshots(newest.values(), merge);
        let used = elements.iter().filter(|all| all.iter().any(|&it| it != 0));
        let first = elements.iter().filter_map(|all| all.first());
        let sum: u64 = first.map(|&value| u64::from(value)).sum();
        rows.push(row(&[&key, &newest.len(), &used.count(), &sum]));
        let starts = newest.iter().map(|(life, snapshot)| {
            json!({
                "switch": life.switch,
                "incarnation": life.incarnation,
                "snapshot": snapshot.number,
            })
        });
        let starts: Vec<_> = starts.collect();
        values.push(json!({ "key": key, "starts": starts, "elements": elements }));
    }
    switch.print(&json!(values), &columns(&rows));
    Ok(())
}
