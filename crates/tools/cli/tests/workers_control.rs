//! Control of a switch with several workers while frames of many flows pass: whatever changes,
//! changes for the frames of all workers at one point, and no frame and no count is lost.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;
mod workers_control {
    pub mod controller;
    pub mod frames;
}

use serde_json::Value;
use stateplane_rpc::client::names::{find, id, update};
use stateplane_rpc::client::{Connection, Target};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use support::switch::Served;
use support::{Running, STATEPLANE, errors, stateplane};
use workers_control::controller::{self, Heard};
use workers_control::frames::{self, Came, FLOWS, FRAMES};

fn reload(control: &Path, program: &Path) -> Output {
    let mut command = stateplane(&["reload", "--control"]);
    command.arg(control).arg(program);
    command.output().unwrap()
}

fn is_sorted<T: PartialOrd>(frames: &[Came], of: impl Fn(&Came) -> T) {
    if let Some(pair) = frames.windows(2).find(|pair| of(&pair[0]) > of(&pair[1])) {
        panic!("a worker went on with what was replaced: {pair:?}");
    }
}

/// Checks the counts of workers in a report.
fn check_workers(report: &Value, count: usize) {
    let workers = report["workers"].as_array().expect("it has workers");
    assert_eq!(workers.len(), count);
    for worker in workers {
        assert_ne!(worker["received"], 0, "{report}");
        assert!(worker["lock_waits"].is_u64(), "{report}");
    }
}

fn programs_are_replaced(engine: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    frames::write(&path("in.pcap"));
    let texts: Vec<PathBuf> = (1..=3)
        .map(|generation| {
            let program = path(&format!("program{generation}.p4"));
            fs::write(&program, frames::program(generation)).unwrap();
            program
        })
        .collect();
    let port = format!(
        "0=pcap@:{},{}",
        path("in.pcap").display(),
        path("out.pcap").display()
    );
    let (program, control) = (texts[0].display().to_string(), path("control"));
    let mut running = Running::start(
        stateplane(&["run", &program, "--engine", engine, "--workers", "3"])
            .args(["--port", &port, "--control"])
            .arg(&control),
    );
    let mut ready = String::new();
    let output = running.child().stdout.take().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    for text in &texts[1..] {
        std::thread::sleep(Duration::from_millis(700));
        let reloaded = reload(&control, text);
        assert!(reloaded.status.success(), "{}", errors(&reloaded));
    }
    let output = running.finish(Duration::from_secs(60));
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_str(said.lines().last().unwrap()).expect(&said);
    check_workers(&report, 3);
    // Frames for the controller, which there is none of.
    let unsent = frames::numbers(4).len();
    assert_eq!(
        report["drops"],
        serde_json::json!({ "unknown_port": unsent })
    );

    let frames = frames::read(
        &path("out.pcap"),
        FRAMES as usize - frames::numbers(4).len(),
    );
    is_sorted(&frames, |came| came.generation);
    let mut generations: Vec<u8> = frames.iter().map(|came| came.generation).collect();
    generations.dedup();
    assert_eq!(generations, [1, 2, 3], "each program ran");
    let mut numbers: Vec<u32> = frames.iter().map(|came| came.number).collect();
    numbers.sort_unstable();
    let expected = (0..FRAMES).filter(|number| number % 100 != 4);
    assert_eq!(numbers, expected.collect::<Vec<_>>(), "each frame once");
    // Those without an interface are counted, too.
    assert_eq!(frames.last().unwrap().seen, FRAMES, "the register goes on");
    is_sorted(&frames, |came| came.seen);
    assert!(frames.windows(2).all(|pair| pair[0].seen < pair[1].seen));
}

#[test]
fn machine_code_of_several_workers_is_replaced_at_one_point() {
    programs_are_replaced("native");
}

#[test]
fn an_interpreted_program_of_several_workers_is_replaced_at_one_point() {
    programs_are_replaced("interp");
}

