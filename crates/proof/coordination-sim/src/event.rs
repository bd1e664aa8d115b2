//! The library's events, by their index in `coordination_events`.

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
    NOT_MEMBER = 3, "messages to no member";
    OTHER_EPOCH = 4, "messages of another epoch";
    OTHER_SENDER = 5, "messages of another sender";
    BLOCKED = 6, "messages while blocked";
    MISSING_ENTRY = 8, "entries beyond the next";
    ASKED = 9, "questions for entries";
    BEYOND_RING = 11, "entries that left the ring";
    BUSY = 12, "refusals as busy";
    LOWER_REQUEST = 13, "lower requests";
    NOT_HELD = 14, "questions not held";
    DECIDED = 19, "entries decided";
    APPLIED = 20, "entries applied";
    LEASED_READ = 22, "leased reads";
    LEASE_GRANTED = 23, "leases";
    RESENT = 26, "entries sent again";
    COPY_SENT = 27, "copies sent";
    COPY_OLD = 29, "copies that were older";
    HANDED_OVER = 31, "hand-overs";
    REDIRECTED = 32, "requests redirected";
    NO_SUBSCRIBER = 42, "watches without a place";
    PUSHED = 43, "entries pushed";
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn indices_are_those_of_the_library() {
        let text = stateplane_library::text("lib/coordination/events.p4").expect("the file");
        for (name, index) in NAMES {
            let line = format!("const bit<32> EVENT_{name} = {index};");
            assert!(text.contains(&line), "{line}");
        }
    }
}
