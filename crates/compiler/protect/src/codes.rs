//! The codes of what keeps a program from being protected. `E18…` refuse it, `W18…` warn.

stateplane_diagnostics::codes! {
    ANNOTATION = "E1801": "an annotation @replicated cannot be understood";
    NOTHING_REPLICATED = "E1802": "no register of the program is annotated @replicated";
    NOT_REPLICABLE = "E1803": "a declaration annotated @replicated cannot be kept in the store";
    NOT_PARTITIONED = "E1804": "replicated state is not partitioned by its key";
    KEY_REWRITTEN = "E1805": "a field of the key is rewritten before the state is used";
    DIFFERENT_KEYS = "E1806": "one packet uses replicated state under different keys";
    TWO_ELEMENTS = "E1807": "one packet uses two elements of a replicated register";
    OUTSIDE_INGRESS = "E1808": "replicated state is used where it cannot be reached";
    EARLY_EFFECT = "E1809": "a packet has an effect that cannot wait for its state";
    KEY_WIDTH = "E1810": "a key does not fit into the key of a flow";
    HEADER_LOST = "E1811": "a packet that waits could not be read again";
    PARSER_INPUT = "E1812": "the parser reads a value that differs for a packet that waited";
    METADATA_LOST = "E1813": "metadata that egress needs cannot travel with a packet";
    PROGRAM_FORM = "E1814": "the program has a form that cannot be rewritten";
    MODE = "E1815": "an annotation has an argument that does not fit its mode of replication";
    ARRAY = "E1816": "no snapshots can be kept of an array";
    LOCAL_STATE = "W1801": "a register is not replicated";
    LOCAL_CLOCK = "W1802": "replicated state holds a time of one switch's clock";
}
