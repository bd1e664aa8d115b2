//! A switch on machine code that a controller drives over gRPC.

use stateplane_native::Native;
use stateplane_rpc::client::names;
use stateplane_rpc::proto::{config, v1};
use stateplane_rpc::{
    Core, Driver, MAX_MESSAGE, Options, PacketHeader, Prepared, Refusal, Server, channel, serve,
};
use stateplane_switch::{Switch, SwitchConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;
use v1::entity::Entity;
use v1::p4_runtime_client::P4RuntimeClient;

const SOURCE: &str = include_str!("../../../../../bench/p4/control.p4");

/// The controller's.
pub const ELECTION_ID: v1::Uint128 = v1::Uint128 { high: 0, low: 1 };

/// Frames between two looks at what controllers want.
const BURST: usize = 64;

/// Longest wait without a look at whether to stop.
const WAIT: Duration = Duration::from_millis(10);

/// A server, the thread of its switch, and a stream that is primary.
pub struct Served {
    server: Option<Server>,
    info: config::P4Info,
    forwarded: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _stream: (
        mpsc::Sender<v1::StreamMessageRequest>,
        Streaming<v1::StreamMessageResponse>,
    ),
}

fn prepare() -> Prepared<Native> {
    let compiled = stateplane_compile::text(SOURCE).program_and_interface();
    let (program, interface) = compiled.expect("the program is right");
    let info = stateplane_p4info::generate(&program, &interface).expect("P4Info");
    Prepared {
        engine: None,
        load: Arc::new(move || {
            Native::new(program.clone(), Default::default()).map_err(Refusal::invalid)
        }),
        info,
        headers: PacketHeader::of(&interface),
    }
}

/// A frame to an address that has an entry.
fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..6].copy_from_slice(&(number % 16).to_be_bytes()[2..]);
    frame[6..12].copy_from_slice(&number.to_be_bytes()[2..]);
    frame
}

/// Serves controllers between bursts of frames, until it is stopped.
fn forward(
    mut switch: Switch<Native>,
    mut driver: Driver<Native>,
    forwarded: &AtomicU64,
    stop: &AtomicBool,
) {
    let frames: Vec<Vec<u8>> = (0..BURST as u64).map(frame).collect();
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let now = start.elapsed().as_micros() as u64;
        for frame in &frames {
            switch.handle_frame(now, 0, frame);
            while let Some(sent) = switch.poll_transmit() {
                switch.recycle(sent.frame);
            }
        }
        forwarded.fetch_add(BURST as u64, Ordering::Relaxed);
        driver.serve(&mut switch, now);
    }
}

/// Serves controllers on request, until it is stopped.
fn wait(mut switch: Switch<Native>, mut driver: Driver<Native>, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let wake = driver.descriptor().try_clone_to_owned();
        let wake = std::os::unix::net::UnixStream::from(wake.expect("a descriptor"));
        let wake = UnixStream::from_std(wake).expect("it can be waited for");
        let start = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let now = start.elapsed().as_micros() as u64;
            if driver.serve(&mut switch, now) == Some(0) {
                continue;
            }
            let _ = tokio::time::timeout(WAIT, wake.readable()).await;
            // The wake-up is a byte without meaning.
            let _ = wake.try_read(&mut [0; 64]);
        }
    });
}

impl Served {
    /// A switch without frames.
    pub fn start(runtime: &Runtime) -> Served {
        Served::with(runtime, false)
    }

    /// A switch that forwards as many frames as it can.
    pub fn forwarding(runtime: &Runtime) -> Served {
        let served = Served::with(runtime, true);
        let entries = (0..16).map(|address| v1::Update {
            r#type: v1::update::Type::Insert.into(),
            entity: Some(v1::Entity {
                entity: Some(Entity::TableEntry(served.entry(address, 1))),
            }),
        });
        let request = v1::WriteRequest {
            device_id: 1,
            election_id: Some(ELECTION_ID),
            updates: entries.collect(),
            ..v1::WriteRequest::default()
        };
        let written = runtime.block_on(served.client(runtime).write(request));
        written.expect("the frames' entries");
        served
    }

