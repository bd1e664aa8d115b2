use super::pieces::{read, write};
use super::*;
use crate::session::{Arrival, LIMITS};
use stateplane_switch::SwitchConfig;

fn session(count: u8) -> Session {
    Session {
        seed: 0,
        config: SwitchConfig {
            limits: LIMITS,
            ..SwitchConfig::default()
        },
        writes: Vec::new(),
        updates: Vec::new(),
        arrivals: (0..count)
            .map(|number| Arrival {
                at: u64::from(number),
                port: 0,
                frame: vec![number; 40],
            })
            .collect(),
    }
}

#[test]
fn writing_keeps_the_tokens() {
    let text = "#include <v1model.p4>\n// no\nheader h { bit<8> a; } /* no */\n\
                control C(inout h x) { apply { x.a = (x.a |+| 8w3) ++ x.a[3:0]; @atomic { } x = {#}; x.a[0+:4] = 1; } }\n";
    let once = write(&read(text));
    assert_eq!(write(&read(&once)), once);
    assert!(
        once.contains("x . a = (x . a |+| 8w3 ) ++ x . a [3 : 0 ] ;"),
        "{once}"
    );
    assert!(once.contains("x = {#} ;"), "{once}");
    assert!(once.contains("x . a [0 +: 4 ] = 1 ;"), "{once}");
    assert!(!once.contains(" no"));
}

#[test]
fn any_text_is_read() {
    for text in [
        "",
        "(",
        ")",
        "\"",
        "{(}",
        "@",
        "/*",
        "é é",
        "((((",
        "#x",
        "a\n #b\nc",
    ] {
        let once = write(&read(text));
        assert_eq!(write(&read(&once)).trim(), once.trim(), "{text}");
    }
}

#[test]
fn only_what_the_fault_needs_is_left() {
    let text = "header h { bit<8> a; bit<8> fault; }\nstruct s { h x; }\n\
                control C(inout s x) { apply { a = b; if (x) { y = (((z + 1)) - fault); } } }\n";
    let (program, session) = minimise(text, &session(9), 2000, |program, session| {
        program.contains("apply")
            && program.contains("fault )")
            && session
                .arrivals
                .iter()
                .any(|arrival| arrival.frame.get(3) == Some(&5))
    });
    let words: Vec<&str> = program.split_whitespace().collect();
    assert_eq!(words.join(" "), "apply { y = (() - fault ) ; }");
    assert_eq!(session.arrivals.len(), 1);
    assert_eq!(session.arrivals[0].frame, [0, 0, 0, 5]);
}

#[test]
fn the_number_of_attempts_is_kept() {
    let mut calls = 0;
    minimise("a; b; c; d;", &session(20), 7, |_, _| {
        calls += 1;
        calls == 1
    });
    assert_eq!(calls, 7);
}

#[test]
fn generated_programs_written_anew_mean_the_same() {
    for seed in 0..30 {
        let program = crate::generate(seed, 0).program;
        let again = write(&read(&program));
        let compile = |text: &str| match crate::source::compile(text) {
            Ok(program) => crate::properties::without_locations(&program),
            Err(refusal) => panic!("seed {seed}: {refusal}\n{text}"),
        };
        assert_eq!(compile(&program), compile(&again), "seed {seed}");
    }
}