/// A switch with three workers whose frames pass for six seconds.
fn serve(folder: &Path, engine: &str) -> Served {
    frames::write(&folder.join("in.pcap"));
    fs::write(folder.join("program.p4"), frames::program(1)).unwrap();
    let mut command = std::process::Command::new(STATEPLANE);
    command
        .current_dir(folder)
        .args(["run", "program.p4", "--engine", engine, "--workers", "3"])
        .args(["--p4runtime", "127.0.0.1:0", "--cpu-port", "510"])
        .args(["--port", "0=pcap@:in.pcap,out.pcap"]);
    Served::start(&mut command)
}

/// Ends a switch, so that it writes its capture to the end.
fn stop(served: &Served) {
    let id = served.id().to_string();
    let sent = std::process::Command::new("kill").arg(id).status().unwrap();
    assert!(sent.success());
}

fn data(packets: i64) -> Option<v1::CounterData> {
    Some(v1::CounterData {
        packet_count: packets,
        byte_count: 0,
    })
}

fn packets(entities: &[Entity]) -> i64 {
    let counts = entities.iter().filter_map(|entity| match entity {
        Entity::CounterEntry(entry) => entry.data,
        Entity::TableEntry(entry) => entry.counter_data,
        _ => None,
    });
    counts.map(|data| data.packet_count).sum()
}

/// A controller's requests for the program of [`frames`].
struct Control {
    connection: Connection,
    info: stateplane_rpc::proto::config::P4Info,
}

impl Control {
    fn open(address: &str) -> Control {
        let mut connection = Connection::open(Target {
            address: address.to_owned(),
            device_id: 1,
            tls: None,
        })
        .unwrap();
        let info = connection.pipeline().unwrap().p4info.unwrap();
        Control { connection, info }
    }

    fn action(&self, name: &str, mark: u8) -> Option<v1::TableAction> {
        let action = find(&self.info.actions, name, "action").unwrap();
        let action = v1::Action {
            action_id: id(action),
            params: vec![v1::action::Param {
                param_id: 1,
                value: vec![mark],
            }],
        };
        Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(action)),
        })
    }

    fn table(&self, name: &str) -> u32 {
        id(find(&self.info.tables, name, "table").unwrap())
    }

    fn default(&self, table: &str, action: &str, mark: u8) -> Entity {
        Entity::TableEntry(v1::TableEntry {
            table_id: self.table(table),
            action: self.action(action, mark),
            is_default_action: true,
            ..v1::TableEntry::default()
        })
    }

    /// The entry of `marks` that all frames meet, and what is asked for when it is read.
    fn mark(&self, mark: u8) -> v1::TableEntry {
        let exact = v1::field_match::Exact { value: vec![0] };
        v1::TableEntry {
            table_id: self.table("marks"),
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
            }],
            action: self.action("meet", mark),
            counter_data: data(0),
            meter_config: Some(v1::MeterConfig {
                cir: 1,
                cburst: 500,
                pir: 1,
                pburst: 1000,
                eburst: 0,
            }),
            meter_counter_data: Some(v1::MeterCounterData::default()),
            ..v1::TableEntry::default()
        }
    }

    /// Frames that the program counted.
    fn passed(&mut self) -> i64 {
        let counter = id(find(&self.info.counters, "passed", "counter").unwrap());
        let read = self
            .connection
            .read(vec![Entity::CounterEntry(v1::CounterEntry {
                counter_id: counter,
                index: Some(v1::Index { index: 1 }),
                data: None,
            })]);
        packets(&read.unwrap())
    }
}

