//! Programs of which an engine gets a view.

use super::programs::SWITCH;
use crate::error::EvalError;
use stateplane_diagnostics::{Color, render_all};
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::Engine as _;
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Rates, Sync};
use stateplane_synchronise::{Plan, Selection, synchronise};
use std::fmt::Display;

/// Ports of hosts.
pub(super) const HOSTS: [u16; 2] = [0, 1];

/// Macro with the values of a message, and that with the positions that are sent beyond what the
/// engine has.
const BATCH: &str = "SYNC_BATCH";
const WINDOW: &str = "SYNC_WINDOW";

/// Positions beyond what the engine has: as many as keep the link busy for some round trips, and no
/// more than a group has locations (`p4/lib/sync/state.p4`). Programs of small groups keep the number
/// that `stateplane sync` gives them.
const MOST_POSITIONS: u32 = 8_192;

/// Macros, with numbers as bodies.
pub(super) type Macros<'a> = &'a [(&'a str, u64)];

/// A program that `stateplane sync` has given a view.
pub(super) struct Viewed {
    name: String,
    compiled: Compiled,
    pub(super) plan: Plan,
    /// Most values of a message.
    pub(super) batch: u32,
}

/// The refusal of a program, or of a part of it.
pub(super) fn refused(what: &str, reason: impl Display) -> EvalError {
    EvalError::Refused {
        what: what.to_owned(),
        reason: reason.to_string(),
    }
}

/// The text of a program of `apps`.
///
/// # Errors
/// `EV003` if there is none of that path.
pub(super) fn shipped(path: &str) -> Result<&'static str, EvalError> {
    stateplane_library::text(path).ok_or_else(|| refused(path, "no such program is built in"))
}

fn named(macros: Macros<'_>) -> Vec<(String, String)> {
    let macros = macros.iter();
    macros
        .map(|(name, body)| ((*name).to_owned(), body.to_string()))
        .collect()
}

/// A program as it is, compiled.
///
/// # Errors
/// `EV003` with what the compiler says.
pub(super) fn plain(name: &str, text: &str, macros: Macros<'_>) -> Result<Compiled, EvalError> {
    let program = stateplane_compile::text(text).defines(named(macros));
    let program = program.program().map_err(|error| refused(name, error))?;
    Compiled::new(program).map_err(|error| refused(name, error))
}

/// A switch of a compiled program with ports to hosts and to the engine.
///
/// # Errors
/// `EV003` if the program does not suit.
pub(super) fn switch(name: &str, compiled: &Compiled) -> Result<Switch<Native>, EvalError> {
    let engine = compiled.engine(Options::default());
    let engine = engine.map_err(|error| refused(name, error))?;
    let config = SwitchConfig {
        ports: HOSTS.into_iter().chain([CONTROL_PORT]).collect(),
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).map_err(|error| refused(name, error))
}

impl Viewed {
    /// Instruments a program and compiles it; with names of registers these alone are in view,
    /// otherwise those that it annotates, or all.
    ///
    /// # Errors
    /// `EV003` with what the compiler says.
    pub(super) fn new(
        name: &str,
        text: &str,
        macros: Macros<'_>,
        registers: &[&str],
    ) -> Result<Self, EvalError> {
        let registers: Vec<String> = registers.iter().map(|it| (*it).to_owned()).collect();
        let selection = if registers.is_empty() {
            Selection::Annotated
        } else {
            Selection::Named(&registers)
        };
        let source = stateplane_compile::text(text).defines(named(macros));
        let (loader, options) = (source.loader(), source.options());
        let made = synchronise(loader, source.main_file(), options, selection);
        let Some((text, plan)) = made.program else {
            let said = render_all(&made.diagnostics, &made.sources, Color::Never);
            return Err(refused(name, said));
        };
        let batch = macros.iter().find(|(of, _)| *of == BATCH);
        let batch = batch.map_or(plan.batch, |(_, values)| *values as u32);
        let smallest = plan.groups.iter().map(|group| group.locations).min();
        let positions = smallest.unwrap_or(0).min(MOST_POSITIONS);
        let mut macros = named(macros);
        if positions > plan.window {
            macros.push((WINDOW.to_owned(), positions.to_string()));
        }
        let program = stateplane_compile::text(text).defines(macros).program();
        let program = program.map_err(|error| refused(name, error))?;
        Ok(Self {
            name: name.to_owned(),
            compiled: Compiled::new(program).map_err(|error| refused(name, error))?,
            plan,
            batch,
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its machine code, with the views.
    pub(super) const fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Number of its groups.
    pub(super) fn groups(&self) -> usize {
        self.plan.groups.len()
    }

    /// A switch that runs it. A link of `rate` bytes each µs is shared by the groups as their
    /// locations are; a carrier has its turn each `turn_us`, and a mark comes each `window_us`.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn switch(
        &self,
        rate: f64,
        turn_us: u64,
        window_us: u64,
    ) -> Result<Switch<Native>, EvalError> {
        let mut switch = switch(&self.name, &self.compiled)?;
        let all = f64::from(self.plan.locations());
        let rates = self.plan.groups.iter().map(|group| {
            let share = rate * f64::from(group.locations) / all;
            let byte_time = (65_536.0 / share).round().max(1.0) as u32;
            let rates = Rates {
                byte_time,
                slowest_byte_time: byte_time.saturating_mul(8),
                window_us,
                ..Rates::default()
            };
            (group.group, rates)
        });
        let sync = Sync {
            switch: 1,
            address: SWITCH,
            turn_us: Some(turn_us),
            rates: rates.collect(),
            read_only: false,
        };
        let applied = sync.apply(&mut switch, 7, true);
        applied.map_err(|error| refused(&self.name, error))?;
        Ok(switch)
    }

    /// Of each group the place of its register among those of the switch; `None` if several registers
    /// are one group, or an element is several locations.
    pub(super) fn places(&self, switch: &Switch<Native>) -> Vec<Option<usize>> {
        let registers = switch.engine().state().registers();
        let place = |name: &str| registers.iter().position(|it| it.name() == name);
        let groups = self.plan.groups.iter();
        groups
            .map(|group| match group.registers.as_slice() {
                [one] if group.words == 1 => place(&one.register),
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_views_of_the_registers_that_are_named() {
        let text = shipped("apps/hashpipe/hashpipe.p4").unwrap();
        let macros = [("HASHPIPE_STAGE_BITS", 4), ("SYNC_BATCH", 8)];
        let viewed = Viewed::new("hashpipe", text, &macros, &["stages"]).unwrap();
        assert_eq!((viewed.groups(), viewed.batch), (1, 8));
        assert_eq!(viewed.plan.groups[0].locations, 4 * 16 + 1);
        let switch = viewed.switch(100.0, 4, 250).unwrap();
        let place = viewed.places(&switch)[0].unwrap();
        let register = &switch.engine().state().registers()[place];
        assert_eq!((register.name(), register.size()), ("stages", 65));
    }

    #[test]
    fn what_is_refused_says_why() {
        let refused = shipped("apps/none/none.p4").unwrap_err();
        assert_eq!(refused.code(), "EV003");
        let text = shipped("apps/hashpipe/hashpipe.p4").unwrap();
        let refused = Viewed::new("hashpipe", text, &[], &["none"]).err().unwrap();
        assert!(refused.to_string().contains("none"), "{refused}");
    }
}
