//! The program of the switch: Count-Min, instrumented.

use super::link::SWITCH;
use crate::error::TopError;
use stateplane_compile::text;
use stateplane_diagnostics::{Color, render_all};
use stateplane_native::{Native, Options};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Rates, Sync, TURN_US};
use stateplane_synchronise::{Plan, Selection, synchronise};
use std::fmt::Display;

const PROGRAM: &str = "apps/count-min/count_min.p4";

/// Columns of the sketch of flows are 2 to this: so few that intervals can be seen.
pub(super) const COLUMN_BITS: u32 = 10;

/// Columns of the sketches of partners are 2 to this.
pub(super) const PARTNER_BITS: u32 = 10;

/// Bits of the filter of pairs are 2 to this.
pub(super) const FILTER_BITS: u32 = 18;

/// SKETCH_SEED.
pub(super) const SEED: u64 = 0x5374_6174_6570_6c61;

/// 2⁻¹⁶ µs for a byte at 1 Mb/s.
const BYTE_TIME: u32 = 8 << 16;

fn failed(error: impl Display) -> TopError {
    TopError::Program(error.to_string())
}

/// A switch that runs it, with so many Mb/s for each group, and its groups.
pub(super) fn switch(budget_mbps: u32) -> Result<(Switch<Native>, Plan), TopError> {
    let macros = [
        ("COUNT_MIN_COLUMN_BITS", COLUMN_BITS.to_string()),
        ("COUNT_MIN_PARTNER_BITS", PARTNER_BITS.to_string()),
        ("COUNT_MIN_FILTER_BITS", FILTER_BITS.to_string()),
        ("SKETCH_SEED", format!("{SEED:#x}")),
    ];
    let macros: Vec<(String, String)> = macros
        .into_iter()
        .map(|(name, body)| (name.to_owned(), body))
        .collect();
    let source = stateplane_library::text(PROGRAM);
    let source = source.ok_or_else(|| failed(format!("{PROGRAM} is not built in")))?;
    // As a user's text: built-in files are included, not rewritten.
    let source = text(source).defines(macros.clone());
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
    let Some((synchronised, plan)) = made.program else {
        let said = render_all(&made.diagnostics, &made.sources, Color::Never);
        return Err(failed(said));
    };
    let program = text(synchronised).defines(macros).program();
    let engine = Native::new(program.map_err(failed)?, Options::default());
    let config = SwitchConfig {
        ports: vec![0, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine.map_err(failed)?, config).map_err(failed)?;
    let byte_time = (BYTE_TIME / budget_mbps.max(1)).max(1);
    let rates = Rates {
        byte_time,
        // Losses of this link do not come from too many bytes.
        slowest_byte_time: byte_time.saturating_mul(2),
        ..Rates::default()
    };
    let sync = Sync {
        switch: 1,
        address: SWITCH,
        turn_us: Some(TURN_US),
        rates: plan.groups.iter().map(|it| (it.group, rates)).collect(),
        read_only: false,
    };
    sync.apply(&mut switch, 1, true).map_err(failed)?;
    Ok((switch, plan))
}