fn batches_are_whole(engine: &str) {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path(), engine);
    let mut control = Control::open(&served.address);
    let entry = Entity::TableEntry(control.mark(9));
    control
        .connection
        .write(vec![update(Type::Insert, entry)])
        .unwrap();
    let mut passed = 0;
    for mark in 2..=40 {
        let marks = [("lefts", "left"), ("rights", "right")]
            .map(|(table, action)| control.default(table, action, mark));
        let updates = marks
            .iter()
            .map(|entity| update(Type::Modify, entity.clone()));
        control.connection.write(updates.collect()).unwrap();
        assert_eq!(control.connection.read(marks.to_vec()).unwrap(), marks);
        let more = control.passed();
        assert!(
            more >= passed,
            "counts of some worker are lost: {more} after {passed}"
        );
        passed = more;
    }
    // The meter's buckets are empty by then.
    while passed < i64::from(FRAMES / 4) {
        std::thread::sleep(Duration::from_millis(20));
        passed = control.passed();
    }
    let other = frames::program(2).into_bytes();
    control.connection.set_program(other, true).unwrap();
    let more = control.passed();
    assert!(
        more >= passed,
        "counts of some worker are lost: {more} after {passed}"
    );
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while control.passed() < i64::from(FRAMES) && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(control.passed(), i64::from(FRAMES), "frames of all workers");
    let entry = Entity::TableEntry(control.mark(9));
    let read = control.connection.read(vec![entry]).unwrap();
    stop(&served);

    let frames = frames::read(
        &folder.path().join("out.pcap"),
        FRAMES as usize - frames::numbers(4).len(),
    );
    for came in &frames {
        assert_eq!(came.left, came.right, "half a batch: {came:?}");
    }
    is_sorted(&frames, |came| came.left);
    is_sorted(&frames, |came| came.generation);
    is_sorted(&frames, |came| came.hit);
    assert_eq!(
        frames.last().map(|came| (came.generation, came.left)),
        Some((2, 40))
    );
    // From one point on all frames met the entry; those that went to the controller are not here.
    let met = frames.iter().position(|came| came.hit != 0).unwrap();
    let last = met.checked_sub(1).map_or(0, |at| frames[at].seen);
    let range = FRAMES - frames[met].seen + 1..=FRAMES - last;
    let hits = packets(&read);
    assert!(range.contains(&(hits as u32)), "{hits} of {range:?}");
    let [Entity::TableEntry(entry)] = &read[..] else {
        panic!("{read:?}");
    };
    let colors = entry.meter_counter_data.as_ref().unwrap();
    let [green, yellow, red] = [&colors.green, &colors.yellow, &colors.red]
        .map(|color| color.as_ref().unwrap().packet_count);
    assert_eq!(green + yellow + red, hits, "each frame got one color");
    // A new engine's buckets are full: the pipeline was replaced once.
    assert!((1000..1060).contains(&green), "{green} green");
    assert!((940..1060).contains(&yellow), "{yellow} yellow");
}

#[test]
fn batches_and_pipelines_are_whole_in_machine_code() {
    batches_are_whole("native");
}

#[test]
fn batches_and_pipelines_are_whole_in_an_interpreted_program() {
    batches_are_whole("interp");
}

/// Packets, digests and idle entries of all workers, not of the first alone.
#[test]
fn controllers_hear_of_all_workers() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve(folder.path(), "native");
    let Heard {
        packets,
        digests,
        idle,
    } = controller::hear(&served.address);
    for (heard, rest) in [(packets, 4), (digests, 8)] {
        let expected = frames::numbers(rest);
        // Those that passed before the controller listened are missing.
        let first = expected
            .binary_search(&heard[0])
            .expect("it is one of them");
        assert_eq!(heard, expected[first..]);
        assert!(heard[0] < controller::FROM);
    }
    // The flow of no frame; all others were hit, each by frames of one worker.
    assert_eq!(idle, [frames::source_port(FLOWS)]);
    // Until the last frames have passed, which nobody tells the controller.
    std::thread::sleep(Duration::from_secs(1));
    stop(&served);
    // The packets out come back among the frames.
    let count = FRAMES as usize - frames::numbers(4).len() + controller::PACKETS_OUT;
    let frames = frames::read(&folder.path().join("out.pcap"), count);
    let out = frames.iter().filter(|came| came.number >= FRAMES);
    assert_eq!(out.count(), controller::PACKETS_OUT);
    assert_eq!(
        frames.last().map(|came| came.seen as usize),
        Some(FRAMES as usize + controller::PACKETS_OUT)
    );
}
