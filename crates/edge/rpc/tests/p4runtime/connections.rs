//! Connections on which nothing happens keep nobody out.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::support;
use crate::support::server::{Running, l2};
use crate::support::update;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stateplane_rpc::Tls;
use stateplane_rpc::proto::v1::p4_runtime_client::P4RuntimeClient;
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

/// A certificate for 127.0.0.1 with its key, and its root.
fn keys() -> (Tls, Vec<u8>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &root).unwrap();
    let tls = Tls {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        client_roots: None,
    };
    (tls, root.pem().into_bytes())
}

/// A client of its own connection, that gives up after five seconds.
async fn client(
    running: &Running,
    roots: Option<&[u8]>,
) -> Result<P4RuntimeClient<Channel>, tonic::transport::Error> {
    let address = running.server.address();
    let patience = Duration::from_secs(5);
    let endpoint = match roots {
        Some(roots) => {
            let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(roots));
            Endpoint::from_shared(format!("https://{address}"))?.tls_config(config)?
        }
        None => Endpoint::from_shared(format!("http://{address}"))?,
    };
    let endpoint = endpoint.connect_timeout(patience).timeout(patience);
    Ok(P4RuntimeClient::new(endpoint.connect().await?))
}

/// Connections that say nothing, or the beginning of something.
fn silent(address: SocketAddr, count: usize, beginning: &[u8]) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may have closed it already.
        let _ = stream.write_all(beginning);
        stream
    };
    (0..count).map(connect).collect()
}

async fn stays_open(running: &Running, roots: Option<&[u8]>, beginnings: [&[u8]; 2]) {
    let address = running.server.address();
    let (say, said) = tokio::sync::mpsc::channel(4);
    let mut primary = client(running, roots).await.unwrap();
    let told = primary.stream_channel(tokio_stream::wrappers::ReceiverStream::new(said));
    say.send(v1::StreamMessageRequest {
        update: Some(support::arbitration(1)),
    })
    .await
    .unwrap();
    let mut told = told.await.unwrap().into_inner();
    told.message().await.unwrap().expect("an arbitration");
    let mut sockets = Vec::new();
    for (round, beginning) in (1..).zip(beginnings) {
        sockets.extend(silent(address, 300, beginning));
        let mut other = client(running, roots).await.expect("a connection");
        let entry = update(
            Type::Insert,
            Entity::TableEntry(l2(&running.info, round, 1)),
        );
        other.write(running.request(1, vec![entry])).await.unwrap();
    }
    assert!(running.server.connections().open <= 64);
    let closed = running.server.connections().closed_idle;
    assert!(closed >= 536, "{closed} were closed");
    // The connection with a stream, older than all others, is still there.
    say.send(v1::StreamMessageRequest {
        update: Some(support::arbitration(2)),
    })
    .await
    .unwrap();
    told.message().await.unwrap().expect("an arbitration");
    drop(sockets);
}

/// The beginning of HTTP/2: its preface and an empty frame of settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_make_room_for_others() {
    let running = Running::start();
    stays_open(&running, None, [b"", PREFACE]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_of_tls_that_stand_still_make_room_for_others() {
    let (tls, root) = keys();
    let running = tokio::task::spawn_blocking(|| Running::start_with(Some(tls)));
    let running = running.await.unwrap();
    stays_open(&running, Some(&root), [b"", b"\x16\x03\x01\x02\0\x01"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_says_nothing_is_cut_off() {
    let (tls, _) = keys();
    let running =
        tokio::task::spawn_blocking(|| (Running::start(), Running::start_with(Some(tls))));
    let (plain, secret) = running.await.unwrap();
    let mut silent = [&plain, &secret].map(|it| TcpStream::connect(it.server.address()).unwrap());
    let start = Instant::now();
    for stream in &mut silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("an end");
    }
    let waited = start.elapsed();
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    let late = [&plain, &secret].map(|it| it.server.connections().closed_late);
    assert_eq!(late, [1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_leaves_room_for_others() {
    let running = Running::start();
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(running.stream().await);
    }
    // Each of them has a call, so no more come from there.
    let mut refused = TcpStream::connect(running.server.address()).unwrap();
    refused
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    assert_eq!(refused.read(&mut [0; 1]).unwrap(), 0, "closed at once");
    assert_eq!(running.server.connections().refused, 1);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(running.server.address()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut other, PREFACE)
        .await
        .unwrap();
    let mut answer = [0; 1];
    let read = tokio::io::AsyncReadExt::read(&mut other, &mut answer)
        .await
        .unwrap();
    assert_eq!(read, 1, "its settings");
    assert_eq!(running.server.connections().open, 65);
    drop(streams);
}
