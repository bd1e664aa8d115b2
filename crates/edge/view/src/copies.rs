//! Copies of views and windows in a Redis or Valkey server, for readers that know it.
//!
//! Of group `G` with the prefix `P` the server has
//!
//! * `P:G:values`, a string: the values, 8 bytes each, little-endian; none while the view is
//!   incomplete;
//! * `P:G:told`, a hash: what the view promised, and `at_us`, a time of the server's clock when
//!   the promise held already. A reader that asks for both and for `TIME` in one transaction has
//!   values of which the mark is at most `age_us + (TIME − at_us)` old;
//! * `P:G:windows`, a stream: kept windows, whose ids are their numbers.
//!
//! String and hash are written by one script, which an engine with a lower term than the last
//! one's is refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::{Client, Connection, RedisError, RedisResult, Value, cmd};
use stateplane_host::remote::Remote;
use stateplane_host::sync::{Reading, RedisFile, RedisReport, SyncServer, ViewError, Window};

/// Time that server and engine have to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time before the next try to reach the server.
const PAUSE: Duration = Duration::from_millis(500);

/// Windows of a group that are copied before the next view.
const WINDOWS: usize = 16;

/// Takes a view unless that of a higher term is there. Terms have 20 digits, so that their order
/// is that of strings: numbers of the script's language have 53 bits.
const TAKE: &str = "\
    local term = redis.call('HGET', KEYS[1], 'term')
    if term and term > ARGV[1] then return 0 end
    redis.call('DEL', KEYS[1])
    redis.call('HSET', KEYS[1], 'term', ARGV[1], unpack(ARGV, 3))
    if ARGV[2] == '' then redis.call('DEL', KEYS[2]) else redis.call('SET', KEYS[2], ARGV[2]) end
    return 1";

/// The URL of a server cannot be understood.
#[derive(Debug)]
pub struct UrlError(RedisError);

impl UrlError {
    /// A short stable code.
    pub fn code(&self) -> &'static str {
        "SYNC030"
    }
}

impl std::fmt::Display for UrlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`url` of [redis]: {}", self.0)
    }
}

impl std::error::Error for UrlError {}

#[derive(Default)]
struct Counters {
    connected: AtomicBool,
    views: AtomicU64,
    fenced: AtomicU64,
    windows: AtomicU64,
    repeated: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// A thread that keeps copies. It ends when this is dropped.
pub struct RedisCopies {
    counters: Arc<Counters>,
    /// As long as it lives the thread goes on.
    alive: Option<Arc<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RedisCopies {
    /// Begins to copy the views and windows of `groups`. A server that cannot be reached is tried
    /// again every half second, and costs the engine nothing.
    ///
    /// # Errors
    ///
    /// [`UrlError`].
    pub fn begin(
        remote: Arc<Remote<SyncServer>>,
        file: &RedisFile,
        groups: Vec<String>,
    ) -> Result<RedisCopies, UrlError> {
        let client = Client::open(file.url.as_str()).map_err(UrlError)?;
        let counters = Arc::new(Counters::default());
        let alive = Arc::new(());
        let copier = Copier {
            client,
            remote,
            file: file.clone(),
            groups,
            counters: counters.clone(),
            alive: Arc::downgrade(&alive),
        };
        Ok(RedisCopies {
            counters,
            alive: Some(alive),
            thread: Some(thread::spawn(move || copier.run())),
        })
    }

    /// The counts since the begin.
    pub fn report(&self) -> RedisReport {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RedisReport {
            connected: self.counters.connected.load(Ordering::Relaxed),
            views: of(&self.counters.views),
            fenced: of(&self.counters.fenced),
            windows: of(&self.counters.windows),
            repeated: of(&self.counters.repeated),
            lost: of(&self.counters.lost),
            failed: of(&self.counters.failed),
        }
    }
}

impl Drop for RedisCopies {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The thread's part.
struct Copier {
    client: Client,
    remote: Arc<Remote<SyncServer>>,
    file: RedisFile,
    groups: Vec<String>,
    counters: Arc<Counters>,
    alive: Weak<()>,
}

/// The server did not do what it was asked, or the engine has ended.
enum Ended {
    Server,
    Engine,
}

impl From<RedisError> for Ended {
    fn from(_: RedisError) -> Ended {
        Ended::Server
    }
}

impl Copier {
    fn run(&self) {
        let mut is_first = true;
        while self.alive.strong_count() > 0 {
            let ended = self.copy();
            let was_connected = self.counters.connected.swap(false, Ordering::Relaxed);
            match ended {
                Ok(()) | Err(Ended::Engine) => return,
                Err(Ended::Server) => count(&self.counters.failed, 1),
            }
            if was_connected || is_first {
                tracing::warn!(
                    prefix = self.file.prefix,
                    "the Redis server does not answer"
                );
            }
            is_first = false;
            thread::park_timeout(PAUSE);
        }
    }

