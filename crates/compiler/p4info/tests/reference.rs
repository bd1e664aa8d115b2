//! P4Info beside the reference compiler's, over its own sample programs.
//!
//! Runs where `P4C_TESTDATA` names the folder `testdata` of a checkout of p4lang/p4c, and
//! says so where it does not. `P4INFO_SHOW=name` prints both texts of one program.

use stateplane_p4info::{generate, proto, text};
use std::path::{Path, PathBuf};

/// Of programs that compile here, at least this share has the same P4Info.
const LEAST_EQUAL: f64 = 0.95;

fn read(path: &str) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Objects in order of their ids: the order of a P4Info has no meaning, nor has a table of
/// types without types.
fn sorted(mut info: proto::P4Info) -> proto::P4Info {
    macro_rules! sort {
        ($($field:ident),*) => {$(
            info.$field.sort_by_key(|object| object.preamble.as_ref().map(|it| it.id));
        )*};
    }
    sort!(
        tables,
        actions,
        action_profiles,
        counters,
        direct_counters,
        meters,
        direct_meters,
        controller_packet_metadata,
        value_sets,
        registers,
        digests
    );
    info.type_info.get_or_insert_default();
    for profile in &mut info.action_profiles {
        profile.table_ids.sort_unstable();
    }
    info
}

enum Outcome {
    Equal,
    Different(String),
    Refused(String),
}

fn compare(program: &Path, expected: &Path) -> Outcome {
    let expected = text::read(&std::fs::read_to_string(expected).unwrap()).unwrap();
    let name = program.to_string_lossy();
    let compiled = stateplane_compile::file(&name, read).program_and_interface();
    let (made, interface) = match compiled {
        Ok(compiled) => compiled,
        Err(refused) => {
            let mut diagnostics = refused.diagnostics.iter();
            let first = diagnostics.find(|diagnostic| diagnostic.is_error());
            let first = first.map(|d| format!("{} {}", d.code, d.message));
            return Outcome::Refused(first.unwrap_or_default());
        }
    };
    let info = match generate(&made, &interface) {
        Ok(info) => info,
        Err(error) => return Outcome::Different(error.to_string()),
    };
    let (info, expected) = (sorted(info), sorted(expected));
    if info == expected {
        return Outcome::Equal;
    }
    let (ours, theirs) = (text::write(&info).unwrap(), text::write(&expected).unwrap());
    if std::env::var("P4INFO_SHOW").is_ok_and(|shown| name.contains(&shown)) {
        println!("{name}\n--- here ---\n{ours}\n--- reference ---\n{theirs}");
    }
    let line = ours
        .lines()
        .zip(theirs.lines())
        .find(|(ours, theirs)| ours != theirs);
    Outcome::Different(match line {
        Some((ours, theirs)) => format!("here `{}`, there `{}`", ours.trim(), theirs.trim()),
        None => "one is longer".to_owned(),
    })
}

#[test]
fn p4info_is_that_of_the_reference_compiler() {
    let Some(root) = std::env::var_os("P4C_TESTDATA").map(PathBuf::from) else {
        println!("not run: P4C_TESTDATA does not name p4c's folder testdata");
        return;
    };
    let outputs = root.join("p4_16_samples_outputs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&outputs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let (mut equal, mut compared, mut refused) = (0u32, 0u32, 0u32);
    for expected in files {
        let name = expected.file_name().unwrap().to_string_lossy().into_owned();
        let Some(program) = name.strip_suffix(".p4info.txtpb") else {
            continue;
        };
        let text = std::fs::read_to_string(&expected).unwrap();
        if !text.contains("arch: \"v1model\"") {
            continue;
        }
        let source = root.join("p4_16_samples").join(program);
        match std::fs::read_to_string(&source) {
            Ok(text) if text.contains("v1model") => {}
            _ => continue,
        }
        match compare(&source, &expected) {
            Outcome::Equal => {
                compared += 1;
                equal += 1;
            }
            Outcome::Different(why) => {
                compared += 1;
                println!("different: {program}: {why}");
            }
            Outcome::Refused(why) => {
                refused += 1;
                println!("refused: {program}: {why}");
            }
        }
    }
    println!("{equal} of {compared} equal; {refused} refused by the compiler");
    assert!(compared > 0, "no sample programs found");
    assert!(f64::from(equal) >= f64::from(compared) * LEAST_EQUAL);
}
