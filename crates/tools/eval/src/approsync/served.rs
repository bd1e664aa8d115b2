//! A switch on real time: packets pass it on a thread of its own, it serves P4Runtime as `stateplane
//! run` does, and an engine follows its groups over UDP and serves their views, all by gRPC on the
//! loopback interface. [`Served::views`] and [`Served::p4runtime`] give clients, of which each call
//! is one operation: [`timed`](super::turns::timed) and [`medians`](super::turns::medians) time them.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the switch has a thread, a clock and a socket"
)]

mod clients;
mod subject;

pub(super) use clients::{P4Runtime, Views};
pub use subject::Subject;
pub(super) use subject::frames_of;

use super::link;
use super::programs::SWITCH;
use super::viewed::refused;
use crate::error::EvalError;
use stateplane_host::remote::{Remote, remote};
use stateplane_host::sync::{GroupFile, LocalViews, SyncEngineFile, SyncServer};
use stateplane_native::Native;
use stateplane_rpc::client::names;
use stateplane_rpc::{Core, Driver, Options, Server};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Sync, TURN_US};
use stateplane_synchronise::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use subject::Parts;
use tokio::runtime::Runtime;

/// Name of the device in P4Runtime.
const DEVICE: u64 = 1;

/// Datagrams between two looks at what controllers want.
const BURST: usize = 64;

/// Steps of [`TURN_US`] that the switch makes up for when it was late, and its rest when nothing is
/// due, without which it would leave no processor to engines and clients.
const STEPS: u64 = 64;
const REST: Duration = Duration::from_micros(50);

/// Time between two looks whether a switch that stands still is to go on.
const STILL: Duration = Duration::from_millis(1);

/// Time for the views to be complete.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest sweep that is waited for.
const LONGEST_SWEEP: u64 = 4_000_000;

/// State that the switch's thread and others share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// No packets come.
    paused: AtomicBool,
    /// The switch does nothing, as if it were on another machine.
    stands_still: AtomicBool,
    /// Packets that came.
    packets: AtomicU64,
}

/// A switch, its P4Runtime, and the engine of its groups. It ends when it is dropped.
pub struct Served {
    name: String,
    plan: Plan,
    shared: Arc<Shared>,
    remote: Arc<Remote<SyncServer>>,
    local: LocalViews,
    p4runtime: Option<Server>,
    views: Option<Server>,
    parts: Parts,
    runtime: Arc<Runtime>,
    threads: Vec<JoinHandle<()>>,
    /// The engine's log.
    _data: tempfile::TempDir,
}

/// The server's end of the channel to the switch, or why there is none.
type Begun = Result<stateplane_rpc::Client<Native>, String>;

impl Served {
    /// Starts the switch of a program, its traffic, its servers and its engine, and waits until all
    /// views are complete.
    ///
    /// # Errors
    /// `EV003` if the program does not suit, the system has no sockets, or the views are not
    /// complete in a minute.
    pub fn start(subject: Subject) -> Result<Self, EvalError> {
        let Subject {
            name,
            parts,
            plan,
            frames,
            rate,
        } = subject;
        let failed = |error: &dyn std::fmt::Display| refused(&name, error);
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(|it| failed(&it))?;
        socket.set_nonblocking(true).map_err(|it| failed(&it))?;
        let at = socket.local_addr().map_err(|it| failed(&it))?;
        let data = tempfile::tempdir().map_err(|it| failed(&it))?;
        let file = engine_file(
            &plan,
            (Ipv4Addr::LOCALHOST, at.port()),
            Ipv4Addr::LOCALHOST,
            data.path(),
        );
        let mut server = SyncServer::bind(&file).map_err(|it| failed(&it))?;
        let (reached, calls) = remote().map_err(|it| failed(&it))?;
        server.set_remote(calls);
        let local = server.views();
        let runtime = clients::runtime().map_err(|it| failed(&it))?;
        let shared = Arc::new(Shared::default());
        let (give, take) = mpsc::channel();
        let (theirs, own) = (shared.clone(), parts.clone());
        let device = std::thread::spawn(move || {
            device(&own, &Traffic { frames, rate }, &socket, &theirs, &give);
        });
        let theirs = shared.clone();
        let engine = std::thread::spawn(move || {
            // An engine that ends early is missed by its clients.
            let _ = server.run(&theirs.stop);
        });
        let mut served = Self {
            name,
            plan,
            shared,
            remote: Arc::new(reached),
            local,
            p4runtime: None,
            views: None,
            parts,
            runtime: Arc::new(runtime),
            threads: vec![device, engine],
            _data: data,
        };
        served.serve(&take)?;
        served.wait_for_views()?;
        Ok(served)
    }