    /// Copies until the server fails, or nobody wants it any more.
    fn copy(&self) -> Result<(), Ended> {
        let mut connection = self.client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let mut copied: Vec<u64> = Vec::new();
        let mut term = None;
        self.counters.connected.store(true, Ordering::Relaxed);
        tracing::info!(prefix = self.file.prefix, "copies go to the Redis server");
        while self.alive.strong_count() > 0 {
            let leads = self.ask(|server| server.check_leads().map(|()| server.term()))?;
            let before = std::mem::replace(&mut term, leads.ok());
            if term.is_some() && term != before {
                // Another engine may have copied windows meanwhile.
                copied.clear();
                for group in &self.groups {
                    copied.push(last_window(&mut connection, &self.key(group, "windows"))?);
                }
            }
            if term.is_none() {
                thread::park_timeout(Duration::from_millis(self.file.interval_ms));
                continue;
            }
            for (group, copied) in self.groups.iter().zip(&mut copied) {
                self.view(&mut connection, group)?;
                self.windows(&mut connection, group, copied)?;
            }
            thread::park_timeout(Duration::from_millis(self.file.interval_ms));
        }
        Ok(())
    }

    fn key(&self, group: &str, what: &str) -> String {
        format!("{}:{group}:{what}", self.file.prefix)
    }

    /// Lets the engine do `work`.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SyncServer) -> Result<T, ViewError> + Send + 'static,
    ) -> Result<Result<T, ViewError>, Ended> {
        self.remote.call(work).ok_or(Ended::Engine)
    }

    fn view(&self, connection: &mut Connection, group: &str) -> Result<(), Ended> {
        // The server's time before the view is read, so that the age is never too low.
        let (seconds, micros): (u64, u64) = cmd("TIME").query(connection)?;
        let name = group.to_owned();
        let asked = self.ask(move |server| Ok((server.term(), server.present(&name)?)))?;
        let Ok((term, reading)) = asked else {
            return Ok(());
        };
        let mut script = cmd("EVAL");
        script
            .arg(TAKE)
            .arg(2)
            .arg(self.key(group, "told"))
            .arg(self.key(group, "values"))
            .arg(format!("{term:020}"));
        match &reading {
            Some(reading) => script.arg(reading.values.as_slice()),
            None => script.arg(""),
        };
        script.arg(fields(reading.as_ref(), seconds * 1_000_000 + micros));
        let taken: u64 = script.query(connection)?;
        let counter = match taken {
            0 => &self.counters.fenced,
            _ => &self.counters.views,
        };
        count(counter, 1);
        Ok(())
    }

    /// Copies windows behind number `copied`.
    fn windows(
        &self,
        connection: &mut Connection,
        group: &str,
        copied: &mut u64,
    ) -> Result<(), Ended> {
        for _ in 0..WINDOWS {
            let (name, after) = (group.to_owned(), *copied);
            match self.ask(move |server| server.window_after(&name, after))? {
                Ok(Some(window)) => {
                    let key = self.key(group, "windows");
                    let counter = if add(connection, &key, self.file.windows, &window)? {
                        &self.counters.windows
                    } else {
                        &self.counters.repeated
                    };
                    count(counter, 1);
                    *copied = window.number;
                }
                Err(ViewError::Gone { after, oldest }) => {
                    count(&self.counters.lost, oldest - after - 1);
                    *copied = oldest - 1;
                }
                Ok(None) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The promise of a view as fields of a hash and their values. Without a bound, or a view, the
/// fields are missing.
fn fields(reading: Option<&Reading>, at_us: u64) -> Vec<(&'static str, u64)> {
    let Some(told) = reading.map(|reading| reading.told) else {
        return vec![("complete", 0), ("at_us", at_us)];
    };
    let mut fields = vec![
        ("complete", 1),
        ("at_us", at_us),
        ("age_us", told.age_us),
        ("all_but", told.all_but),
        ("within", told.within),
        ("stamp", told.stamp),
        ("generation", told.generation),
        ("incarnation", told.incarnation.into()),
        ("epoch", told.epoch.into()),
    ];
    fields.extend(told.bound.map(|bound| ("bound", bound)));
    fields
}

/// Number of the last window that a stream has had; 0 if there is none.
fn last_window(connection: &mut Connection, key: &str) -> RedisResult<u64> {
    let entries: Vec<(String, Value)> = cmd("XREVRANGE")
        .arg(key)
        .arg("+")
        .arg("-")
        .arg("COUNT")
        .arg(1)
        .query(connection)?;
    let id = entries.first().and_then(|(id, _)| id.split('-').next());
    Ok(id.and_then(|id| id.parse().ok()).unwrap_or(0))
}

/// Adds a window to a stream; false if the server refuses its number.
fn add(connection: &mut Connection, key: &str, most: usize, window: &Window) -> RedisResult<bool> {
    let mut command = cmd("XADD");
    command
        .arg(key)
        .arg("MAXLEN")
        .arg("~")
        .arg(most)
        .arg(format!("{}-0", window.number))
        .arg(&[("incarnation", window.incarnation), ("epoch", window.epoch)])
        .arg("values")
        .arg(window.values.as_slice());
    match command.exec(connection) {
        Ok(()) => Ok(true),
        Err(error) if error.to_string().contains("equal or smaller") => Ok(false),
        Err(error) => Err(error),
    }
}
