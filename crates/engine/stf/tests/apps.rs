//! Runs every packet test of the applications, `apps/*/tests/*.stf`, and those in
//! this folder, on the reference interpreter, which checks the units of registers that atomic blocks
//! name, with and without the passes of the IR, and as machine code: all meet what is expected, and end in the same state.

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_library::included_script;
use stateplane_native::Native;
use stateplane_runtime::Engine;
use stateplane_stf::{Script, parse_with, run};
use stateplane_switch::Switch;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Minimum number of the applications' scripts; fewer means that they were not found.
const LEAST_SCRIPTS: usize = 20;

/// Programs by main file and definitions.
type Programs = BTreeMap<(PathBuf, Vec<(String, String)>), Result<Program, String>>;

/// The files in `folder` whose names end with `extension`, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn program(path: &Path, script: &Script) -> Result<Program, String> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let source = stateplane_compile::file(&path.to_string_lossy(), read);
    let program = source.defines(script.defines.clone()).program();
    program.map_err(|refused| refused.to_string())
}

/// A script that the interpreter runs as it expects.
struct Passed {
    script: Script,
    program: Program,
    interp: Switch<Interp>,
}

/// Runs the script at `path` on the interpreter.
fn interpret(path: &Path, programs: &mut Programs) -> Result<Passed, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let name = path.to_string_lossy();
    let included = |file: &str| included_script(&name, file, |_| None);
    let script = parse_with(&name, &text, &included).map_err(|error| error.to_string())?;
    let Some(name) = &script.program else {
        return Err("no comment `# program: FILE` says what is tested".to_owned());
    };
    let main = path.parent().unwrap_or(Path::new("")).join(name);
    let key = (main.clone(), script.defines.clone());
    let program = programs
        .entry(key)
        .or_insert_with(|| program(&main, &script))
        .clone()?;
    let interp = Interp::checked(program.clone(), Default::default());
    let interp = run(&script, interp.map_err(|error| error.to_string())?);
    Ok(Passed {
        interp: interp.map_err(|error| format!("interp: {error}"))?,
        script,
        program,
    })
}

/// Runs a script that passes after the passes of the IR too, and as machine code.
fn compare(passed: &Passed) -> Result<(), String> {
    let Passed {
        script,
        program,
        interp,
    } = passed;
    let mut optimised = program.clone();
    stateplane_ir::passes::optimise(&mut optimised);
    stateplane_ir::verify(&optimised).map_err(|errors| format!("after passes: {errors:?}"))?;
    let optimised = Interp::new(optimised, Default::default());
    let native = Native::new(program.clone(), Default::default());
    let native = run(script, native.map_err(|error| error.to_string())?);
    let optimised = run(script, optimised.map_err(|error| error.to_string())?);
    let native = native.map_err(|error| format!("native: {error}"))?;
    let optimised = optimised.map_err(|error| format!("after passes: {error}"))?;
    if interp.engine().state() != optimised.engine().state()
        || interp.counters() != optimised.counters()
    {
        return Err("the passes change what can be observed".to_owned());
    }
    if interp.engine().state() != native.engine().state() {
        return Err("the engines end in different states".to_owned());
    }
    if interp.counters() != native.counters() {
        return Err("the switches count differently".to_owned());
    }
    Ok(())
}

/// Runs the scripts and tells all that fail; returns how many there were. Machine code is made
/// only if all pass on the interpreter, since that takes far longer.
fn test_all(scripts: &[PathBuf]) -> usize {
    let mut programs = Programs::new();
    let mut passed = Vec::new();
    let mut failures = Vec::new();
    let mut failed = |path: &Path, why: String| {
        failures.push(format!("{}:\n{why}", path.display()));
    };
    for path in scripts {
        match interpret(path, &mut programs) {
            Ok(script) => passed.push((path, script)),
            Err(why) => failed(path, why),
        }
    }
    if passed.len() == scripts.len() {
        for (path, script) in &passed {
            if let Err(why) = compare(script) {
                failed(path, why);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    scripts.len()
}

/// The folder of the applications.
fn apps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../apps")
}

/// The packet tests of the application in `folder`.
fn scripts_of(folder: &str) -> Vec<PathBuf> {
    files(&apps().join(folder).join("tests"), "stf")
}

macro_rules! applications {
    ($($name:ident $folder:literal)*) => {
        $(#[test]
        fn $name() {
            assert!(test_all(&scripts_of($folder)) > 0);
        })*

        #[test]
        fn every_packet_test_is_run() {
            let mut found = 0;
            for folder in fs::read_dir(apps()).expect("the applications' folder").flatten() {
                let name = folder.file_name().to_string_lossy().into_owned();
                let scripts = scripts_of(&name).len();
                assert!(scripts == 0 || [$($folder),*].contains(&name.as_str()), "{name}");
                found += scripts;
            }
            assert!(found >= LEAST_SCRIPTS, "only {found} scripts");
        }
    };
}

applications! {
    affine_balancer "affine-balancer"
    coordination "coordination"
    count_min "count-min"
    counter "counter"
    dns_amplification "dns-amplification"
    dns_malicious_domain "dns-malicious-domain"
    dns_ttl_change "dns-ttl-change"
    dns_tunnel "dns-tunnel"
    elastic_sketch "elastic-sketch"
    elephant_flows "elephant-flows"
    firewall "firewall"
    flow_radar "flow-radar"
    flow_sampling "flow-sampling"
    flowbits "flowbits"
    flowlet_switching "flowlet-switching"
    ftp_monitor "ftp-monitor"
    hashpipe "hashpipe"
    heavy_hitter "heavy-hitter"
    key_value "key-value"
    load_balancer "load-balancer"
    multicast "multicast"
    nat "nat"
    object_routing "object-routing"
    packet_counter "packet-counter"
    sequencer "sequencer"
    serving_gateway "serving-gateway"
    sketch_learn "sketch-learn"
    super_spreader "super-spreader"
    syn_defence "syn-defence"
    udp_flood "udp-flood"
    univmon "univmon"
}

#[test]
fn small_programs_pass_theirs() {
    let scripts = files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs"),
        "stf",
    );
    assert!(test_all(&scripts) > 0);
}
