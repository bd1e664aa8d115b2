//! The gRPC service View, and the way of all services to the engine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use stateplane_host::clock::boot_time_us;
use stateplane_host::remote::{Posted, Remote};
use stateplane_host::sync::{
    Change, ChangeDone, CutMade, CutRequest, LocalViews, ReadRequest, Reading, Reply, SyncServer,
    VALUE_BYTES, ViewError, WriteId,
};
use stateplane_rpc::{Call, Server, ServerError, Tls, serve_routes};
use stateplane_wire::sync::{CutKind, Operation, Outcome};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::calls::{LOOK, Messages, malformed, moments, patience, streamed};
use crate::messages::{datagrams_of, group_of, shared, told_of};
use crate::proto::v1::flows_server::FlowsServer;
use crate::proto::v1::{self, view_server as generated};
use crate::refusal::refused;
use crate::subscription::{Subscription, unpack_locations};

/// Streams of windows and notifications at one time.
const MOST_STREAMS: usize = 64;

/// Bytes of the longest request: values of 2²⁰ locations, and their locations.
const MAX_MESSAGE: usize = 16 << 20;

/// Time before work is offered again to an engine that has as much as it takes, and how often.
const OFFER: Duration = Duration::from_micros(200);
const OFFERS: usize = 5_000;

/// Serves views at `address`, on threads of its own, with the services that `more` adds.
///
/// # Errors
///
/// [`ServerError`].
pub fn serve(
    service: Service,
    more: impl FnOnce(Routes) -> Routes,
    address: SocketAddr,
    tls: Option<&Tls>,
) -> Result<Server, ServerError> {
    serve_routes(more(service.routes()), "view", address, tls)
}

fn read_request(group: String, limits: Option<v1::Limits>, patience_us: u64) -> ReadRequest {
    let limits = limits.unwrap_or_default();
    ReadRequest {
        group,
        fresh: limits.fresh,
        bound: limits.bound,
        max_age_us: limits.max_age_us,
        patience_us: patience(patience_us),
    }
}

fn write_id(bytes: &[u8]) -> Result<Option<WriteId>, Status> {
    match bytes {
        [] => Ok(None),
        _ => match WriteId::try_from(bytes) {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(malformed("an id has 16 bytes, or none")),
        },
    }
}

fn operation(number: i32) -> Result<Operation, Status> {
    match v1::Operation::try_from(number) {
        Ok(v1::Operation::Set) => Ok(Operation::Set),
        Ok(v1::Operation::Add) => Ok(Operation::Add),
        Ok(v1::Operation::SetIfEqual) => Ok(Operation::SetIfEqual),
        _ => Err(malformed("an operation is SET, ADD or SET_IF_EQUAL")),
    }
}

fn unpack_values(bytes: &[u8]) -> Result<Vec<u64>, Status> {
    if !bytes.len().is_multiple_of(VALUE_BYTES) {
        return Err(malformed("packed values are 8 bytes each"));
    }
    Ok(crate::unpack(bytes).collect())
}

/// The service, by which others of the same process reach the engine too.
#[derive(Clone)]
pub struct Service {
    remote: Arc<Remote<SyncServer>>,
    views: LocalViews,
    streams: Arc<Semaphore>,
}

impl Service {
    /// The service of the engine that `remote` reaches, and whose views `views` shows.
    pub fn new(remote: Arc<Remote<SyncServer>>, views: LocalViews) -> Service {
        Service {
            remote,
            views,
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
        }
    }

    /// The services View and Flows by their paths, to be served.
    pub fn routes(self) -> Routes {
        let flows = FlowsServer::new(self.clone()).max_encoding_message_size(usize::MAX);
        let views = generated::ViewServer::new(self)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(usize::MAX);
        Routes::new(views).add_service(flows)
    }

    async fn post(&self, mut work: Posted<SyncServer>) -> Result<(), Status> {
        for _ in 0..OFFERS {
            match self.remote.post(work) {
                Ok(()) => return Ok(()),
                Err(back) => work = back,
            }
            tokio::time::sleep(OFFER).await;
        }
        Err(refused(&ViewError::Busy("the engine's queue".to_owned())))
    }

