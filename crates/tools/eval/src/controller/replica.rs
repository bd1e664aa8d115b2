//! Replicas of a controller: a chain, in which each keeps a decision, hands it on, and says so
//! when all behind have it.

use crate::error::EvalError;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A mapping's key and its public port.
const RECORD: usize = 18;
/// Says that all behind have the record.
const KEPT: u8 = 1;

/// The next of the chain.
pub struct Next {
    address: SocketAddr,
    stream: TcpStream,
}

impl Next {
    /// Connects to it.
    ///
    /// # Errors
    /// `EV006` if no replica listens there.
    pub fn connect(address: SocketAddr) -> Result<Self, EvalError> {
        let connected = TcpStream::connect(address);
        let stream = connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        match stream {
            Ok(stream) => Ok(Self { address, stream }),
            Err(error) => Err(lost(address, error)),
        }
    }

    /// Returns when it and all behind it have a mapping.
    ///
    /// # Errors
    /// `EV006` if it goes away.
    pub fn keep(&mut self, mapping: u128, port: u16) -> Result<(), EvalError> {
        let mut record = [0; RECORD];
        record[..16].copy_from_slice(&mapping.to_be_bytes());
        record[16..].copy_from_slice(&port.to_be_bytes());
        let mut kept = [0];
        self.stream
            .write_all(&record)
            .and_then(|()| self.stream.read_exact(&mut kept))
            .map_err(|error| lost(self.address, error))
    }
}

fn lost(address: SocketAddr, error: io::Error) -> EvalError {
    EvalError::controller(format!("the replica at {address}"), error)
}

/// Keeps what comes until the one before goes away; gives what was kept.
///
/// # Errors
/// `EV006` if the one behind goes away first.
pub fn serve(
    mut before: TcpStream,
    mut next: Option<&mut Next>,
) -> Result<BTreeMap<u128, u16>, EvalError> {
    let failed = |error| EvalError::controller("the controller before", error);
    before.set_nodelay(true).map_err(failed)?;
    let mut kept = BTreeMap::new();
    let mut record = [0; RECORD];
    loop {
        match before.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(kept),
            Err(error) => return Err(failed(error)),
        }
        let mapping = record[..16].iter();
        let mapping = mapping.fold(0, |key, byte| (key << 8) | u128::from(*byte));
        let port = u16::from_be_bytes([record[16], record[17]]);
        kept.insert(mapping, port);
        if let Some(next) = &mut next {
            next.keep(mapping, port)?;
        }
        before.write_all(&[KEPT]).map_err(failed)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn what_is_kept_is_kept_by_all() {
        let (middle, middle_at) = listener();
        let (tail, tail_at) = listener();
        let tail = thread::spawn(move || serve(tail.accept().unwrap().0, None).unwrap());
        let middle = thread::spawn(move || {
            let mut next = Next::connect(tail_at).unwrap();
            serve(middle.accept().unwrap().0, Some(&mut next)).unwrap()
        });
        let mut head = Next::connect(middle_at).unwrap();
        for port in [1024, 1025] {
            head.keep(u128::MAX - u128::from(port), port).unwrap();
        }
        drop(head);
        let wanted =
            BTreeMap::from([1024u16, 1025].map(|port| (u128::MAX - u128::from(port), port)));
        assert_eq!(middle.join().unwrap(), wanted);
        assert_eq!(tail.join().unwrap(), wanted);
    }

    #[test]
    fn nothing_counts_as_kept_when_a_replica_is_gone() {
        let (listener, address) = listener();
        let mut head = Next::connect(address).unwrap();
        drop(listener.accept().unwrap());
        let error = head.keep(1, 1).unwrap_err();
        assert_eq!(error.code(), "EV006");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
