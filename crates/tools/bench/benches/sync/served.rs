//! A switch that counts packets, serves P4Runtime and has an engine of sync, which serves views.

use super::link::{unwrap, wrap};
use super::programs::{InView, Sources, compiled, engine, in_view, switch};
use stateplane_host::remote::{Remote, remote};
use stateplane_host::sync::{SyncEngineFile, SyncServer};
use stateplane_native::Native;
use stateplane_rpc::proto::{config, v1};
use stateplane_rpc::{Core, Driver, MAX_MESSAGE, Options, PacketHeader, Prepared, Refusal, Server};
use stateplane_switch::Switch;
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_view::proto::v1::view_client::ViewClient;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use v1::p4_runtime_client::P4RuntimeClient;

/// The program that counts.
pub const PROGRAM: &str = "bench/p4/packet_counter.p4";

/// Packets each second.
const RATE: u64 = 250_000;

/// Frames that are drawn once and come again and again.
const FRAMES: usize = 1 << 16;

/// Datagrams between two looks at what controllers want.
const BURST: usize = 64;

/// Time in µs that the switch takes at once, a turn of its carriers; what it makes up for when it was
/// late, in such steps; and its rest when nothing is due, without which it and others like it would
/// leave no processor to engines and clients.
const STEP: u64 = 50;
const STEPS: u64 = 64;
const REST: Duration = Duration::from_micros(50);

/// Time for a view to be complete.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts of packets of [`Served`].
pub struct Counts {
    /// Packets that came.
    pub packets: AtomicU64,
    /// Datagrams to the engine.
    pub said: AtomicU64,
}

/// A switch, its P4Runtime, and the engine of its groups.
pub struct Served {
    /// Packets counted so far.
    pub counts: Arc<Counts>,
    /// The engine, from other threads.
    pub remote: Arc<Remote<SyncServer>>,
    p4runtime: Option<Server>,
    views: Option<Server>,
    info: config::P4Info,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    _data: tempfile::TempDir,
}

/// The compiled program, which nobody compiles again.
fn prepared(text: &str) -> Prepared<Native> {
    let compiled = stateplane_compile::text(text).program_and_interface();
    let (program, interface) = compiled.unwrap_or_else(|refused| panic!("{refused}"));
    Prepared {
        engine: None,
        info: stateplane_p4info::generate(&program, &interface).expect("P4Info"),
        headers: PacketHeader::of(&interface),
        load: Arc::new(move || {
            Native::new(program.clone(), Default::default()).map_err(Refusal::invalid)
        }),
    }
}

/// Lets packets come at a steady rate, and passes on what engine and controllers say.
fn forward(
    mut switch: Switch<Native>,
    mut driver: Driver<Native>,
    socket: &UdpSocket,
    counts: &Counts,
    stop: &AtomicBool,
) {
    let frames = Sources::new(super::programs::SOURCES).frames(FRAMES);
    let mut frames = frames.iter().cycle();
    let mut buffer = [0; 2048];
    let (start, mut now) = (Instant::now(), 1_000_000);
    let (mut came, mut owed) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let until = 1_000_000 + start.elapsed().as_micros() as u64;
        now = until.saturating_sub(STEPS * STEP).max(now);
        let mut is_idle = true;
        while now + STEP <= until {
            now += STEP;
            owed += RATE * STEP;
            for frame in frames.by_ref().take((owed / 1_000_000) as usize) {
                switch.handle_frame(now, 0, frame);
                came += 1;
            }
            owed %= 1_000_000;
            switch.handle_timeout(now);
            transmit(&mut switch, socket, counts);
        }
        counts.packets.store(came, Ordering::Relaxed);
        for _ in 0..BURST {
            let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut buffer) else {
                break;
            };
            is_idle = false;
            switch.handle_frame(now, CONTROL_PORT, &wrap(from, &buffer[..length]));
            transmit(&mut switch, socket, counts);
        }
        driver.serve(&mut switch, now);
        if is_idle {
            std::thread::sleep(REST);
        }
    }
}

/// Gives the engine what the switch says to it.
fn transmit(switch: &mut Switch<Native>, socket: &UdpSocket, counts: &Counts) {
    while let Some(sent) = switch.poll_transmit() {
        if sent.port == CONTROL_PORT
            && let Some((to, payload)) = unwrap(&sent.frame)
        {
            // What the system does not take is lost, as on a wire.
            let _ = socket.send_to(payload, to);
            counts.said.fetch_add(1, Ordering::Relaxed);
        }
        switch.recycle(sent.frame);
    }
}

