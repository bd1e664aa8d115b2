//! The gRPC service Flows: registers that a store has.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::bytes::Bytes;
use stateplane_host::clock::boot_time_us;
use stateplane_host::sync::{
    ArraysView, FlowOperation, FlowRecord, FlowsChange, FlowsDone, FlowsFile, FlowsReading,
    FlowsReport, FlowsRequest, FlowsTold, Life, MOST_LIVES, Snapshot,
};
use stateplane_rpc::Call;
use stateplane_wire::observe::Holding;
use stateplane_wire::replication::Key;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::calls::{LOOK, Messages, malformed, moments, patience, streamed};
use crate::flows_subscription::FlowsSubscription;
use crate::proto::v1::write_flow_request::Change;
use crate::proto::v1::{self, flows_server::Flows};
use crate::service::Service;

/// The state of a record, which a message shares with the engine.
struct State(Arc<[u8]>);

impl AsRef<[u8]> for State {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(crate) fn told_of(told: &FlowsTold) -> v1::FlowsTold {
    v1::FlowsTold {
        age_us: told.age_us,
        chains: told.chains.into(),
        flows: told.flows as u64,
    }
}

pub(crate) fn flow_of(record: &FlowRecord) -> v1::Flow {
    let lease = match record.lease {
        Holding::Nobody => v1::Lease::Nobody,
        Holding::Owner => v1::Lease::Owner,
        Holding::Readers => v1::Lease::Readers,
    };
    v1::Flow {
        state: Bytes::from_owner(State(record.state.clone())),
        epoch: record.epoch,
        sequence: record.sequence,
        lease: lease.into(),
        ..named(record)
    }
}

/// Shard and key of a flow alone.
pub(crate) fn named(record: &FlowRecord) -> v1::Flow {
    v1::Flow {
        shard: record.shard.into(),
        key: Bytes::copy_from_slice(&record.key.0),
        ..v1::Flow::default()
    }
}

fn followed((file, report): (FlowsFile, FlowsReport)) -> v1::FollowedFlows {
    let told = report.age_us.map(|age_us| v1::FlowsTold {
        age_us,
        chains: report.chains.into(),
        flows: report.flows as u64,
    });
    v1::FollowedFlows {
        name: file.name,
        stores: file.stores.iter().map(ToString::to_string).collect(),
        classes: file.classes.into_iter().map(u32::from).collect(),
        writes: file.writes,
        told,
        changes: report.changes,
    }
}

fn key(bytes: &[u8]) -> Result<Key, Status> {
    let key = bytes.try_into().map(Key);
    key.map_err(|_| malformed("a key has 16 bytes"))
}

/// A request for flows within `limits`.
fn wanted(
    name: String,
    class: Option<u32>,
    limits: Option<v1::FlowsLimits>,
) -> Result<FlowsRequest, Status> {
    let class = class.map(u8::try_from).transpose();
    let limits = limits.unwrap_or_default();
    Ok(FlowsRequest {
        name,
        key: None,
        class: class.map_err(|_| malformed("a class is 0 to 255"))?,
        fresh: limits.fresh,
        max_age_us: limits.max_age_us,
        patience_us: 0,
    })
}

fn operation(change: Option<Change>) -> Result<FlowOperation, Status> {
    match change {
        Some(Change::Set(state)) => Ok(FlowOperation::Set(state.into())),
        Some(Change::SetIfEqual(change)) => Ok(FlowOperation::SetIfEqual {
            expected: change.expected.into(),
            state: change.state.into(),
        }),
        Some(Change::Add(add)) => {
            let at = u16::try_from(add.at);
            let length = u8::try_from(add.length).ok().filter(|it| *it <= 8);
            Ok(FlowOperation::Add {
                at: at.map_err(|_| malformed("a state has no such byte"))?,
                length: length.ok_or_else(|| malformed("an addition takes 1 to 8 bytes"))?,
                amount: add.amount,
            })
        }
        None => Err(malformed("`set`, `set_if_equal` or `add` is missing")),
    }
}

fn shard(asked: Option<u32>) -> Result<Option<u16>, Status> {
    let shard = asked.map(u16::try_from).transpose();
    shard.map_err(|_| malformed("a shard is 0 to 65535"))
}

impl Service {
    async fn flows_present(&self, name: &str) -> Result<Option<FlowsReading>, Status> {
        let name = name.to_owned();
        self.ask(move |server, reply| reply(server.flows_present(&name)))
            .await
    }

