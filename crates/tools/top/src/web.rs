//! The page: one file without anything from elsewhere, and the data that it draws.

use crate::error::TopError;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

const PAGE: &str = include_str!("page.html");

/// The page may ask its own server alone, and has its script and style in itself.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'";

/// JSON that the page asks for.
#[derive(Clone, Default)]
pub(crate) struct Data(Arc<Mutex<String>>);

impl Data {
    /// Puts another text in the place of the last one.
    pub(crate) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn get(&self) -> String {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone()
    }
}

/// A server that runs on a thread of its own until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

async fn page() -> impl IntoResponse {
    ([(CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE))
}

async fn json(data: Data) -> impl IntoResponse {
    let kind = (CONTENT_TYPE, "application/json");
    ([kind, (CACHE_CONTROL, "no-store")], data.get())
}

impl Server {
    /// Serves the page at `/`, and `data` at `/data.json`.
    ///
    /// # Errors
    ///
    /// [`TopError::Serve`] if the address is taken or not one of this machine.
    pub(crate) fn start(address: SocketAddr, data: &Data) -> Result<Server, TopError> {
        let failed = |cause: io::Error| TopError::Serve { address, cause };
        let built = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = built.map_err(failed)?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address));
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let data = data.clone();
        let router = Router::new()
            .route("/", get(page))
            .route("/data.json", get(move || json(data.clone())));
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = async move {
            tokio::select! {
                _ = axum::serve(listener, router) => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new().name("page".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve));
        Ok(Server {
            address,
            stop: Some(stop),
            thread: Some(thread.map_err(failed)?),
        })
    }

    /// Address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn ask(address: SocketAddr, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("{method} {path} HTTP/1.1\r\nHost: top\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn the_page_and_its_data_are_served_and_nothing_else() {
        let data = Data::default();
        data.set("{}".to_owned());
        let any = "127.0.0.1:0".parse().expect("an address");
        let server = Server::start(any, &data).expect("a port is free");
        let address = server.address();
        let page = ask(address, "GET", "/");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(page.contains("default-src 'none'"), "{page}");
        assert!(page.ends_with("</html>\n"), "{page}");
        assert!(ask(address, "GET", "/data.json").ends_with("\r\n\r\n{}"));
        data.set("[1]".to_owned());
        assert!(ask(address, "GET", "/data.json?x").ends_with("\r\n\r\n[1]"));
        assert!(ask(address, "GET", "/other").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST", "/data.json").starts_with("HTTP/1.1 405"));
        assert!(Server::start(address, &data).is_err());
    }

    #[test]
    fn the_page_takes_nothing_from_elsewhere() {
        for begin in ["http:", "https:", "//cdn", "<link", "src="] {
            let found = PAGE
                .find(begin)
                .map(|at| &PAGE[at..PAGE.len().min(at + 40)]);
            let is_name = found.is_some_and(|it| it.starts_with("http://www.w3.org/2000/svg"));
            assert!(found.is_none() || is_name, "{found:?}");
        }
    }
}
