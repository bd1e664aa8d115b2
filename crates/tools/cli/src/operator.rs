//! Answers of store servers and controllers to operators over HTTP.

use crate::exit::{CommandError, Failure};
use serde::Serialize;
use stateplane_host::controller::{ControllerError, ControllerServer, DecisionBackend};
use stateplane_host::metrics::{controller_metrics, store_metrics};
use stateplane_host::remote::Remote;
use stateplane_host::store::StoreServer;
use stateplane_host::store::view::{MOST_RECORDS, parse_key};
use stateplane_http::{Answers, MetricsServer, Question, Reply, Scrape};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time for a server to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum time for a replica to reach the entry at which its digest is requested.
const REACH: Duration = Duration::from_secs(1);

/// Serves metrics, health and answers at each of `addresses`, as long as the results live.
///
/// # Errors
///
/// Returns an error if an address is taken or not one of this machine.
pub fn serve(
    addresses: impl IntoIterator<Item = SocketAddr>,
    scrape: &Scrape,
    answers: &Answers,
) -> Result<Vec<MetricsServer>, CommandError> {
    let serve = |address| {
        let server = MetricsServer::start_with(address, scrape.clone(), answers.clone());
        let server = server.map_err(|error| {
            let message = format!("cannot answer operators at {address} (TCP): {error}");
            CommandError::new(Failure::System, message)
        })?;
        eprintln!("operators: http://{}", server.address());
        Ok(server)
    };
    addresses.into_iter().map(serve).collect()
}

fn json(value: Option<impl Serialize>) -> Reply {
    match value.map(|value| serde_json::to_string(&value)) {
        Some(Ok(text)) => Reply::Json(text),
        Some(Err(error)) => Reply::Unavailable(error.to_string()),
        None => Reply::Unavailable("it does not answer".to_owned()),
    }
}

/// The metrics of a store server.
pub fn store_scrape(remote: Arc<Remote<StoreServer>>) -> Scrape {
    Arc::new(move || {
        let asked = remote.call_within(PATIENCE, |store| (store.report(), store.view()));
        let (report, view) = asked?;
        Some(store_metrics(&report, &view))
    })
}

/// Requests that a store server answers: `/store`, `/flow?key=…`, `/records?class=…`,
/// `/digest?chain=…&at=…`.
pub fn store_answers(remote: Arc<Remote<StoreServer>>) -> Answers {
    Arc::new(move |question| match question.path.as_str() {
        "/store" => json(remote.call_within(PATIENCE, |store| store.view())),
        "/flow" => match question.value("key").and_then(parse_key) {
            Some(key) => json(remote.call_within(PATIENCE, move |store| store.flows(&key))),
            None => Reply::Wrong("key: 32 hexadecimal digits".to_owned()),
        },
        "/records" => records(&remote, question),
        "/digest" => digest(&remote, question),
        _ => Reply::Unknown,
    })
}

fn records(remote: &Remote<StoreServer>, question: &Question) -> Reply {
    let Some(class) = question.value("class").and_then(|class| class.parse().ok()) else {
        return Reply::Wrong("class: a flow class, 0 to 255".to_owned());
    };
    match remote.call_within(PATIENCE, move |store| store.records(class)) {
        Some(None) => Reply::Wrong(format!(
            "class {class} has more than {MOST_RECORDS} flows, which are not shown at once"
        )),
        Some(records) => json(records),
        None => json(None::<()>),
    }
}

fn digest(remote: &Remote<StoreServer>, question: &Question) -> Reply {
    let chain = question.value("chain").and_then(|chain| chain.parse().ok());
    let at = question.value("at").and_then(|at| at.parse().ok());
    let (Some(chain), Some(at)): (Option<u16>, Option<u64>) = (chain, at) else {
        return Reply::Wrong("chain and at: the chain's number and the entry's".to_owned());
    };
    match remote.call_within(PATIENCE, move |store| store.mark(chain, at)) {
        Some(true) => {}
        Some(false) => return Reply::Wrong(format!("there is no replica of chain {chain}")),
        None => return json(None::<()>),
    }
    let begin = Instant::now();
    loop {
        let present = begin.elapsed() > REACH;
        let asked = remote.call_within(PATIENCE, move |store| store.digest(chain, present));
        match asked {
            Some(Some(digest)) => return json(Some(digest)),
            Some(None) if !present => std::thread::sleep(Duration::from_millis(5)),
            _ => return json(None::<()>),
        }
    }
}