    fn with(runtime: &Runtime, frames: bool) -> Served {
        let prepared = prepare();
        let info = prepared.info.clone();
        let (stop, forwarded) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, counted) = (stop.clone(), forwarded.clone());
        let (give, take) = std::sync::mpsc::channel();
        // Machine code stays in the thread that made it.
        let thread = std::thread::spawn(move || {
            let config = SwitchConfig {
                ports: vec![0, 1],
                ..SwitchConfig::default()
            };
            let engine = (prepared.load)().expect("the program loads");
            let switch = Switch::new(engine, config).expect("a switch");
            let options = Options {
                device_id: 1,
                cpu_port: None,
                epoch_ns: 0,
                port_names: BTreeMap::new(),
            };
            let core = Core::new(options, prepared, &switch).expect("a core");
            let (driver, client) = channel(core).expect("a channel");
            give.send(client).expect("the server waits");
            if frames {
                forward(switch, driver, &counted, &stopped)
            } else {
                wait(switch, driver, &stopped)
            }
        });
        let client = take.recv().expect("the switch starts");
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = serve(client, Arc::new(|_: &[u8]| Ok(prepare())), address, None);
        let server = server.expect("a server");
        let address = format!("http://{}", server.address());
        let stream = runtime.block_on(become_primary(address));
        Served {
            server: Some(server),
            info,
            forwarded,
            stop,
            thread: Some(thread),
            _stream: stream,
        }
    }

    /// Frames forwarded so far, by themselves.
    pub fn forwarded(&self) -> Arc<AtomicU64> {
        self.forwarded.clone()
    }

    /// A client on a connection of its own.
    pub fn client(&self, runtime: &Runtime) -> P4RuntimeClient<Channel> {
        let server = self.server.as_ref().expect("it runs until it is dropped");
        let address = format!("http://{}", server.address());
        runtime.block_on(connect(address))
    }

    /// An entry of the table.
    pub fn entry(&self, address: u64, port: u8) -> v1::TableEntry {
        let exact = v1::field_match::Exact {
            value: address.to_be_bytes()[2..].to_vec(),
        };
        v1::TableEntry {
            table_id: self.table(),
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(v1::Action {
                    action_id: names::find(&self.info.actions, "send", "action")
                        .map(names::id)
                        .expect("the program has it"),
                    params: vec![v1::action::Param {
                        param_id: 1,
                        value: vec![port],
                    }],
                })),
            }),
            ..v1::TableEntry::default()
        }
    }

    fn table(&self) -> u32 {
        names::find(&self.info.tables, "hosts", "table")
            .map(names::id)
            .expect("the program has it")
    }

    /// Request for all entries of the table.
    pub fn all_entries(&self) -> Entity {
        Entity::TableEntry(v1::TableEntry {
            table_id: self.table(),
            ..v1::TableEntry::default()
        })
    }

    /// Request for the whole register array.
    pub fn all_elements(&self) -> Entity {
        Entity::RegisterEntry(v1::RegisterEntry {
            register_id: names::find(&self.info.registers, "bytes", "register")
                .map(names::id)
                .expect("the program has it"),
            ..v1::RegisterEntry::default()
        })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn connect(address: String) -> P4RuntimeClient<Channel> {
    let endpoint = Channel::from_shared(address).expect("an address");
    let channel = endpoint.tcp_nodelay(true).connect().await;
    P4RuntimeClient::new(channel.expect("a connection"))
        .max_encoding_message_size(MAX_MESSAGE)
        .max_decoding_message_size(MAX_MESSAGE)
}

async fn become_primary(
    address: String,
) -> (
    mpsc::Sender<v1::StreamMessageRequest>,
    Streaming<v1::StreamMessageResponse>,
) {
    use v1::stream_message_request::Update;
    let (say, said) = mpsc::channel(1);
    let update = v1::MasterArbitrationUpdate {
        device_id: 1,
        election_id: Some(ELECTION_ID),
        ..v1::MasterArbitrationUpdate::default()
    };
    let message = v1::StreamMessageRequest {
        update: Some(Update::Arbitration(update)),
    };
    say.send(message).await.expect("room for a message");
    let told = connect(address)
        .await
        .stream_channel(ReceiverStream::new(said))
        .await;
    let mut told = told.expect("a stream").into_inner();
    let answer = told.message().await.expect("an answer");
    answer.expect("the stream goes on");
    (say, told)
}
