//! Connections of controllers: how many may be open, and which are closed to make room.
//!
//! A connection is idle while no call is open on it. Where a new connection finds the places
//! taken, all of them or those of its address, an idle one is closed for it: first one that
//! has not finished its handshake, then the one that has been idle for longest. A connection
//! with an open call is never closed for another. A client that does not finish the
//! handshakes of TLS and HTTP/2 in time is cut off; later on, HTTP/2 pings find out whether it
//! is still there.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::codegen::http;
use tonic::transport::server::Connected;

/// Bytes with which a client of HTTP/2 begins.
const PREFACE: usize = 24;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at one time.
    pub(crate) total: usize,
    /// Connections of one address at one time.
    pub(crate) per_address: usize,
    /// Time for the handshakes of TLS and HTTP/2.
    pub(crate) handshake: Duration,
}

/// Counts of connections since the server started, and those that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Open connections.
    pub open: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Idle connections that were closed to make room.
    pub closed_idle: u64,
    /// Connections that were closed because their handshake took too long.
    pub closed_late: u64,
    /// Connections that were refused: all places were taken by others with open calls.
    pub refused: u64,
}

/// The open connections of a server.
#[derive(Debug)]
pub(crate) struct Pool {
    limits: Limits,
    places: Mutex<BTreeMap<u64, Arc<Place>>>,
    accepted: AtomicU64,
    closed_idle: AtomicU64,
    closed_late: AtomicU64,
    refused: AtomicU64,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Place {
    address: IpAddr,
    accepted: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Calls that are open.
    calls: u32,
    /// When the last call ended, or the connection was accepted.
    idle_since: Instant,
    /// Bytes that were read since TLS was agreed upon, or without TLS all of them; `None`
    /// before that.
    read: Option<usize>,
    closed: bool,
    /// Task that serves the connection.
    waker: Option<Waker>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    fn new(address: IpAddr, now: Instant) -> Place {
        Place {
            address,
            accepted: now,
            state: Mutex::new(State {
                calls: 0,
                idle_since: now,
                read: None,
                closed: false,
                waker: None,
            }),
        }
    }

    /// True once the client has begun to speak HTTP/2.
    fn is_greeted(&self) -> bool {
        locked(&self.state).read.is_some_and(|read| read >= PREFACE)
    }

    /// Ends the connection: its task reads the end of the stream.
    fn close(&self) {
        let mut state = locked(&self.state);
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// True if the connection is to end; if not, `context` is woken when it is.
    fn has_ended(&self, context: &Context<'_>) -> bool {
        let mut state = locked(&self.state);
        if !state.closed {
            let known = state.waker.as_ref();
            if !known.is_some_and(|waker| waker.will_wake(context.waker())) {
                state.waker = Some(context.waker().clone());
            }
        }
        state.closed
    }
}

impl Pool {
    pub(crate) fn new(limits: Limits) -> Pool {
        Pool {
            limits,
            places: Mutex::default(),
            accepted: AtomicU64::new(0),
            closed_idle: AtomicU64::new(0),
            closed_late: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Counts of the connections.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConnectionCounts {
            open: locked(&self.places).len() as u64,
            accepted: count(&self.accepted),
            closed_idle: count(&self.closed_idle),
            closed_late: count(&self.closed_late),
            refused: count(&self.refused),
        }
    }

    /// A place for a connection from `address`, for which an idle one may be closed; `None`
    /// if all that could be closed have open calls.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Admission> {
        let address = address.to_canonical();
        let mut places = locked(&self.places);
        let of_address = places.values().filter(|place| place.address == address);
        let full = of_address.count() >= self.limits.per_address;
        if full || places.len() >= self.limits.total {
            let closed = make_room(&mut places, |place| !full || place.address == address);
            let counter = if closed.is_some() {
                &self.closed_idle
            } else {
                &self.refused
            };
            counter.fetch_add(1, Ordering::Relaxed);
            closed?;
        }
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let place = Arc::new(Place::new(address, now));
        places.insert(number, place.clone());
        Some(Admission {
            pool: self.clone(),
            number,
            place,
        })
    }

    /// Closes the connections whose handshake has taken too long at `now`.
    pub(crate) fn expire(&self, now: Instant) {
        locked(&self.places).retain(|_, place| {
            let waited = now.saturating_duration_since(place.accepted);
            let late = waited >= self.limits.handshake && !place.is_greeted();
            if late {
                self.closed_late.fetch_add(1, Ordering::Relaxed);
                place.close();
            }
            !late
        });
    }
}

/// Closes the least useful idle connection among those that `may` says.
fn make_room(places: &mut BTreeMap<u64, Arc<Place>>, may: impl Fn(&Place) -> bool) -> Option<()> {
    let idle = places.iter().filter(|(_, place)| may(place));
    let idle = idle.filter_map(|(number, place)| {
        let greeted = place.is_greeted();
        let state = locked(&place.state);
        (state.calls == 0).then_some((greeted, state.idle_since, *number))
    });
    let (_, _, number) = idle.min()?;
    places.remove(&number)?.close();
    Some(())
}

/// A place in the pool, given back when dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    pool: Arc<Pool>,
    number: u64,
    place: Arc<Place>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        locked(&self.pool.places).remove(&self.number);
    }
}

/// An open call: while it lives, its connection is not idle.
#[derive(Debug)]
pub struct Call(Arc<Place>);

