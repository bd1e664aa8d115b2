//! A chain of store servers on the loopback interface.

use super::Threads;
use stateplane_host::deployment::Deployment;
use stateplane_host::store::StoreServer;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

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
        let mut threads = Threads::default();
        let mut head = None;
        for (listen, own) in addresses.iter().zip(&quoted) {
            let text = format!(
                "listen = {own}\n[replication]\nchain = [{}]\n[replication.limits]\n\
                 batch = {batch}\n[[replication.class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n",
                quoted.join(", ")
            );
            let deployment = Deployment::parse(Path::new("store.toml"), &text);
            let mut deployment = deployment.expect("a store's file");
            let replication = deployment.replication_mut().expect("a store's section");
            replication.data = data.map(|folder| folder.join(listen.to_string()));
            head.get_or_insert(SocketAddrV4::new(*listen, replication.request_port));
            let server = StoreServer::bind(&deployment, None).expect("addresses of loopback");
            threads.start(move |stop| {
                server.run(stop, &mut |_| {}).expect("loopback");
            });
        }
        Store {
            head: head.expect("a chain"),
            _threads: threads,
        }
    }

    /// Address to which requests are sent.
    pub fn head(&self) -> SocketAddrV4 {
        self.head
    }
}