    /// Starts the servers, once the switch is there.
    fn serve(&mut self, begun: &mpsc::Receiver<Begun>) -> Result<(), EvalError> {
        let failed = |error: &dyn std::fmt::Display| refused(&self.name, error);
        let client = begun.recv().map_err(|it| failed(&it))?;
        let client = client.map_err(|it| failed(&it))?;
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let parts = self.parts.clone();
        let compile = Arc::new(move |_: &[u8]| Ok(parts.prepared()));
        let p4runtime = stateplane_rpc::serve(client, compile, anywhere, None);
        let p4runtime = p4runtime.map_err(|it| failed(&it))?;
        let views = stateplane_view::Service::new(self.remote.clone(), self.local.clone());
        let views = stateplane_view::serve(views, |routes| routes, anywhere, None);
        let views = views.map_err(|it| failed(&it))?;
        (self.p4runtime, self.views) = (Some(p4runtime), Some(views));
        Ok(())
    }

    fn wait_for_views(&self) -> Result<(), EvalError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let told = self.remote.call(|server| server.told());
            let told = told.ok_or_else(|| refused(&self.name, "its engine has stopped"))?;
            if told.iter().all(Option::is_some) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(refused(
                    &self.name,
                    "its views are not complete in a minute",
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The groups, by whose names views are read, with their registers as P4Runtime calls them.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Packets that came so far.
    pub(super) fn packets(&self) -> u64 {
        self.shared.packets.load(Ordering::Relaxed)
    }

    /// Stops or resumes the traffic, which flows at the start; what was under way has passed within
    /// some ms.
    pub(super) fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, Ordering::Relaxed);
    }

    /// Has the switch do nothing, or go on, so that another one has the processors.
    pub(super) fn stand_still(&self, still: bool) {
        self.shared.stands_still.store(still, Ordering::Relaxed);
    }

    /// Waits until all locations of all groups have crossed the last cut, a whole sweep (at most 4 s):
    /// a cut, a reset or a write of all values waits for that, and by itself takes less.
    pub(super) fn settle(&self) {
        std::thread::sleep(self.sweep());
    }

    /// Time after a cut in which all locations of all groups cross it, at most 4 s.
    pub(super) fn sweep(&self) -> Duration {
        let told = self.remote.call(|server| server.told()).unwrap_or_default();
        let sweeps = told.iter().flatten().map(|told| u64::from(told.sweep_us));
        let sweep = sweeps.max().unwrap_or(0).clamp(10_000, LONGEST_SWEEP);
        Duration::from_micros(sweep + sweep / 8)
    }

    /// Lets `look` see the view of a group within the engine's process, without gRPC.
    ///
    /// # Errors
    /// `EV003` if there is no such group, the view is incomplete, or the engine has stopped.
    pub(super) fn within<T>(
        &self,
        group: &str,
        look: impl FnOnce(&[u64]) -> T,
    ) -> Result<T, EvalError> {
        let looked = self.local.look(group, |_, values| look(values));
        let looked = looked.map_err(|error| refused(&self.name, error))?;
        looked.ok_or_else(|| refused(&self.name, "the view is incomplete"))
    }

    /// Address at which the views are served; `None` before it starts and once it ends.
    pub fn view_address(&self) -> Option<SocketAddr> {
        self.views.as_ref().map(Server::address)
    }

    /// Address of P4Runtime, likewise.
    pub fn p4runtime_address(&self) -> Option<SocketAddr> {
        self.p4runtime.as_ref().map(Server::address)
    }

    /// Number of a register in P4Runtime.
    ///
    /// # Errors
    /// `EV003` if there is no such register.
    pub fn register_id(&self, register: &str) -> Result<u32, EvalError> {
        let found = names::find(&self.parts.info().registers, register, "register");
        let found = found.map_err(|wrong| refused(&self.name, wrong))?;
        Ok(names::id(found))
    }

    /// A client of the views, on a connection of its own.
    ///
    /// # Errors
    /// `EV003` if there is no connection.
    pub(super) fn views(&self) -> Result<Views, EvalError> {
        Views::connect(&self.name, self.runtime.clone(), self.view_address())
    }

