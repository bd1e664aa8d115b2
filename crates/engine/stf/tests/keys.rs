//! Keys of frames in the packet tests of the applications: a packet that comes to a bucket of flows has
//! the key of the bucket that it comes to first, whether it is a packet of the flow or a message of the
//! store about it.

use stateplane_interp::{Event, Interp, Observer};
use stateplane_ir::{Program, RegisterId};
use stateplane_library::included_script;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{
    EgressInput, EgressOutcome, Engine, IngressInput, IngressOutcome, InstanceType, Preserved,
    SwitchEvent, TargetState,
};
use stateplane_stf::{parse_with, run_all};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Watches for the first unit of registers that a packet comes to.
#[derive(Default)]
struct First(Option<u64>);

impl Observer for First {
    fn event(&mut self, program: &Program, event: Event<'_>) {
        let mut uses = |register: RegisterId, index: u64| {
            if let Some((_, elements)) = program.registers[register.index()].unit() {
                self.0.get_or_insert(index / elements);
            }
        };
        match event {
            Event::RegisterRead {
                register, index, ..
            }
            | Event::RegisterWrite {
                register, index, ..
            } => uses(register, index),
            _ => {}
        }
    }
}

/// An interpreter, and machine code that is asked for the keys of its packets.
struct Asked {
    interp: Interp<First>,
    native: Native,
    /// Key and first unit of each packet that came to one.
    met: Met,
}

type Met = Rc<RefCell<Vec<(Option<u16>, u64)>>>;

impl Asked {
    fn new((program, native): &(Program, Compiled), met: &Met) -> Asked {
        let interp = Interp::observed(program.clone(), Default::default(), First::default());
        Asked {
            interp: interp.expect("it loads"),
            native: native.engine(Default::default()).expect("it loads"),
            met: met.clone(),
        }
    }

    /// Gives the machine code the interpreter's entries, and the registers that hosts write.
    fn follow(&mut self) {
        let (own, theirs) = (self.native.state_mut(), self.interp.state());
        own.follow(theirs);
        for name in ["replication_incarnation", "flow_hash_key"] {
            let (Ok(own), Ok(theirs)) = (own.register_mut(name), theirs.register(name)) else {
                continue;
            };
            for at in 0..theirs.size() {
                let value = theirs.read(at).expect("it exists");
                own.write(at, &value).expect("it exists");
            }
        }
    }
}

type InFlight = <Interp<First> as Engine>::InFlight;

impl Engine for Asked {
    type InFlight = InFlight;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<InFlight> {
        let is_new = input.instance_type == InstanceType::Normal;
        let key = if is_new {
            self.follow();
            self.native.state_key(input.port, input.frame)
        } else {
            None
        };
        self.interp.observer_mut().0 = None;
        let outcome = self.interp.ingress(input);
        if let (true, Some(unit)) = (is_new, self.interp.observer().0) {
            self.met.borrow_mut().push((key, unit));
        }
        outcome
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> InFlight {
        self.interp.parse(input)
    }

    fn restore(&mut self, packet: &mut InFlight, preserved: &Preserved) {
        self.interp.restore(packet, preserved);
    }

    fn gave_up(&self) -> bool {
        self.interp.gave_up()
    }

    fn truncate(&mut self, packet: &mut InFlight, bytes: u32) {
        self.interp.truncate(packet, bytes);
    }

    fn egress(
        &mut self,
        packet: InFlight,
        input: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<InFlight> {
        self.interp.egress(packet, input, frame)
    }

    fn note(&mut self, event: SwitchEvent<'_>) {
        self.interp.note(event);
    }

    fn length(&self, packet: &InFlight) -> usize {
        self.interp.length(packet)
    }

    fn state(&self) -> &TargetState {
        self.interp.state()
    }

    fn state_mut(&mut self) -> &mut TargetState {
        self.interp.state_mut()
    }
}

/// The packet tests of an application.
fn scripts(app: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../apps");
    let files = fs::read_dir(root.join(app).join("tests")).expect("a folder");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "stf"));
    files.sort();
    files
}

/// A program, and its machine code for several workers.
fn program(main: &Path, defines: Vec<(String, String)>) -> (Program, Compiled) {
    let read = |path: &str| fs::read_to_string(path).ok();
    let source = stateplane_compile::file(&main.to_string_lossy(), read);
    let program = source.defines(defines).program();
    let program = program.unwrap_or_else(|refused| panic!("{}: {refused}", main.display()));
    let native = Compiled::guarded(program.clone()).expect("it compiles");
    (program, native)
}

/// Runs the packet tests of an application, and gives what their packets met. Most tests have one
/// bucket: here they have as many as a switch has, and where they look at slots they fail.
fn met(app: &str) -> Vec<(Option<u16>, u64)> {
    let met = Met::default();
    let mut programs = BTreeMap::new();
    for path in scripts(app) {
        let text = fs::read_to_string(&path).expect("a script");
        let name = path.to_string_lossy();
        let included = |file: &str| included_script(&name, file, |_| None);
        let script = parse_with(&name, &text, &included).expect("a script");
        let main = script.program.as_ref().expect("a program");
        let main = path.parent().expect("a folder").join(main);
        let mut defines = script.defines.clone();
        defines.retain(|(name, _)| name != "REPLICATION_BUCKETS");
        let program = programs
            .entry((main.clone(), defines.clone()))
            .or_insert_with(|| program(&main, defines));
        run_all(&script, Asked::new(program, &met));
    }
    met.take()
}

#[test]
fn packets_have_the_key_of_the_first_bucket_that_they_come_to() {
    for app in [
        "counter",
        "firewall",
        "load-balancer",
        "nat",
        "serving-gateway",
    ] {
        let met = met(app);
        for (key, unit) in &met {
            assert_eq!(*key, Some((unit ^ (unit >> 16)) as u16), "{app}: {met:?}");
        }
        let buckets: BTreeSet<u64> = met.iter().map(|(_, unit)| *unit).collect();
        println!("{app}: {} packets, {} buckets", met.len(), buckets.len());
        assert!(met.len() >= 10, "{app}: only {} packets", met.len());
        assert!(buckets.iter().any(|it| *it != 0), "{app}: {buckets:?}");
    }
}
