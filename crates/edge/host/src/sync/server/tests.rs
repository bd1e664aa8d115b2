//! Looks at the views of an engine by other threads, and a switch that says what a test has it say.

use super::*;

use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stateplane_sync::election::{Answer, Request};
use stateplane_wire::sync::{MessageType, Repr, Value, Values};

use crate::remote::{Remote, remote};
use crate::sync::{Ask, GroupFile, ReadRequest, TotalsReading, shared, tell};

const GROUP: &str = "packets";
const LOCATIONS: u32 = 4;

/// Stamp of the start of the views.
const FIRST: u64 = 100;

/// Time for what takes ms unless the machine does not let it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stamp and values of a view.
type Seen = Result<Option<(u64, Vec<u64>)>, ViewError>;

fn seen(views: &LocalViews) -> Seen {
    views.look(GROUP, |told, values| (told.stamp, values.to_vec()))
}

/// A view at `stamp`: each value is its stamp.
fn at(stamp: u64) -> Seen {
    Ok(Some((stamp, vec![stamp; LOCATIONS as usize])))
}

/// Waits until `is_so`.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it does not become so");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A switch with one group.
struct Switch {
    socket: UdpSocket,
    /// The engine, and the number of its START.
    engine: Option<(SocketAddr, u64)>,
    stamp: u64,
}

impl Switch {
    fn new() -> Switch {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Switch {
            socket,
            engine: None,
            stamp: FIRST,
        }
    }

    /// An engine's file with the group.
    fn file(&self, data: &tempfile::TempDir, poll_us: u64) -> SyncEngineFile {
        let group = GroupFile {
            name: GROUP.to_owned(),
            switch: Ipv4Addr::LOCALHOST,
            port: self.socket.local_addr().expect("a socket").port(),
            group: 3,
            locations: LOCATIONS,
            batch: 4,
            poll_us,
            retry_us: 5_000,
            windows: 1,
            metrics: Vec::new(),
            counter_bits: None,
        };
        SyncEngineFile {
            listen: Ipv4Addr::LOCALHOST,
            port: 0,
            data: Some(data.path().to_owned()),
            etcd: None,
            rpc: None,
            groups: vec![group],
            flows: Vec::new(),
            redis: None,
        }
    }

    /// Waits for a START, and answers it.
    fn start(&mut self) {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = self.socket.recv_from(&mut buffer).expect("a START");
            let packet = Packet::new_checked(&buffer[..length]).expect("a message");
            let message = Repr::parse(&packet);
            if message.message_type == MessageType::Start {
                self.engine = Some((from, message.starter));
                self.say(MessageType::Started, &[]);
                return;
            }
        }
    }

    /// Sends all values, which are those of the next stamp, and gives that.
    fn update(&mut self) -> u64 {
        self.stamp += 1;
        let mut bytes = Vec::new();
        for index in 0..LOCATIONS {
            let value = self.stamp;
            Value { index, value }.push(&mut bytes);
        }
        self.say(MessageType::Update, &bytes);
        self.stamp
    }

    fn say(&self, kind: MessageType, values: &[u8]) {
        let (engine, starter) = self.engine.expect("an engine");
        let message = Repr {
            group: 3,
            incarnation: 7,
            starter,
            stamp: self.stamp,
            position: (self.stamp - FIRST).saturating_sub(1) * u64::from(LOCATIONS),
            values: Values::new(values),
            ..Repr::new(kind)
        };
        let bytes = message.to_vec().expect("it fits");
        self.socket.send_to(&bytes, engine).expect("it is sent");
    }
}

/// An engine that runs, and its switch.
struct Running {
    views: LocalViews,
    switch: Switch,
    remote: Remote<SyncServer>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _data: tempfile::TempDir,
}

impl Running {
    fn new(poll_us: u64) -> Running {
        let (switch, data) = (Switch::new(), tempfile::tempdir().expect("a folder"));
        let mut server = SyncServer::bind(&switch.file(&data, poll_us)).expect("an engine");
        let (remote, calls) = remote().expect("sockets");
        server.set_remote(calls);
        let (views, stop) = (server.views(), Arc::new(AtomicBool::new(false)));
        let stops = stop.clone();
        let thread = thread::spawn(move || {
            server.run(&stops).expect("it runs");
        });
        Running {
            views,
            switch,
            remote,
            stop,
            thread: Some(thread),
            _data: data,
        }
    }