/// A controller's answer to a change.
fn done(outcome: Option<Result<(), ControllerError>>) -> Reply {
    match outcome {
        Some(Ok(())) => json(Some(true)),
        Some(Err(error)) => Reply::Unavailable(error.to_string()),
        None => Reply::Unavailable("this controller does not lead".to_owned()),
    }
}

/// A controller that may lead.
pub struct Candidate<B: DecisionBackend> {
    /// Reaches it while it leads.
    pub remote: Arc<Remote<ControllerServer<B>>>,
    /// Set while it leads.
    pub leads: Arc<AtomicBool>,
}

impl<B: DecisionBackend> Clone for Candidate<B> {
    fn clone(&self) -> Candidate<B> {
        Candidate {
            remote: self.remote.clone(),
            leads: self.leads.clone(),
        }
    }
}

/// Lets a switch of one of the systems lose its groups, or take part again.
type DrainSwitch<B> = fn(&mut ControllerServer<B>, u32, bool) -> Result<(), ControllerError>;

impl<B: DecisionBackend + 'static> Candidate<B> {
    /// Lets it do `work`, if it leads.
    fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ControllerServer<B>) -> T + Send + 'static,
    ) -> Option<T> {
        let leads = self.leads.load(Ordering::Relaxed);
        leads.then(|| self.remote.call_within(PATIENCE, work))?
    }

    /// The metrics of the controller.
    pub fn scrape(&self) -> Scrape {
        let candidate = self.clone();
        Arc::new(move || {
            let asked = candidate.call(|server| {
                let coordination = server.coordination_view();
                let multicast = server.multicast_view();
                (server.report(), server.view(), coordination, multicast)
            });
            let (report, view, coordination, multicast) = asked.unwrap_or_default();
            Some(controller_metrics(
                &report,
                &view,
                &coordination,
                &multicast,
            ))
        })
    }

    /// Requests that the controller answers: `/controller`, `/coordination`, `/multicast`, and if
    /// they are posted, `/drain?server=…&drained=…`, `/coordination/drain?switch=…&drained=…`,
    /// `/coordination/refound?group=…`, `/multicast/drain?switch=…&drained=…` and
    /// `/multicast/refound?group=…`.
    pub fn answers(&self) -> Answers {
        let candidate = self.clone();
        Arc::new(move |question| match question.path.as_str() {
            "/controller" => {
                let view = candidate.call(|server| server.view());
                json(Some(view.unwrap_or_default()))
            }
            "/drain" => candidate.drain(question),
            "/coordination" => {
                let view = candidate.call(|server| server.coordination_view());
                json(Some(view.unwrap_or_default()))
            }
            "/coordination/drain" => {
                candidate.drain_switch(question, ControllerServer::drain_switch)
            }
            "/multicast" => {
                let view = candidate.call(|server| server.multicast_view());
                json(Some(view.unwrap_or_default()))
            }
            "/multicast/drain" => {
                candidate.drain_switch(question, ControllerServer::drain_multicast)
            }
            "/coordination/refound" => candidate.refound(question),
            "/multicast/refound" => candidate.refound_multicast(question),
            _ => Reply::Unknown,
        })
    }

    fn drain(&self, question: &Question) -> Reply {
        let server = question.value("server").and_then(|it| it.parse().ok());
        let drained = question.value("drained").and_then(|it| it.parse().ok());
        let (Some(server), Some(drained), true) = (server, drained, question.changes) else {
            return Reply::Wrong(
                "POST server (an IPv4 address) and drained (true or false)".into(),
            );
        };
        let server: Ipv4Addr = server;
        done(self.call(move |controller| controller.drain(server, drained)))
    }

    fn drain_switch(&self, question: &Question, drain: DrainSwitch<B>) -> Reply {
        let switch = question.value("switch").and_then(|it| it.parse().ok());
        let drained = question.value("drained").and_then(|it| it.parse().ok());
        let (Some(switch), Some(drained), true) = (switch, drained, question.changes) else {
            return Reply::Wrong("POST switch (its number) and drained (true or false)".into());
        };
        done(self.call(move |controller| drain(controller, switch, drained)))
    }

    fn refound(&self, question: &Question) -> Reply {
        let group = question.value("group").and_then(|it| it.parse().ok());
        let (Some(group), true) = (group, question.changes) else {
            return Reply::Wrong("POST group (its number)".into());
        };
        done(self.call(move |controller| controller.refound(group)))
    }

    fn refound_multicast(&self, question: &Question) -> Reply {
        let group = question.value("group").and_then(|it| it.parse().ok());
        let (Some(group), true) = (group, question.changes) else {
            return Reply::Wrong("POST group (its number)".into());
        };
        done(self.call(move |controller| controller.refound_multicast(group)))
    }
}
