//! Threads behind UDP sockets: a chain of store servers, or a chain that only passes on.

use stateplane_host::store::{StoreFile, StoreServer};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time until a thread sees that it is to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// Threads that end with it.
struct Threads {
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    fn new() -> Threads {
        Threads {
            stop: Arc::default(),
            handles: Vec::new(),
        }
    }

    fn start(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) {
        let stop = self.stop.clone();
        self.handles.push(std::thread::spawn(move || work(&stop)));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

/// A chain of store servers, each with a thread and an address of its own.
pub struct Store {
    head: SocketAddrV4,
    _threads: Threads,
}

impl Store {
    /// Starts a chain of `length`, whose entries share datagrams of up to `batch` bytes.
    pub fn start(length: usize, batch: usize) -> Store {
        Store::start_with(length, batch, None)
    }

    /// Starts a chain whose servers keep their state in folders of `data`, beside one that
    /// does not.
    pub fn start_on_disk(length: usize, batch: usize, data: &Path) -> Store {
        Store::start_with(length, batch, Some(data))
    }

    fn start_with(length: usize, batch: usize, data: Option<&Path>) -> Store {
        let first = if data.is_some() { 21 } else { 11 };
        let address = |position: usize| Ipv4Addr::new(127, 93, 0, first + position as u8);
        let addresses: Vec<Ipv4Addr> = (0..length).map(address).collect();
        let quoted: Vec<String> = addresses.iter().map(|at| format!("\"{at}\"")).collect();
        let mut threads = Threads::new();
        let mut head = None;
        for (listen, own) in addresses.iter().zip(&quoted) {
            let text = format!(
                "listen = {own}\nchain = [{}]\n[limits]\nbatch = {batch}\n\
                 [[class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n",
                quoted.join(", ")
            );
            let mut file =
                StoreFile::parse(Path::new("store.toml"), &text).expect("a store's file");
            file.data = data.map(|folder| folder.join(listen.to_string()));
            let server = StoreServer::bind(&file).expect("addresses of loopback");
            head.get_or_insert(SocketAddrV4::new(*listen, file.request_port));
            threads.start(move |stop| {
                server.run(stop, &mut |_| {}).expect("loopback");
            });
        }
        Store {
            head: head.expect("a chain"),
            _threads: threads,
        }
    }

    /// Where requests go.
    pub fn head(&self) -> SocketAddrV4 {
        self.head
    }
}

/// Sockets of which each passes on to the next, and the last to whom the first heard.
pub struct Echo {
    head: SocketAddrV4,
    _threads: Threads,
}

impl Echo {
    /// Starts `length` hops.
    pub fn start(length: usize) -> Echo {
        let sockets: Vec<UdpSocket> = (0..length)
            .map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port of loopback"))
            .collect();
        let addresses: Vec<SocketAddr> = sockets
            .iter()
            .map(|socket| socket.local_addr().expect("an address"))
            .collect();
        let SocketAddr::V4(head) = addresses[0] else {
            unreachable!("an IPv4 address was asked for");
        };
        // The last hop answers who asked: one client, whose address travels ahead.
        let (tell, told) = std::sync::mpsc::channel();
        let mut told = Some(told);
        let mut threads = Threads::new();
        for (at, socket) in sockets.into_iter().enumerate() {
            socket.set_read_timeout(Some(GLANCE)).expect("a timeout");
            let next = addresses.get(at + 1).copied();
            let tell = (at == 0).then(|| tell.clone());
            let told = if next.is_none() { told.take() } else { None };
            threads.start(move |stop| {
                let mut to = next;
                let mut announced = None;
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                        continue;
                    };
                    if let Some(tell) = &tell
                        && announced != Some(from)
                    {
                        announced = Some(from);
                        let _ = tell.send(from);
                    }
                    if let Some(told) = &told
                        && let Ok(client) = told.try_recv()
                    {
                        to = Some(client);
                    }
                    if let Some(to) = to {
                        let _ = socket.send_to(&buffer[..length], to);
                    }
                }
            });
        }
        Echo {
            head,
            _threads: threads,
        }
    }

    /// Where datagrams go.
    pub fn head(&self) -> SocketAddrV4 {
        self.head
    }
}
