//! The library's events, by their index in `multicast_events`.

macro_rules! events {
    ($($name:ident = $index:literal, $words:literal;)*) => {
        $(
            #[doc = concat!("Index of ", $words, ".")]
            pub const $name: usize = $index;
        )*

        /// Index and words of each.
        pub(crate) const WORDS: &[(usize, &str)] = &[$(($index, $words)),*];

        #[cfg(test)]
        const NAMES: &[(&str, usize)] = &[$((stringify!($name), $index)),*];
    };
}

events! {
    REFUSED = 3, "refusals";
    NOT_LEADER = 4, "messages to no leader";
    OTHER_EPOCH = 5, "messages of another epoch";
    OTHER_INCARNATION = 6, "messages to another start";
    UNKNOWN_MESSAGE = 9, "messages that are not in the log";
    JUMP = 11, "jumps";
    HELD_TWICE = 12, "entries whose slot has two copies";
    OUTSIDE_WINDOW = 13, "entries outside the window";
    REPEATED = 14, "repetitions";
    APPENDED = 18, "entries appended";
    NO_OP = 19, "no-ops appended";
    CUT_OFF = 21, "times that a log was cut";
    OUT_OF_ORDER = 22, "entries out of order";
    COMMITTED = 23, "commits";
    FREED = 26, "entries freed";
    RETRANSMITTED = 27, "retransmissions";
    PROMISED = 28, "promises";
    LED = 29, "appointments";
    SKIPPED = 30, "skips";
    OLD = 31, "messages that are over";
    AHEAD = 32, "decisions that came before their message";
    ASKED = 33, "questions up to which index a log matches";
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn indices_are_those_of_the_library() {
        let text = stateplane_library::text("lib/multicast/events.p4").expect("the file");
        for (name, index) in NAMES {
            let line = format!("const bit<32> MULTICAST_EVENT_{name} = {index};");
            assert!(text.contains(&line), "{line}");
        }
    }
}