    /// Sends the snapshots that are newer than those in `after` until the client goes.
    async fn send_snapshots(
        &self,
        name: &str,
        mut after: BTreeMap<Life, u32>,
        sender: &mpsc::Sender<Result<v1::Snapshot, Status>>,
    ) -> Result<(), Status> {
        while !sender.is_closed() {
            let (asked, known) = (name.to_owned(), after.clone());
            let next = self
                .ask(move |server, reply| reply(server.snapshot_after(&asked, &known)))
                .await?;
            let Some(record) = next else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            after.insert(record.life, record.number);
            if sender.send(Ok(snapshot_of(&record))).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Sends notifications of flows until the client goes.
    async fn notify_of_flows(
        &self,
        name: &str,
        mut subscription: FlowsSubscription,
        interval_us: u64,
        sender: &mpsc::Sender<Result<v1::FlowsNotification, Status>>,
    ) -> Result<(), Status> {
        let mut ticks = moments(interval_us);
        while !sender.is_closed() {
            ticks.tick().await;
            let present = self.flows_present(name).await?;
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
impl Flows for Service {
    type SubscribeStream = Messages<v1::FlowsNotification>;
    type SnapshotsStream = Messages<v1::Snapshot>;

    async fn read_snapshots(
        &self,
        request: Request<v1::ReadSnapshotsRequest>,
    ) -> Result<Response<v1::ReadSnapshotsResponse>, Status> {
        let _call = Call::of(&request);
        let name = request.into_inner().name;
        let reading = self
            .ask(move |server, reply| reply(server.snapshots(&name)))
            .await?;
        Ok(Response::new(v1::ReadSnapshotsResponse {
            told: Some(told_of(&reading.told)),
            arrays: reading.arrays,
            merged: packed(&reading.merged),
            snapshots: reading.lives.iter().map(snapshot_of).collect(),
            views: reading.views.iter().map(arrays_view_of).collect(),
        }))
    }

    async fn snapshots(
        &self,
        request: Request<v1::SnapshotsRequest>,
    ) -> Result<Response<Self::SnapshotsStream>, Status> {
        let held = (Call::of(&request), self.stream()?);
        let request = request.into_inner();
        if request.after.len() > MOST_LIVES {
            return Err(malformed("more starts of switches than the engine follows"));
        }
        let after = request.after.iter().map(|it| {
            let life = Life {
                switch: it.switch,
                incarnation: it.incarnation,
            };
            (life, it.number)
        });
        let after: BTreeMap<Life, u32> = after.collect();
        // A name that the engine does not know is refused before the stream begins.
        let (name, none) = (request.name.clone(), BTreeMap::new());
        self.ask(move |server, reply| reply(server.snapshot_after(&name, &none).map(drop)))
            .await?;
        let service = self.clone();
        Ok(streamed(held, |sender| async move {
            service.send_snapshots(&request.name, after, &sender).await
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListFlowsRequest>,
    ) -> Result<Response<v1::ListFlowsResponse>, Status> {
        let _call = Call::of(&request);
        let flows = self.ask(|server, reply| reply(server.flows())).await?;
        Ok(Response::new(v1::ListFlowsResponse {
            flows: flows.into_iter().map(followed).collect(),
        }))
    }

    async fn read(
        &self,
        request: Request<v1::ReadFlowsRequest>,
    ) -> Result<Response<v1::ReadFlowsResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let one = (!request.key.is_empty()).then(|| key(&request.key));
        let wanted = FlowsRequest {
            key: one.transpose()?,
            patience_us: patience(request.patience_us),
            ..wanted(request.name, request.class, request.limits)?
        };
        let reading = self
            .ask(|server, reply| server.flows_read(wanted, reply))
            .await?;
        Ok(Response::new(v1::ReadFlowsResponse {
            told: Some(told_of(&reading.told)),
            flows: reading.records.iter().map(flow_of).collect(),
        }))
    }

    async fn write(
        &self,
        request: Request<v1::WriteFlowRequest>,
    ) -> Result<Response<v1::WriteFlowResponse>, Status> {
        let _call = Call::of(&request);
        let request = request.into_inner();
        let change = FlowsChange {
            key: key(&request.key)?,
            shard: shard(request.shard)?,
            operation: operation(request.change)?,
            patience_us: patience(request.patience_us),
            name: request.name,
        };
        let done = self
            .ask(|server, reply| server.flows_change(change, reply))
            .await?;
        Ok(Response::new(match done {
            FlowsDone::Made {
                epoch,
                sequence,
                state,
            } => v1::WriteFlowResponse {
                done: true,
                epoch,
                sequence,
                state: state.into(),
            },
            FlowsDone::Mismatch { state } => v1::WriteFlowResponse {
                state: state.into(),
                ..v1::WriteFlowResponse::default()
            },
        }))
    }

    async fn subscribe(
        &self,
        request: Request<v1::SubscribeFlowsRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let held = (Call::of(&request), self.stream()?);
        let request = request.into_inner();
        let limits = wanted(request.name.clone(), request.class, request.limits)?;
        // A name that the engine does not know is refused before the stream begins.
        self.flows_present(&request.name).await?;
        let subscription = FlowsSubscription::new(limits, request.heartbeat_us);
        let service = self.clone();
        Ok(streamed(held, |sender| async move {
            let (name, interval_us) = (request.name, request.interval_us);
            let notified = service.notify_of_flows(&name, subscription, interval_us, &sender);
            notified.await
        }))
    }
}

/// Packed values.
fn packed(values: &[u32]) -> Bytes {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| u64::from(*value).to_le_bytes())
        .collect();
    bytes.into()
}

fn snapshot_of(record: &Snapshot) -> v1::Snapshot {
    v1::Snapshot {
        switch: record.life.switch,
        incarnation: record.life.incarnation,
        number: record.number,
        values: packed(&record.values),
    }
}

fn arrays_view_of(view: &ArraysView) -> v1::ArraysView {
    let promises = view.told.iter().map(|told| v1::ArrayPromise {
        age_us: told.map(|told| told.age_us),
        bound: told.and_then(|told| told.bound),
    });
    v1::ArraysView {
        switch: view.life.switch,
        incarnation: view.life.incarnation,
        promises: promises.collect(),
        values: packed(&view.values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_of;

    #[test]
    fn requests_that_are_malformed_are_refused() {
        let add = |at, length| {
            operation(Some(Change::Add(v1::AddToState {
                at,
                length,
                amount: 1,
            })))
        };
        assert!(add(65_535, 8).is_ok() && add(0, 0).is_ok());
        for refused in [
            key(&[0; 15]).map(drop),
            add(65_536, 1).map(drop),
            add(0, 9).map(drop),
            operation(None).map(drop),
            shard(Some(65_536)).map(drop),
            wanted("nat".to_owned(), Some(256), None).map(drop),
        ] {
            let status = refused.expect_err("malformed");
            assert_eq!(code_of(&status), Some("SYNC023"));
        }
        assert_eq!(shard(None).expect("none"), None);
        let limits = v1::FlowsLimits {
            fresh: true,
            max_age_us: Some(5),
        };
        let wanted = wanted("nat".to_owned(), Some(255), Some(limits)).expect("well formed");
        assert_eq!((wanted.class, wanted.max_age_us), (Some(255), Some(5)));
        assert!(wanted.fresh);
    }
}
