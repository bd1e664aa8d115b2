//! The control plane against floods: by windows of sync, or by one value after the other.

use super::super::collected::Collected;
use super::super::viewed::{Viewed, refused};
use super::{PROGRAM, SETUP};
use crate::error::EvalError;
use num_bigint::BigUint;
use stateplane_runtime::{StateError, TargetState, Value};
use stateplane_sketch::Flood;
use stateplane_wire::sync::CutKind;
use std::collections::BTreeSet;

/// Groups of the program, and their registers.
pub(super) const PAIRS: usize = 0;
pub(super) const BLOCKED: usize = 1;
const REGISTERS: [&str; 2] = ["pairs", "blocked"];

/// µs of a window, and packets in it with more of which a pair floods.
pub(super) const WINDOW_US: u64 = 5_000;
const THRESHOLD: u64 = 100;

/// Lets all packets that are not dropped leave by port 0.
fn route(state: &mut TargetState) -> Result<(), StateError> {
    let forward: Vec<BigUint> = [0_u32, 1, 2].into_iter().map(BigUint::from).collect();
    let routes = state.table_mut("FloodIngress.router.routes")?;
    routes.set_default("FloodIngress.router.connected", &[])?;
    let neighbours = state.table_mut("FloodIngress.router.neighbours")?;
    neighbours.set_default("FloodIngress.router.forward", &forward)
}

/// The control plane of a course.
enum Control {
    /// Windows of this project's sync, and verdicts by its writes.
    Windows { next_cut: u64 },
    /// Registers that are read, written and reset one by one, each in so many ns.
    OneByOne { ns: f64, passed: f64, at: Turn },
}

/// Work of a control plane that does one thing after the other.
enum Turn {
    /// Reads the values in front of it.
    Read(Vec<u64>),
    Write(Vec<(u32, u64)>),
    /// Resets the values from this one on.
    Reset(u64),
}

/// The switch of a course, and who decides.
pub(super) struct Bed {
    pub(super) collected: Collected,
    bits: u32,
    control: Control,
    flood: Flood,
    /// Pairs about which there was a verdict.
    pub(super) decided: BTreeSet<u64>,
}

impl Bed {
    /// A switch with 2 to `bits` buckets; the control plane is by sync, or takes so many ns for a value.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn new(viewed: &Viewed, bits: u32, ns: Option<f64>) -> Result<Self, EvalError> {
        let mut collected = Collected::new(viewed, SETUP)?;
        route(collected.state()).map_err(|error| refused(PROGRAM, error))?;
        let (control, threshold) = match ns {
            None => {
                let next_cut = collected.now + WINDOW_US;
                (Control::Windows { next_cut }, THRESHOLD)
            }
            Some(ns) => {
                // From when a value was reset until it is read all others are, one after the other.
                let span = (2_u64 << bits) as f64 * ns / 1000.0;
                let at = Turn::Read(Vec::new());
                let threshold = THRESHOLD as f64 * span / WINDOW_US as f64;
                let passed = 0.0;
                (
                    Control::OneByOne { ns, passed, at },
                    threshold.ceil() as u64,
                )
            }
        };
        Ok(Self {
            collected,
            bits,
            control,
            flood: Flood::new(threshold),
            decided: BTreeSet::new(),
        })
    }

    /// Verdicts about values of a window, to be written.
    fn decide(&mut self, values: &[u64]) -> Vec<(u32, u64)> {
        let writes = self.flood.window(values);
        let pairs = writes.iter().map(|(_, pair)| *pair);
        self.decided.extend(pairs.filter(|pair| *pair != 0));
        writes
    }

    /// Does what the control plane does in a step.
    ///
    /// # Errors
    /// `EV003` if a write is not taken.
    pub(super) fn act(&mut self) -> Result<(), EvalError> {
        let now = self.collected.now;
        match &mut self.control {
            Control::Windows { next_cut } => {
                if now >= *next_cut && self.collected.cut(PAIRS, CutKind::Filled, 0) {
                    *next_cut += WINDOW_US;
                }
                while let Some(window) = self.collected.heard.windows.pop() {
                    let writes = self.decide(&window.values);
                    if !writes.is_empty() {
                        self.collected.write(BLOCKED, &writes)?;
                    }
                }
                Ok(())
            }
            Control::OneByOne { passed, .. } => {
                *passed += SETUP.step_us as f64 * 1000.0;
                while self.works() {
                    self.turn().map_err(|error| refused(PROGRAM, error))?;
                }
                Ok(())
            }
        }
    }

    /// True if there is time for one value more, which passes.
    fn works(&mut self) -> bool {
        match &mut self.control {
            Control::OneByOne { ns, passed, .. } if *passed >= *ns => {
                *passed -= *ns;
                true
            }
            _ => false,
        }
    }

    /// Reads, writes or resets a value.
    fn turn(&mut self) -> Result<(), StateError> {
        let Control::OneByOne { at, .. } = &mut self.control else {
            return Ok(());
        };
        let all = 2_u64 << self.bits;
        match at {
            Turn::Read(values) => {
                values.push(self.collected.held(PAIRS, values.len() as u32));
                if values.len() as u64 == all {
                    let values = std::mem::take(values);
                    let writes = self.decide(&values);
                    self.turn_to(Turn::Write(writes));
                }
            }
            Turn::Write(writes) => match writes.pop() {
                Some((bucket, pair)) => {
                    let state = self.collected.state();
                    let register = state.register_mut(REGISTERS[BLOCKED])?;
                    register.write(bucket.into(), &Value::from(pair))?;
                }
                None => *at = Turn::Reset(0),
            },
            Turn::Reset(next) => {
                let state = self.collected.state();
                let register = state.register_mut(REGISTERS[PAIRS])?;
                register.write(*next, &Value::from(0_u64))?;
                *next += 1;
                if *next == all {
                    *at = Turn::Read(Vec::new());
                }
            }
        }
        Ok(())
    }

    fn turn_to(&mut self, turn: Turn) {
        if let Control::OneByOne { at, .. } = &mut self.control {
            *at = turn;
        }
    }
}
