//! A chain of the store in process: datagrams take no time.
//!
//! It is part of what is measured and no simulator: time is the caller's, nothing waits, is
//! lost or fails, and so it has no net (`stateplane-world`), whose queue would be measured too.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::app;
use stateplane_host::deployment::Deployment;
use stateplane_store::{Destination, Replica};
use std::path::Path;
use std::sync::Arc;

/// The deployment of the lab's chain, for an application.
///
/// # Panics
///
/// If there is no such application.
pub fn store_of(application: &str) -> String {
    let application = app(application).expect("an application");
    let chain = include_str!("../../../../lab/apps/store.toml");
    format!("{chain}\n{}", application.room().store_file())
}

/// Replicas that pass each other what they send.
pub struct Chain {
    replicas: Vec<Replica>,
}

/// A reply, and the switch that it goes to.
pub type Reply = (SocketAddrV4, Arc<Vec<u8>>);

impl Chain {
    /// A chain of `length` replicas with the classes and pools of the store's file
    /// `text`.
    ///
    /// # Panics
    ///
    /// If the file is wrong.
    pub fn new(text: &str, length: u8) -> Chain {
        let deployment = Deployment::parse(Path::new("store.toml"), text);
        let mut deployment = deployment.expect("a store's file");
        let addresses = (0..length).map(|position| Ipv4Addr::new(10, 10, 0, 11 + position));
        let addresses: Vec<Ipv4Addr> = addresses.collect();
        let replication = deployment.replication_mut().expect("a store's section");
        replication.chain.clone_from(&addresses);
        let replicas = addresses.into_iter().map(|address| {
            deployment.listen = address;
            let config = deployment.replica_config().expect("a configuration");
            Replica::new(config, 1).expect("a replica")
        });
        Chain {
            replicas: replicas.collect(),
        }
    }

    /// Address of the replica that answers.
    pub fn tail(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 10, 0, 10 + self.replicas.len() as u8)
    }

    /// Gives a request to the head, carries everything, and passes replies to `reply`.
    pub fn request(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        request: &[u8],
        reply: impl FnMut(Reply),
    ) {
        self.replicas[0].handle_request(now, from, request);
        self.settle(now, reply);
    }

    /// Gives a burst of requests to the head, carries everything, and passes replies to
    /// `reply`.
    pub fn burst<'a>(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        requests: impl Iterator<Item = &'a [u8]> + Clone,
        mut reply: impl FnMut(Reply),
    ) {
        self.replicas[0].look_ahead(requests.clone());
        for request in requests {
            self.replicas[0].handle_request(now, from, request);
        }
        self.settle(now, &mut reply);
    }

    /// Lets time pass to `now`, and passes what the replicas send by themselves to `reply`.
    pub fn advance(&mut self, now: u64, mut reply: impl FnMut(Reply)) {
        for replica in &mut self.replicas {
            if replica.poll_timeout().is_some_and(|due| due <= now) {
                replica.handle_timeout(now);
            }
        }
        self.settle(now, &mut reply);
    }

    /// Writes that the head has installed.
    pub fn written(&self) -> u64 {
        self.replicas[0].counters().written
    }

    fn settle(&mut self, now: u64, mut reply: impl FnMut(Reply)) {
        let mut busy = true;
        while busy {
            busy = false;
            for position in 0..self.replicas.len() {
                while let Some(transmit) = self.replicas[position].poll_transmit(now) {
                    busy = true;
                    match transmit.to {
                        Destination::Switch(switch) => reply((switch, transmit.bytes)),
                        Destination::Replica(to) => self.replicas[usize::from(to)].handle_chain(
                            now,
                            position as u8,
                            &transmit.bytes,
                        ),
                    }
                }
            }
        }
    }
}
