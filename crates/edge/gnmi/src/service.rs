//! The gRPC service.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stateplane_host::clock::boot_time_us;
use stateplane_host::sync::{SyncServer, ViewError, Window};
use stateplane_rpc::Call;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::facts::{Facts, GroupInfo};
use crate::get::{Tree, Wanted};
use crate::proto::gnmi::{self, g_nmi_server as generated};
use crate::refusal::Refusal;
use crate::request::{ORGANIZATION, REVISION};
use crate::schema::MODULE;
use crate::subscriptions::{Moment, Subscriptions};
use crate::value::ENCODINGS;

/// Version of the specification.
const VERSION: &str = "0.10.0";

/// The YANG module of the tree.
pub const MODEL_TEXT: &str = include_str!("../yang/stateplane-sync.yang");

/// Messages of a stream that wait for its reader; the next is made when one has left.
const STREAM: usize = 1;

/// Time for a client to say its subscriptions, once it began the call.
const FIRST: Duration = Duration::from_secs(10);

/// Bytes of the longest request.
const MAX_MESSAGE: usize = 1 << 20;

/// The service of the engine that `views` reaches, whose places for streams it shares.
pub fn service(views: stateplane_view::Service) -> GnmiService {
    generated::GNmiServer::new(Service { views })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(usize::MAX)
}

/// The gRPC service `gnmi.gNMI`.
pub type GnmiService = generated::GNmiServer<Service>;

/// Models, encodings and version.
pub fn capabilities() -> gnmi::CapabilityResponse {
    gnmi::CapabilityResponse {
        supported_models: vec![gnmi::ModelData {
            name: MODULE.to_owned(),
            organization: ORGANIZATION.to_owned(),
            version: REVISION.to_owned(),
        }],
        supported_encodings: ENCODINGS.map(i32::from).to_vec(),
        g_nmi_version: VERSION.to_owned(),
        extension: Vec::new(),
    }
}

/// Calls of gNMI.
#[derive(Clone)]
pub struct Service {
    views: stateplane_view::Service,
}

fn moment() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment {
        now_us: boot_time_us(),
        unix_ns: since.map_or(0, |since| since.as_nanos() as i64),
    }
}

/// Groups, their state, and of each group its windows.
type Read = (Vec<GroupInfo>, Facts, Vec<Vec<Window>>);

/// Groups, facts and windows of `server` that are wanted, of one moment.
fn read(server: &mut SyncServer, wanted: &Wanted) -> Result<Read, ViewError> {
    let groups = Facts::groups(server)?;
    let mut needs = crate::facts::Needs {
        report: true,
        ..crate::facts::Needs::default()
    };
    let named = groups.iter().enumerate();
    let with_values = named.filter(|(_, group)| wanted.has_values(&group.name));
    needs.values = with_values.map(|(at, _)| at).collect();
    let facts = Facts::of(server, &groups, &needs)?;
    let mut windows = Vec::new();
    for group in &groups {
        let mut kept = Vec::new();
        let mut after = 0;
        while wanted.has_windows(&group.name) {
            match server.window_after(&group.name, after) {
                Ok(Some(window)) => {
                    after = window.number;
                    kept.push(window);
                }
                Ok(None) => break,
                Err(ViewError::Gone { oldest, .. }) => after = oldest - 1,
                Err(error) => return Err(error),
            }
        }
        windows.push(kept);
    }
    Ok((groups, facts, windows))
}