    /// A client of P4Runtime, on a connection of its own.
    ///
    /// # Errors
    /// `EV003` if there is no connection.
    pub(super) fn p4runtime(&self) -> Result<P4Runtime, EvalError> {
        let (runtime, info) = (self.runtime.clone(), self.parts.info());
        P4Runtime::connect(&self.name, runtime, self.p4runtime_address(), info)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.views.take());
        drop(self.p4runtime.take());
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The file of an engine at `listen` that follows all groups of a switch, by address and port, and keeps its
/// log in `data`.
pub fn engine_file(
    plan: &Plan,
    switch: (Ipv4Addr, u16),
    listen: Ipv4Addr,
    data: &Path,
) -> SyncEngineFile {
    let groups = plan.groups.iter().map(|group| GroupFile {
        name: group.name.clone(),
        switch: switch.0,
        port: switch.1,
        group: group.group,
        locations: group.locations,
        batch: plan.batch,
        poll_us: 2_000,
        retry_us: 5_000,
        windows: 1,
        metrics: Vec::new(),
        counter_bits: None,
    });
    SyncEngineFile {
        listen,
        port: 0,
        data: Some(data.to_owned()),
        etcd: None,
        rpc: None,
        groups: groups.collect(),
        flows: Vec::new(),
        redis: None,
    }
}

/// Packets that come to a switch.
struct Traffic {
    /// Frames and their ports, which come again and again.
    frames: Vec<(u16, Vec<u8>)>,
    /// Of them each second.
    rate: u64,
}

/// A switch that is set up, and its end of the channel to P4Runtime's server.
type Device = (Switch<Native>, Driver<Native>);

/// The switch's thread: machine code stays in the thread that made it.
fn device(
    parts: &Parts,
    traffic: &Traffic,
    socket: &UdpSocket,
    shared: &Shared,
    give: &mpsc::Sender<Begun>,
) {
    let made = set_up(parts, traffic);
    let (said, device) = match made {
        Ok((device, client)) => (Ok(client), Some(device)),
        Err(reason) => (Err(reason), None),
    };
    if give.send(said).is_ok()
        && let Some((switch, driver)) = device
    {
        forward(switch, driver, traffic, socket, shared);
    }
}

fn set_up(
    parts: &Parts,
    traffic: &Traffic,
) -> Result<(Device, stateplane_rpc::Client<Native>), String> {
    let engine = parts.load().map_err(|it| it.to_string())?;
    let ports = traffic.frames.iter().map(|(port, _)| *port);
    let ports: BTreeSet<u16> = ports.chain([0, 1, CONTROL_PORT]).collect();
    let config = SwitchConfig {
        ports: ports.into_iter().collect(),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config).map_err(|it| it.to_string())?;
    let sync = Sync {
        switch: 1,
        address: SWITCH,
        turn_us: Some(TURN_US),
        rates: Vec::new(),
        read_only: false,
    };
    let applied = sync.apply(&mut switch, 7, true);
    applied.map_err(|it| it.to_string())?;
    let options = Options {
        device_id: DEVICE,
        cpu_port: None,
        epoch_ns: 0,
        port_names: BTreeMap::new(),
    };
    let core = Core::new(options, parts.prepared(), &switch);
    let channel = stateplane_rpc::channel(core.map_err(|it| it.to_string())?);
    let (driver, client) = channel.map_err(|it| it.to_string())?;
    Ok(((switch, driver), client))
}

/// Lets packets come at a steady rate, and passes on what engine and controllers say.
fn forward(
    mut switch: Switch<Native>,
    mut driver: Driver<Native>,
    traffic: &Traffic,
    socket: &UdpSocket,
    shared: &Shared,
) {
    let mut frames = traffic.frames.iter().cycle();
    let mut buffer = [0; 2048];
    let (start, mut now) = (Instant::now(), 1_000_000);
    let (mut came, mut owed) = (0, 0);
    while !shared.stop.load(Ordering::Relaxed) {
        if shared.stands_still.load(Ordering::Relaxed) {
            std::thread::sleep(STILL);
            continue;
        }
        let until = 1_000_000 + start.elapsed().as_micros() as u64;
        now = until.saturating_sub(STEPS * TURN_US).max(now);
        let mut is_idle = true;
        while now + TURN_US <= until {
            now += TURN_US;
            if !shared.paused.load(Ordering::Relaxed) {
                owed += traffic.rate * TURN_US;
            }
            for (port, frame) in frames.by_ref().take((owed / 1_000_000) as usize) {
                switch.handle_frame(now, *port, frame);
                came += 1;
            }
            owed %= 1_000_000;
            switch.handle_timeout(now);
            transmit(&mut switch, socket);
        }
        shared.packets.store(came, Ordering::Relaxed);
        for _ in 0..BURST {
            let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut buffer) else {
                break;
            };
            is_idle = false;
            if let Some(frame) = link::wrap(from, &buffer[..length]) {
                switch.handle_frame(now, CONTROL_PORT, &frame);
                transmit(&mut switch, socket);
            }
        }
        driver.serve(&mut switch, now);
        if is_idle {
            std::thread::sleep(REST);
        }
    }
}

/// Gives the engine what the switch says to it; other frames leave.
fn transmit(switch: &mut Switch<Native>, socket: &UdpSocket) {
    while let Some(sent) = switch.poll_transmit() {
        if sent.port == CONTROL_PORT
            && let Some((to, payload)) = link::unwrap(&sent.frame)
        {
            // Datagrams that the system does not take are lost, as on a wire.
            let _ = socket.send_to(payload, to);
        }
        switch.recycle(sent.frame);
    }
}

#[cfg(test)]
mod tests;
