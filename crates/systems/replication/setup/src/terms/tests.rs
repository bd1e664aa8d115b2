use super::*;

fn term(since: u64, deadline: u64) -> Term {
    Term { since, deadline }
}

/// Of what a term permits an element permits nearly all, and nothing else.
#[test]
fn an_element_permits_no_more_than_the_term() {
    let hour = 3_600_000_000;
    for since in [0, 1, 255, 256, 1_000_000, 77 * hour + 12_345, (1 << 48) - 6 * hour] {
        for length in [1, 300, 1023, 1024, 100_000, 99_804, hour, 4 * hour, 5 * hour] {
            let of = term(since, since + length);
            let read = term_of(element(of));
            if length >= 2048 {
                assert!(read.deadline <= of.deadline, "{of:?} {read:?}");
                assert!(of.deadline - read.deadline < 1024, "{of:?} {read:?}");
                assert!(read.since >= of.since, "{of:?} {read:?}");
                let held = length < 4 * hour;
                assert!(!held || read.since - of.since < 256, "{of:?} {read:?}");
                assert!(read.deadline - read.since <= (1 << 26) * 256);
            }
            for asked in [since, since + 1, since + length / 2] {
                for now in [asked, since + length - 1, since + length] {
                    assert!(!read.permits(now, asked) || of.permits(now, asked));
                }
            }
        }
    }
    assert_eq!(element(Term::default()), 0);
    assert_eq!(element(term(2_000_000, 1_000_000)), 0);
}

#[test]
fn an_element_is_as_the_library_says() {
    // One in the packet tests: from 0 to 2^32 µs.
    assert_eq!(element(term(0, 1 << 32)), 0x0001_0000_0100_0000);
    assert_eq!(term_of(0x0001_0000_0100_0000), term(0, 1 << 32));
    let ports = stateplane_library::text("lib/replication/ports.p4").expect("the library's file");
    let declared = format!("HEARTBEAT_PORT = {HEARTBEAT_PORT};");
    assert!(ports.contains(&declared), "{declared}");
    let terms = stateplane_library::text("lib/replication/term.p4").expect("the library's file");
    for register in [TERM, BEAT] {
        assert!(terms.contains(&format!(" {register};")), "{register}");
    }
}
