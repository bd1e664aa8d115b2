//! HTTP for operators: `/metrics` for Prometheus, `/healthz` for supervisors, and paths of a
//! server's own.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the server has a socket and a thread"
)]

use axum::Router;
use axum::http::{Method, StatusCode, Uri, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The media type of OpenMetrics text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Gives the metrics of the moment as OpenMetrics text; `None` if what they are of has
/// stopped.
pub type Scrape = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Request of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// True if something is to change (POST), not only to be shown (GET).
    pub changes: bool,
    /// The path, with its `/`.
    pub path: String,
    /// Query behind `?`: names with their values, undecoded.
    pub query: Vec<(String, String)>,
}

impl Question {
    /// The value called `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter();
        let found = pairs.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reply to an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A JSON text.
    Json(String),
    /// The question makes no sense.
    Wrong(String),
    /// The request cannot be answered at present.
    Unavailable(String),
    /// There is nothing at that path.
    Unknown,
}

/// Answers operators.
pub type Answers = Arc<dyn Fn(&Question) -> Reply + Send + Sync>;

/// A server of metrics that runs on a thread of its own until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves what `scrape` gives at `address`.
    ///
    /// # Errors
    ///
    /// If the address is taken or not one of this machine, or no threads are left.
    pub fn start(address: SocketAddr, scrape: Scrape) -> io::Result<MetricsServer> {
        MetricsServer::start_with(address, scrape, Arc::new(|_| Reply::Unknown))
    }

    /// Serves what `scrape` gives at `address`, and beside it what `answers` gives at
    /// other paths.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`start`](Self::start).
    pub fn start_with(
        address: SocketAddr,
        scrape: Scrape,
        answers: Answers,
    ) -> io::Result<MetricsServer> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let health = scrape.clone();
        let router = Router::new()
            .route("/metrics", get(move || metrics(scrape.clone())))
            .route("/healthz", get(move || healthz(health.clone())))
            .fallback(move |method: Method, uri: Uri| reply(answers.clone(), method, uri));
        let serve = async move {
            let server = axum::serve(listener, router);
            // A listener that fails ends the metrics, not the switch.
            tokio::select! {
                _ = server => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || runtime.block_on(serve))?;
        Ok(MetricsServer {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks without keeping the server from other requests.
async fn ask(scrape: Scrape) -> Option<String> {
    let asked = tokio::task::spawn_blocking(move || scrape()).await;
    asked.ok().flatten()
}

async fn metrics(scrape: Scrape) -> Response {
    match ask(scrape).await {
        Some(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn healthz(scrape: Scrape) -> Response {
    match ask(scrape).await {
        Some(_) => "ok\n".into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "stopped\n").into_response(),
    }
}

async fn reply(answers: Answers, method: Method, uri: Uri) -> Response {
    let pairs = uri.query().unwrap_or_default().split('&');
    let question = Question {
        changes: method == Method::POST,
        path: uri.path().to_owned(),
        query: pairs
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    };
    if !question.changes && method != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let replied = tokio::task::spawn_blocking(move || answers(&question)).await;
    match replied.unwrap_or(Reply::Unknown) {
        Reply::Json(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Reply::Wrong(text) => (StatusCode::BAD_REQUEST, text).into_response(),
        Reply::Unavailable(text) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        Reply::Unknown => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: switch\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_answers_until_what_it_tells_of_has_stopped() {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let scrape: Scrape =
            Arc::new(move || (!flag.load(Ordering::Relaxed)).then(|| "a_total 1\n".to_owned()));
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap(), scrape).unwrap();
        let answer = ask(server.address(), "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(OPEN_METRICS), "{answer}");
        assert!(answer.ends_with("\r\n\r\na_total 1\n"), "{answer}");
        assert!(ask(server.address(), "/healthz").ends_with("ok\n"));
        assert!(ask(server.address(), "/other").starts_with("HTTP/1.1 404"));
        stopped.store(true, Ordering::Relaxed);
        assert!(ask(server.address(), "/healthz").starts_with("HTTP/1.1 503"));
    }

    #[test]
    fn operators_are_answered_at_other_paths() {
        let answers: Answers = Arc::new(|question| match question.path.as_str() {
            "/drain" if question.changes => Reply::Json(format!("{:?}", question.value("server"))),
            "/drain" => Reply::Wrong("POST it".to_owned()),
            "/later" => Reply::Unavailable("not yet".to_owned()),
            _ => Reply::Unknown,
        });
        let address = "127.0.0.1:0".parse().unwrap();
        let server = MetricsServer::start_with(address, Arc::new(|| None), answers).unwrap();
        for (path, status) in [("/drain", 400), ("/later", 503), ("/other", 404)] {
            let answer = ask(server.address(), path);
            let begin = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&begin), "{answer}");
        }
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let request = "POST /drain?a=1&server=10.0.0.1 HTTP/1.0\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nSome(\"10.0.0.1\")"), "{answer}");
    }

    #[test]
    fn an_address_that_is_taken_is_an_error() {
        let scrape: Scrape = Arc::new(|| None);
        let first = MetricsServer::start("127.0.0.1:0".parse().unwrap(), scrape.clone()).unwrap();
        assert!(MetricsServer::start(first.address(), scrape).is_err());
    }
}