    /// Lets the engine do `work`, which calls its reply at once or later.
    ///
    /// # Errors
    ///
    /// The refusal of the engine, or UNAVAILABLE if it has stopped.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SyncServer, Reply<T>) + Send + 'static,
    ) -> Result<T, Status> {
        let (sender, answer) = oneshot::channel();
        let reply: Reply<T> = Box::new(move |said| {
            // A client that has gone is told nothing.
            let _ = sender.send(said);
        });
        self.post(Box::new(move |server| work(server, reply)))
            .await?;
        match answer.await {
            Ok(said) => said.map_err(|error| refused(&error)),
            Err(_) => Err(Status::unavailable("the engine has stopped")),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<Reading, Status> {
        if let Some(reading) = self.views.read_at_once(&request) {
            return Ok(reading);
        }
        self.ask(|server, reply| server.read(request, reply)).await
    }

    async fn change(&self, change: Change) -> Result<Response<v1::WriteResponse>, Status> {
        let ChangeDone { outcome, pieces } = self
            .ask(|server, reply| server.change(change, reply))
            .await?;
        Ok(Response::new(v1::WriteResponse {
            done: outcome == Outcome::Done,
            pieces,
        }))
    }

    async fn present(&self, group: &str) -> Result<Option<Reading>, Status> {
        let group = group.to_owned();
        self.ask(move |server, reply| reply(server.present(&group)))
            .await
    }

    /// A place for a stream, until it is dropped.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there are as many as may be.
    pub fn stream(&self) -> Result<OwnedSemaphorePermit, Status> {
        let permit = self.streams.clone().try_acquire_owned();
        permit.map_err(|_| {
            let message = format!("{MOST_STREAMS} subscriptions and readers of windows");
            refused(&ViewError::Busy(message))
        })
    }

    /// Sends the windows behind `after` until the client goes.
    async fn send_windows(
        &self,
        request: v1::WindowsRequest,
        sender: &mpsc::Sender<Result<v1::Window, Status>>,
    ) -> Result<(), Status> {
        let mut after = request.after;
        while !sender.is_closed() {
            let group = request.group.clone();
            let next = self
                .ask(move |server, reply| reply(server.window_after(&group, after)))
                .await?;
            let Some(window) = next else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            after = window.number;
            let message = v1::Window {
                number: window.number,
                incarnation: window.incarnation,
                epoch: window.epoch,
                values: shared(window.values),
            };
            if sender.send(Ok(message)).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Sends notifications until the client goes.
    async fn notify(
        &self,
        group: &str,
        mut subscription: Subscription,
        interval_us: u64,
        sender: &mpsc::Sender<Result<v1::Notification, Status>>,
    ) -> Result<(), Status> {
        let mut ticks = moments(interval_us);
        while !sender.is_closed() {
            ticks.tick().await;
            let present = self.present(group).await?;
            if let Some(next) = subscription.next(boot_time_us(), present)
                && sender.send(Ok(next)).await.is_err()
            {
                break;
            }
        }
        Ok(())
    }
}

#[tonic::async_trait]
impl generated::View for Service {
    type WindowsStream = Messages<v1::Window>;
    type SubscribeStream = Messages<v1::Notification>;

    async fn groups(
        &self,
        request: Request<v1::GroupsRequest>,
    ) -> Result<Response<v1::GroupsResponse>, Status> {
        let _call = Call::of(&request);
        let report = self
            .ask(|server, reply| {
                let leads = server.check_leads();
                reply(leads.map(|()| (server.report(), server.told())));
            })
            .await?;
        let (report, told) = report;
        let datagrams = datagrams_of(&report);
        let groups = report.groups.into_iter().zip(told);
        let groups = groups.map(|(group, told)| group_of(group, told.as_ref()));
        Ok(Response::new(v1::GroupsResponse {
            groups: groups.collect(),
            term: report.term,
            datagrams: Some(datagrams),
        }))
    }

    async fn read_all_values(
        &self,
        request: Request<v1::ReadAllValuesRequest>,
    ) -> Result<Response<v1::ReadAllValuesResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let wanted = read_request(request.group, request.limits, request.patience_us);
        let reading = self.read(wanted).await?;
        Ok(Response::new(v1::ReadAllValuesResponse {
            told: Some(told_of(&reading.told)),
            values: shared(reading.values),
        }))
    }

    async fn read_totals(
        &self,
        request: Request<v1::ReadAllValuesRequest>,
    ) -> Result<Response<v1::ReadTotalsResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let wanted = read_request(request.group, request.limits, request.patience_us);
        let reading = self
            .ask(|server, reply| server.read_totals(wanted, reply))
            .await?;
        Ok(Response::new(v1::ReadTotalsResponse {
            told: Some(told_of(&reading.told)),
            totals: reading.totals.into(),
            discontinuities: reading.discontinuities.into(),
        }))
    }

    async fn read_value(
        &self,
        request: Request<v1::ReadValueRequest>,
    ) -> Result<Response<v1::ReadValueResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let group = request.group.clone();
        let wanted = read_request(request.group, request.limits, request.patience_us);
        let reading = self.read(wanted).await?;
        let mut values = crate::unpack(&reading.values);
        let last = (reading.values.len() / VALUE_BYTES).saturating_sub(1) as u32;
        let Some(value) = values.nth(request.location as usize) else {
            return Err(refused(&ViewError::Location {
                group,
                location: request.location.into(),
                last,
            }));
        };
        Ok(Response::new(v1::ReadValueResponse {
            told: Some(told_of(&reading.told)),
            value,
        }))
    }

    async fn write_value(
        &self,
        request: Request<v1::WriteValueRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        self.change(Change {
            id: write_id(&request.id)?,
            operation: operation(request.operation)?,
            values: vec![(request.location, request.value)],
            expected: request.expected,
            patience_us: patience(request.patience_us),
            group: request.group,
        })
        .await
    }

    async fn write_values(
        &self,
        request: Request<v1::WriteValuesRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let locations = unpack_locations(&request.locations).map_err(|error| refused(&error))?;
        let values = unpack_values(&request.values)?;
        if locations.len() != values.len() {
            return Err(malformed("there are not as many values as locations"));
        }
        self.change(Change {
            id: write_id(&request.id)?,
            operation: operation(request.operation)?,
            values: locations.into_iter().zip(values).collect(),
            expected: 0,
            patience_us: patience(request.patience_us),
            group: request.group,
        })
        .await
    }

    async fn write_all_values(
        &self,
        request: Request<v1::WriteAllValuesRequest>,
    ) -> Result<Response<v1::WriteAllValuesResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let patience_us = patience(request.patience_us);
        match request.what {
            Some(v1::write_all_values_request::What::Fill(fill)) => {
                let cut = CutRequest {
                    group: request.group,
                    kind: CutKind::Filled,
                    fill,
                    window: false,
                    keep: false,
                    patience_us,
                };
                self.ask(|server, reply| server.cut(cut, reply)).await?;
                Ok(Response::new(v1::WriteAllValuesResponse { atomic: true }))
            }
            Some(v1::write_all_values_request::What::Values(values)) => {
                let values = unpack_values(&values)?;
                let change = Change {
                    id: write_id(&request.id)?,
                    operation: Operation::Set,
                    values: (0..).zip(values).collect(),
                    expected: 0,
                    patience_us,
                    group: request.group,
                };
                let done = self
                    .ask(|server, reply| server.change_all(change, reply))
                    .await?;
                let atomic = done.pieces == 1;
                Ok(Response::new(v1::WriteAllValuesResponse { atomic }))
            }
            None => Err(malformed("`fill` or `values` is missing")),
        }
    }

    async fn cut(&self, request: Request<v1::CutRequest>) -> Result<Response<v1::Window>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let cut = CutRequest {
            group: request.group,
            kind: match request.fill {
                Some(_) => CutKind::Filled,
                None => CutKind::Carried,
            },
            fill: request.fill.unwrap_or(0),
            window: true,
            keep: request.keep,
            patience_us: patience(request.patience_us),
        };
        let made: CutMade = self.ask(|server, reply| server.cut(cut, reply)).await?;
        Ok(Response::new(v1::Window {
            number: made.number,
            incarnation: made.incarnation,
            epoch: made.epoch,
            values: shared(made.values),
        }))
    }

    async fn windows(
        &self,
        request: Request<v1::WindowsRequest>,
    ) -> Result<Response<Self::WindowsStream>, Status> {
        let held = (Call::of(&request), self.stream()?);
        let (service, request) = (self.clone(), request.into_inner());
        Ok(streamed(held, |sender| async move {
            service.send_windows(request, &sender).await
        }))
    }

    async fn subscribe(
        &self,
        request: Request<v1::SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let held = (Call::of(&request), self.stream()?);
        let request = request.into_inner();
        let chosen = unpack_locations(&request.locations).map_err(|error| refused(&error))?;
        let (group, locations) = (request.group.clone(), chosen.clone());
        self.ask(move |server, reply| reply(server.check_locations(&group, &locations)))
            .await?;
        let limits = read_request(String::new(), request.limits, 0);
        let subscription = Subscription::new(limits, chosen, request.heartbeat_us);
        let interval_us = request.interval_us;
        let (service, group) = (self.clone(), request.group);
        Ok(streamed(held, |sender| async move {
            let notified = service.notify(&group, subscription, interval_us, &sender);
            notified.await
        }))
    }
}
