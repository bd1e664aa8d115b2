//! The original program as a machine: what it lets out for a packet, and what its registers
//! hold then.

use super::{Own, Template, unmarked};
use stateplane_history::Program;
use stateplane_interp::{Interp, LoadError};
use stateplane_runtime::{Engine as _, Value};
use stateplane_switch::{Switch, SwitchConfig};
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::frame::DATA_PORTS;

/// Elements of registers that are not 0: number of the register, index, value. Registers of
/// more than 128 bits are not looked at.
pub(super) type State = Vec<(usize, u64, u128)>;

/// Port and frame, if the packet is let out.
pub(super) type Output = Option<(u16, Vec<u8>)>;

/// See the module.
pub(super) struct Reference<'a> {
    templates: &'a [Template],
    switch: RefCell<Switch<Interp>>,
    start: State,
    known: RefCell<BTreeMap<(State, usize), (Output, State)>>,
}

impl<'a> Reference<'a> {
    pub(super) fn new(own: &'a Own) -> Result<Self, LoadError> {
        let mut engine = Interp::new(own.original.clone(), stateplane_interp::Options::default())?;
        own.configure(engine.state_mut());
        let config = SwitchConfig {
            ports: (0..DATA_PORTS).collect(),
            ..SwitchConfig::default()
        };
        // Such a configuration is refused for no program.
        let mut switch = Switch::new(engine, config).unwrap_or_else(|error| {
            unreachable!("ports below the drop port are fit for a switch: {error}")
        });
        let start = contents(&switch);
        clear(&mut switch, &start);
        Ok(Self {
            templates: &own.templates,
            switch: RefCell::new(switch),
            start,
            known: RefCell::default(),
        })
    }

    /// Result of a packet in a state.
    pub(super) fn step(&self, state: &State, input: usize) -> (Output, State) {
        let question = (state.clone(), input);
        if let Some(answer) = self.known.borrow().get(&question) {
            return answer.clone();
        }
        let switch = &mut *self.switch.borrow_mut();
        for &(register, index, value) in state {
            write(switch, register, index, value);
        }
        let template = &self.templates[input];
        switch.handle_frame(0, template.port, &template.marked(0));
        let mut output = None;
        while let Some(transmit) = switch.poll_transmit() {
            output.get_or_insert((transmit.port, unmarked(&transmit.frame).to_vec()));
        }
        let after = contents(switch);
        clear(switch, &after);
        let answer = (output, after);
        self.known.borrow_mut().insert(question, answer.clone());
        answer
    }
}

impl Program for Reference<'_> {
    type State = State;
    type Input = usize;
    type Output = Output;

    fn start(&self) -> State {
        self.start.clone()
    }

    fn steps(&self, state: &State, input: &usize) -> Vec<(Output, State)> {
        vec![self.step(state, *input)]
    }
}

fn contents(switch: &Switch<Interp>) -> State {
    let registers = switch.engine().state().registers().iter().enumerate();
    registers
        .flat_map(|(number, register)| {
            (0..register.size()).filter_map(move |index| {
                let value = register.word(index).filter(|value| *value != 0)?;
                Some((number, index, value))
            })
        })
        .collect()
}

fn write(switch: &mut Switch<Interp>, register: usize, index: u64, value: u128) {
    let state = switch.engine_mut().state_mut();
    let name = state
        .registers()
        .get(register)
        .map(|it| it.name().to_owned());
    if let Some(register) = name.and_then(|name| state.register_mut(&name).ok()) {
        // It was read from there.
        let _ = register.write(index, &Value::Bits(value.into()));
    }
}

fn clear(switch: &mut Switch<Interp>, state: &State) {
    for &(register, index, _) in state {
        write(switch, register, index, 0);
    }
}
