//! The codes of what keeps a program from being synchronised. `E19…` refuse it.

stateplane_diagnostics::codes! {
    ANNOTATION = "E1901": "an annotation @synced cannot be understood";
    NO_REGISTER = "E1902": "there is no register to synchronise";
    NOT_SYNCHRONISED = "E1903": "a register cannot be synchronised";
    GROUP = "E1904": "registers do not fit into one group";
    REPLICATED = "E1905": "a register to synchronise is annotated @replicated";
}