impl Service {
    /// Makes the messages of a subscriber until it has ended.
    async fn send(
        &self,
        mut subscriptions: Subscriptions,
        groups: Arc<Vec<GroupInfo>>,
        mut requests: Streaming<gnmi::SubscribeRequest>,
        sender: &mpsc::Sender<Result<gnmi::SubscribeResponse, Status>>,
    ) -> Result<(), Status> {
        let mut is_open = true;
        loop {
            while let Some(response) = subscriptions.poll_transmit() {
                if sender.send(Ok(response)).await.is_err() {
                    return Ok(());
                }
            }
            if subscriptions.is_finished() {
                return Ok(());
            }
            let due = subscriptions.poll_timeout();
            let wait = due.map_or(Duration::MAX, |due| {
                Duration::from_micros(due.saturating_sub(boot_time_us()))
            });
            tokio::select! {
                biased;
                () = sender.closed() => return Ok(()),
                request = requests.next(), if is_open => match request {
                    Some(request) => subscriptions.handle_request(&request?)?,
                    // A client that subscribes, and sends no more requests, still listens.
                    None if subscriptions.is_polled() => return Ok(()),
                    None => is_open = false,
                },
                () = tokio::time::sleep(wait), if due.is_some() => {
                    let (needs, groups) = (subscriptions.needs(), groups.clone());
                    let facts = self.views.ask(move |server, reply| {
                        reply(Facts::of(server, &groups, &needs));
                    });
                    subscriptions.handle_facts(moment(), &facts.await?)?;
                }
            }
        }
    }
}

/// Messages to a subscriber.
type Responses = Pin<Box<dyn Stream<Item = Result<gnmi::SubscribeResponse, Status>> + Send>>;

/// The messages of a stream, which holds its call and its place while it is open.
fn responses(
    receiver: mpsc::Receiver<Result<gnmi::SubscribeResponse, Status>>,
    held: (Option<Arc<Call>>, OwnedSemaphorePermit),
) -> Response<Responses> {
    let responses = ReceiverStream::new(receiver).map(move |response| {
        let _open = &held;
        response
    });
    Response::new(Box::pin(responses))
}

#[tonic::async_trait]
impl generated::GNmi for Service {
    type SubscribeStream = Responses;

    async fn capabilities(
        &self,
        request: Request<gnmi::CapabilityRequest>,
    ) -> Result<Response<gnmi::CapabilityResponse>, Status> {
        let _call = Call::of(&request);
        Ok(Response::new(capabilities()))
    }

    async fn get(
        &self,
        request: Request<gnmi::GetRequest>,
    ) -> Result<Response<gnmi::GetResponse>, Status> {
        let _call = Call::of(&request);
        let wanted = Arc::new(Wanted::of(request.get_ref())?);
        let asked = wanted.clone();
        let (groups, facts, windows) = self
            .views
            .ask(move |server, reply| reply(read(server, &asked)))
            .await?;
        let tree = Tree {
            groups: &groups,
            facts: &facts,
            windows: &windows,
            unix_ns: moment().unix_ns,
        };
        Ok(Response::new(wanted.answer(&tree)?))
    }

    async fn set(
        &self,
        request: Request<gnmi::SetRequest>,
    ) -> Result<Response<gnmi::SetResponse>, Status> {
        let _call = Call::of(&request);
        let message = "all of the tree is state: values are changed by `stateplane view write`, or \
                       by the calls WriteValue, WriteValues and WriteAllValues of \
                       stateplane.sync.v1.View at this address";
        Err(Refusal::unimplemented(message).into())
    }

    async fn subscribe(
        &self,
        request: Request<Streaming<gnmi::SubscribeRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let held = (Call::of(&request), self.views.stream()?);
        let mut requests = request.into_inner();
        let Ok(Some(first)) = tokio::time::timeout(FIRST, requests.next()).await else {
            let message = "no list of subscriptions came, as a call begins with within 10 s";
            return Err(Refusal::invalid(message).into());
        };
        let first = first?;
        let groups = self
            .views
            .ask(|server, reply| reply(Facts::groups(server)))
            .await?;
        let subscriptions = Subscriptions::new(&first, &groups)?;
        let (sender, receiver) = mpsc::channel(STREAM);
        let service = self.clone();
        tokio::spawn(async move {
            let sent = service.send(subscriptions, Arc::new(groups), requests, &sender);
            if let Err(status) = sent.await {
                let _ = sender.send(Err(status)).await;
            }
        });
        Ok(responses(receiver, held))
    }
}