impl Call {
    fn begin(place: &Arc<Place>) -> Call {
        locked(&place.state).calls += 1;
        Call(place.clone())
    }

    /// Marks a request as a call of its connection.
    pub(crate) fn mark<B>(mut request: http::Request<B>) -> http::Request<B> {
        if let Some(place) = request.extensions().get::<Arc<Place>>() {
            let call = Arc::new(Call::begin(place));
            request.extensions_mut().insert(call);
        }
        request
    }

    /// The call of a marked request, to be kept until it is answered.
    #[must_use]
    pub fn of<T>(request: &tonic::Request<T>) -> Option<Arc<Call>> {
        request.extensions().get::<Arc<Call>>().cloned()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.calls -= 1;
        state.idle_since = Instant::now();
    }
}

/// A stream with its place in the pool.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) admission: Admission,
}

impl Connected for Connection {
    type ConnectInfo = Arc<Place>;

    /// The place of the connection. It is asked for when TLS has been agreed upon, where TLS
    /// is spoken, and at once where it is not.
    fn connect_info(&self) -> Arc<Place> {
        let place = &self.admission.place;
        locked(&place.state).read.get_or_insert(0);
        place.clone()
    }
}

impl Connection {
    fn ended() -> io::Error {
        io::Error::new(io::ErrorKind::BrokenPipe, "closed to make room")
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.admission.place.has_ended(context) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        if read > 0 {
            let mut state = locked(&self.admission.place.state);
            state.read = state.read.map(|before| before.saturating_add(read));
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.admission.place.has_ended(context) {
            return Poll::Ready(Err(Connection::ended()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.admission.place.has_ended(context) {
            return Poll::Ready(Err(Connection::ended()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    /// HTTP/2 then writes a frame's header and its data by one system call.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.admission.place.has_ended(context) {
            return Poll::Ready(Err(Connection::ended()));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const LIMITS: Limits = Limits {
        total: 4,
        per_address: 3,
        handshake: Duration::from_secs(10),
    };

    fn at(seconds: u64, start: Instant) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn greet(admission: &Admission) {
        locked(&admission.place.state).read = Some(PREFACE);
    }

    fn is_closed(admission: &Admission) -> bool {
        locked(&admission.place.state).closed
    }

    #[test]
    fn silent_connections_go_before_idle_ones_and_busy_ones_never() {
        let pool = Arc::new(Pool::new(LIMITS));
        let start = Instant::now();
        let admit = |last, second| pool.admit(address(last), at(second, start));
        let busy = admit(1, 0).unwrap();
        greet(&busy);
        let call = Call::begin(&busy.place);
        let idle = admit(1, 1).unwrap();
        greet(&idle);
        let silent = admit(1, 2).unwrap();
        let fourth = admit(1, 3).unwrap();
        let closed = [&busy, &idle, &silent, &fourth].map(is_closed);
        assert_eq!(
            closed,
            [false, false, true, false],
            "one of three was silent"
        );
        greet(&fourth);
        let fifth = admit(1, 4).unwrap();
        greet(&fifth);
        assert!(is_closed(&idle), "it was idle for longest");
        let calls = [&fourth, &fifth].map(|it| Call::begin(&it.place));
        assert!(admit(1, 5).is_none(), "all of that address have calls");
        let other = admit(2, 5).unwrap();
        let last = admit(3, 6).unwrap();
        assert!(is_closed(&other), "of all four it alone had no call");
        drop((call, calls));
        assert!(
            ![&busy, &fourth, &fifth, &last]
                .map(is_closed)
                .contains(&true)
        );
        drop((busy, idle, silent, fourth, fifth, other));
        let counts = ConnectionCounts {
            open: 1,
            accepted: 7,
            closed_idle: 3,
            closed_late: 0,
            refused: 1,
        };
        assert_eq!(pool.counts(), counts);
    }

    #[test]
    fn parts_are_written_by_one_call_until_it_is_closed() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(to).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let pool = Arc::new(Pool::new(LIMITS));
            let admission = pool.admit(address(1), Instant::now()).unwrap();
            let mut connection = Connection { stream, admission };
            assert!(connection.is_write_vectored());
            let parts = [&b"header"[..], &b"data"[..]].map(IoSlice::new);
            assert_eq!(connection.write_vectored(&parts).await.unwrap(), 10);
            let mut read = [0; 10];
            client.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"headerdata");
            connection.admission.place.close();
            assert!(connection.write_vectored(&parts).await.is_err());
        });
    }

    #[test]
    fn handshakes_have_a_time_limit() {
        let pool = Arc::new(Pool::new(LIMITS));
        let start = Instant::now();
        let silent = pool.admit(address(1), start).unwrap();
        let greeted = pool.admit(address(1), start).unwrap();
        greet(&greeted);
        pool.expire(at(9, start));
        assert!(!is_closed(&silent));
        pool.expire(at(10, start));
        assert!(is_closed(&silent) && !is_closed(&greeted));
        let counts = pool.counts();
        assert_eq!((counts.open, counts.closed_late), (1, 1));
    }

    #[test]
    fn an_address_is_the_same_in_either_notation() {
        let pool = Arc::new(Pool::new(Limits {
            per_address: 1,
            ..LIMITS
        }));
        let start = Instant::now();
        let plain = pool.admit(address(1), start).unwrap();
        let mapped = IpAddr::V6(std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
        assert!(pool.admit(mapped, start).is_some());
        assert!(is_closed(&plain));
    }
}
