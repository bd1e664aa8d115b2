//! A short run of each target, over inputs made from what the repository has.

use stateplane_fuzz::TARGETS;
use stateplane_fuzz::mutate::Mutator;
use std::path::Path;

fn run(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = (target.corpus)(&root);
    assert!(!corpus.is_empty());
    for input in &corpus {
        (target.run)(input);
    }
    (target.run)(&[]);
    let mut mutator = Mutator::new(&corpus, target.words, 1);
    for _ in 0..target.short {
        (target.run)(&mutator.next_input());
    }
}

macro_rules! short_runs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_short_run() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/fuzz_targets");
            for name in names {
                let text = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
                assert!(text.contains(&format!("run(\"{name}\", input)")), "{name}");
            }
        }
    };
}

short_runs!(
    preprocessor parser checker ir generator interpreter stf toml wire store coordination
    multicast_store gnmi
);