    /// An engine with a complete view.
    fn complete(poll_us: u64) -> Running {
        let mut running = Running::new(poll_us);
        running.switch.start();
        wait_until(|| {
            running.switch.update();
            seen(&running.views).expect("it leads").is_some()
        });
        running
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the engine's thread");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Lets the engine take what came, in the test's thread.
fn take(server: &mut SyncServer) {
    let before = server.report.received;
    wait_until(|| {
        server.receive().expect("it receives");
        server.report.received > before
    });
}

/// A switch, and an engine in the test's thread that has its STARTED: views that are incomplete.
fn started() -> (Switch, Box<SyncServer>, tempfile::TempDir) {
    let (mut switch, data) = (Switch::new(), tempfile::tempdir().expect("a folder"));
    let file = switch.file(&data, 1_000);
    let mut server = Box::new(SyncServer::bind(&file).expect("an engine"));
    server.turn().expect("a START");
    switch.start();
    take(&mut server);
    (switch, server, data)
}

#[test]
fn a_thread_looks_without_the_engines() {
    let (mut switch, server, _data) = started();
    let views = server.views();
    // This thread is the engine's, and waits for the one that looks.
    let look = || thread::scope(|scope| scope.spawn(|| seen(&views)).join());
    let (mut server, looked) = views.lend(server, look);
    assert_eq!(looked.expect("a look"), Ok(None), "it is incomplete");
    let stamp = switch.update();
    take(&mut server);
    let (server, looked) = views.lend(server, look);
    assert_eq!(looked.expect("a look"), at(stamp));
    drop(server);
    assert_eq!(seen(&views), Err(ViewError::Stopped));
}

#[test]
fn what_a_view_meets_is_read_at_once_and_counted() {
    let (mut switch, server, _data) = started();
    let views = server.views();
    let any = ReadRequest {
        group: GROUP.to_owned(),
        ..ReadRequest::default()
    };
    let read = |request: &ReadRequest| {
        let reading = views.read_at_once(request)?;
        Some((reading.told.stamp, reading.values.to_vec()))
    };
    let (mut server, none) = views.lend(server, || read(&any));
    assert_eq!(none, None, "it is incomplete");
    let stamp = switch.update();
    take(&mut server);
    assert_eq!(read(&any), None, "the engine is at work");
    let mut unmet = [any.clone(), any.clone(), any.clone()];
    unmet[0].fresh = true;
    unmet[1].max_age_us = Some(0);
    unmet[2].group = "bytes".to_owned();
    let (server, seen) = views.lend(server, || {
        thread::sleep(Duration::from_micros(10));
        unmet
            .iter()
            .map(read)
            .chain([read(&any)])
            .collect::<Vec<_>>()
    });
    let packed = stamp.to_le_bytes().repeat(LOCATIONS as usize);
    assert_eq!(seen, [None, None, None, Some((stamp, packed))]);
    assert_eq!(server.report().groups[0].reads, 1);
}

#[test]
fn values_and_promise_are_of_one_moment_while_datagrams_come() {
    let mut running = Running::complete(1_000);
    let views = running.views.clone();
    let has_seen = Arc::new(AtomicBool::new(false));
    let sees = has_seen.clone();
    let looker = thread::spawn(move || {
        let (mut last, mut moments) = (0, 0);
        while moments < 50 {
            let (stamp, values) = seen(&views).expect("it leads").expect("it is complete");
            assert_eq!(values, [stamp; LOCATIONS as usize]);
            assert!(stamp >= last, "{stamp} after {last}");
            moments += u32::from(stamp > last);
            last = stamp;
        }
        sees.store(true, Ordering::Relaxed);
    });
    wait_until(|| {
        running.switch.update();
        has_seen.load(Ordering::Relaxed) || looker.is_finished()
    });
    looker.join().expect("what it sees");
    let age = running.views.look(GROUP, |told, _| told.age_us);
    assert!(age.expect("it leads").is_some());
}

#[test]
fn looks_are_refused_with_codes() {
    let mut running = Running::new(1_000);
    assert_eq!(seen(&running.views), Ok(None), "its switch says nothing");
    let unknown = running.views.look("bytes", |_, _| ()).expect_err("unknown");
    assert_eq!(unknown.code(), "SYNC020");
    running.stop();
    let stopped = seen(&running.views).expect_err("stopped");
    assert_eq!(stopped.code(), "SYNC028");
}

#[test]
fn looks_are_let_in_while_the_engine_never_waits() {
    // A poll is always due.
    let mut running = Running::complete(1);
    let (done, is_done) = std::sync::mpsc::channel();
    let views = running.views.clone();
    let looker = thread::spawn(move || {
        for _ in 0..200 {
            assert!(seen(&views).expect("it leads").is_some());
        }
        done.send(()).expect("the test");
    });
    is_done.recv_timeout(PATIENCE).expect("they are let in");
    looker.join().expect("what it sees");
    let stamp = running.switch.update();
    wait_until(|| seen(&running.views) == at(stamp));
}

#[test]
fn the_engine_goes_on_while_threads_look_again_and_again() {
    let mut running = Running::complete(1_000);
    let (stop, end) = (AtomicBool::new(false), Instant::now() + PATIENCE);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && Instant::now() < end {
                    assert!(seen(&running.views).expect("it leads").is_some());
                }
            });
        }
        for _ in 0..50 {
            let stamp = running.switch.update();
            wait_until(|| seen(&running.views) == at(stamp));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_engine_serves_after_a_look_that_panics() {
    let mut running = Running::complete(1_000);
    for _ in 0..10 {
        let views = &running.views;
        let fails = || views.look(GROUP, |_, _| -> u64 { resume_unwind(Box::new(())) });
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        let stamp = running.switch.update();
        wait_until(|| seen(&running.views) == at(stamp));
    }
    let leads = running.remote.call(|server| server.check_leads());
    assert_eq!(leads, Some(Ok(())));
}

#[test]
fn a_look_that_would_wait_for_itself_is_refused() {
    let running = Running::complete(1_000);
    let nested = Err(ViewError::Nested);
    let (views, again) = (running.views.clone(), running.views.clone());
    let in_work = running.remote.call_within(PATIENCE, move |_| seen(&views));
    assert_eq!(in_work, Some(nested.clone()));
    let (give, take) = std::sync::mpsc::channel();
    running.remote.call(move |server| {
        let request = ReadRequest {
            group: GROUP.to_owned(),
            ..ReadRequest::default()
        };
        let reply = move |_| {
            // The test waits for it, or has failed.
            let _ = give.send(seen(&again));
        };
        server.read(request, Box::new(reply));
    });
    let in_reply = take.recv_timeout(PATIENCE).expect("a reply");
    assert_eq!(in_reply, nested);
    let in_look = running.views.look(GROUP, |_, _| seen(&running.views));
    assert_eq!(in_look, Ok(Some(nested)));
    let leads = running.remote.call(|server| server.check_leads());
    assert_eq!(leads, Some(Ok(())), "the engine goes on");
    assert!(seen(&running.views).expect("it leads").is_some());
}

/// A store that elects the engine that asks, and has it renew its lease in vain.
struct OnceElected {
    outcomes: Arc<Remote<Outcomes>>,
    /// It keeps the engine's facts, and does not leave it waiting.
    keeps: bool,
}

impl OnceElected {
    /// An engine that asks such a store.
    fn engine(file: &SyncEngineFile, keeps: bool) -> SyncServer {
        let (outcomes, calls) = remote().expect("sockets");
        let outcomes = Arc::new(outcomes);
        let store = Box::new(OnceElected { outcomes, keeps });
        SyncServer::bind_shared(file, store, calls).expect("an engine")
    }
}

impl SharedStore for OnceElected {
    fn ask(&mut self, ask: Ask) {
        let told = match ask {
            Ask::Elect(Request::Look) => shared::Told::Elected(Answer::Seen {
                revision: 0,
                holder: None,
                term: 0,
            }),
            Ask::Elect(Request::Take { .. }) => shared::Told::Elected(Answer::Done),
            Ask::Load { term } => {
                let facts = Some(Vec::new());
                shared::Told::Loaded { term, facts }
            }
            Ask::Store { term, .. } if self.keeps => shared::Told::Stored { term, kept: true },
            _ => return,
        };
        tell(&self.outcomes, told);
    }
}

#[test]
fn an_engine_that_stands_by_refuses_looks_and_so_does_one_whose_lease_is_over() {
    let (switch, data) = (Switch::new(), tempfile::tempdir().expect("a folder"));
    let file = switch.file(&data, 1_000);
    let server = OnceElected::engine(&file, false);
    let views = server.views();
    let standby = Err(ViewError::Standby { leader: None });
    let (mut server, looked) = views.lend(Box::new(server), || seen(&views));
    assert_eq!(looked, standby);
    let began = boot_time_us();
    while !server.report.leads {
        server.elect().expect("it is elected");
    }
    let (server, looked) = views.lend(server, || seen(&views));
    // A machine that stood still meanwhile proves nothing.
    if boot_time_us() < began + file.detection_us() / 2 {
        assert_eq!(looked, Ok(None), "it leads");
    }
    // Nothing but the clock tells the engine that its lease is over.
    let over = Duration::from_micros(file.detection_us());
    let (_server, looked) = views.lend(server, || {
        thread::sleep(over);
        seen(&views)
    });
    assert_eq!(looked, standby);
}

#[test]
fn totals_are_told_when_the_store_has_the_life_of_the_engine() {
    for keeps in [false, true] {
        let (mut switch, data) = (Switch::new(), tempfile::tempdir().expect("a folder"));
        let mut file = switch.file(&data, 1_000);
        file.groups[0].counter_bits = Some(64);
        let mut server = OnceElected::engine(&file, keeps);
        while !server.report.leads {
            server.elect().expect("it is elected");
        }
        server.turn().expect("a START");
        switch.start();
        take(&mut server);
        switch.update();
        take(&mut server);
        let (sender, told) = mpsc::channel();
        let request = ReadRequest {
            group: GROUP.to_owned(),
            patience_us: 60_000_000,
            ..ReadRequest::default()
        };
        let reply = Box::new(move |said| sender.send(said).expect("the test listens"));
        server.read_totals(request, reply);
        for _ in 0..20 {
            server.elect().expect("it leads");
            server.turn().expect("a turn");
        }
        match told.try_recv() {
            Ok(said) => {
                let said: TotalsReading = said.expect("totals");
                assert!(keeps, "the store does not have it: {said:?}");
                assert_eq!(said.discontinuities, vec![0; 4 * LOCATIONS as usize]);
            }
            Err(nothing) => assert!(!keeps, "{nothing}"),
        }
    }
}