/// The engine's file.
fn engine_file(view: &InView, at: SocketAddrV4, data: &Path) -> SyncEngineFile {
    let mut text = format!("listen = \"127.0.0.1\"\ndata = \"{}\"\n", data.display());
    for group in &view.plan.groups {
        let name = group.name.rsplit('.').next().unwrap_or(&group.name);
        let _ = write!(
            text,
            "[[group]]\nname = \"{name}\"\nswitch = \"{}\"\nport = {}\ngroup = {}\n\
             locations = {}\nbatch = {}\n",
            at.ip(),
            at.port(),
            group.group,
            group.locations,
            view.plan.batch,
        );
    }
    SyncEngineFile::parse("engine.toml".as_ref(), &text).expect("an engine's file")
}

impl Served {
    /// Starts a switch that counts packets of `sources`, and waits until the engine's views are
    /// complete.
    pub fn start(sources: u64) -> Served {
        let view = in_view(PROGRAM, &[("SOURCES", sources)]);
        let prepared_text = view.text.clone();
        let info = prepared(&prepared_text).info;
        let counts = Arc::new(Counts {
            packets: AtomicU64::new(0),
            said: AtomicU64::new(0),
        });
        let stop = Arc::new(AtomicBool::new(false));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port of loopback");
        socket.set_nonblocking(true).expect("it need not wait");
        let Ok(SocketAddr::V4(at)) = socket.local_addr() else {
            panic!("an address of loopback");
        };
        let (counted, stopped, text) = (counts.clone(), stop.clone(), view.text.clone());
        let (give, take) = std::sync::mpsc::channel();
        // Machine code stays in the thread that made it.
        let device = std::thread::spawn(move || {
            let switch = switch(engine(&compiled(&text)));
            let options = Options {
                device_id: 1,
                cpu_port: None,
                epoch_ns: 0,
                port_names: BTreeMap::new(),
            };
            let core = Core::new(options, prepared(&text), &switch).expect("a core");
            let (driver, client) = stateplane_rpc::channel(core).expect("a channel");
            give.send(client).expect("the server waits");
            forward(switch, driver, &socket, &counted, &stopped);
        });
        let client = take.recv().expect("the switch starts");
        let address = "127.0.0.1:0".parse().expect("an address");
        let compile = Arc::new(move |_: &[u8]| Ok(prepared(&prepared_text)));
        let p4runtime = stateplane_rpc::serve(client, compile, address, None);
        let data = tempfile::tempdir().expect("a folder");
        let file = engine_file(&view, at, data.path());
        let mut server = SyncServer::bind(&file).expect("an engine");
        let (remote, calls) = remote().expect("sockets");
        server.set_remote(calls);
        let remote = Arc::new(remote);
        let views = stateplane_view::serve(remote.clone(), address, None);
        let stopped = stop.clone();
        let engine = std::thread::spawn(move || {
            server.run(&stopped).expect("the engine goes on");
        });
        let served = Served {
            counts,
            remote,
            p4runtime: Some(p4runtime.expect("a server")),
            views: Some(views.expect("a server")),
            info,
            stop,
            threads: vec![device, engine],
            _data: data,
        };
        served.wait_for_views();
        served
    }

    fn wait_for_views(&self) {
        let end = Instant::now() + PATIENCE;
        let complete = || {
            let told = self.remote.call(|server| server.told());
            told.expect("the engine runs").iter().all(Option::is_some)
        };
        while !complete() {
            assert!(Instant::now() < end, "the views are complete in time");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A client of P4Runtime on a connection of its own.
    pub fn p4runtime(&self, runtime: &Runtime) -> P4RuntimeClient<Channel> {
        let address = format!("http://{}", self.p4runtime_address());
        let endpoint = Channel::from_shared(address).expect("an address");
        let channel = runtime.block_on(endpoint.tcp_nodelay(true).connect());
        P4RuntimeClient::new(channel.expect("a connection"))
            .max_encoding_message_size(MAX_MESSAGE)
            .max_decoding_message_size(MAX_MESSAGE)
    }

    /// Address of P4Runtime.
    pub fn p4runtime_address(&self) -> SocketAddr {
        self.p4runtime.as_ref().expect("it runs").address()
    }

    /// A client of the engine's views.
    pub fn view(&self, runtime: &Runtime) -> ViewClient<Channel> {
        let address = format!("http://{}", self.view_address());
        let client = runtime.block_on(stateplane_view::connect(address));
        client.expect("a connection")
    }

    /// Address of the views.
    pub fn view_address(&self) -> SocketAddr {
        self.views.as_ref().expect("it runs").address()
    }

    /// The description of the program for controllers.
    pub fn info(&self) -> &config::P4Info {
        &self.info
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.views.take());
        drop(self.p4runtime.take());
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
