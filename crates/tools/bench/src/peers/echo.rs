//! Threads behind UDP sockets that only pass on what comes.

use crate::loopback::Threads;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time until a thread sees that it is to stop.
const GLANCE: Duration = Duration::from_millis(100);

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
        let mut threads = Threads::default();
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

    /// Address to which datagrams are sent.
    pub fn head(&self) -> SocketAddrV4 {
        self.head
    }
}
