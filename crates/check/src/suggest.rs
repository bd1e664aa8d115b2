//! Which known name an unknown one probably stands for.

pub(crate) use stateplane_diagnostics::nearest;
