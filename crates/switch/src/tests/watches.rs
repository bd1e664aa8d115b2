//! Ports that go down and up with a register.

use stateplane_target::TargetState;

pub(crate) fn state() -> TargetState {
    TargetState {}
}
