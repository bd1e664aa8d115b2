//! Clients of a switch on real time: views of its engine, and its P4Runtime.

use super::{DEVICE, refused};
use crate::error::EvalError;
use stateplane_rpc::MAX_MESSAGE;
use stateplane_rpc::client::{Connection, Target, names};
use stateplane_rpc::proto::config::P4Info;
use stateplane_rpc::proto::v1::{self as p4, entity::Entity, p4_data::Data, update::Type};
use stateplane_view::proto::v1::{self as view, view_client::ViewClient};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

/// µs until a request is given up.
const PATIENCE_US: u64 = 600_000_000;

/// The runtime of clients; each call waits for its answer.
pub(super) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
}

/// A client of the views of a switch's groups, by gRPC.
pub(in crate::approsync) struct Views {
    name: String,
    runtime: Arc<Runtime>,
    client: ViewClient<Channel>,
}

impl Views {
    pub(super) fn connect(
        name: &str,
        runtime: Arc<Runtime>,
        address: Option<SocketAddr>,
    ) -> Result<Self, EvalError> {
        let address = address.ok_or_else(|| refused(name, "it serves no views"))?;
        let client = stateplane_view::connect(format!("http://{address}"));
        let client = runtime.block_on(client);
        Ok(Self {
            client: client.map_err(|error| refused(name, error))?,
            name: name.to_owned(),
            runtime,
        })
    }

    /// READ_ALL_VALUES of a group as the engine has it at once.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn read(&mut self, group: &str) -> Result<Vec<u64>, EvalError> {
        self.read_within(group, view::Limits::default())
    }

    /// READ_ALL_VALUES of a group, of a mark that the switch made after the request came.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn read_fresh(&mut self, group: &str) -> Result<Vec<u64>, EvalError> {
        let limits = view::Limits {
            fresh: true,
            ..view::Limits::default()
        };
        self.read_within(group, limits)
    }

    fn read_within(&mut self, group: &str, limits: view::Limits) -> Result<Vec<u64>, EvalError> {
        let request = view::ReadAllValuesRequest {
            group: group.to_owned(),
            limits: Some(limits),
            patience_us: PATIENCE_US,
        };
        let read = self.runtime.block_on(self.client.read_all_values(request));
        let read = read.map_err(|status| refused(&self.name, status))?;
        Ok(stateplane_view::unpack(&read.into_inner().values).collect())
    }

    /// READ_VALUE of a group's first location, of a mark that the switch made after the request came: a
    /// message to the switch and its answer.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn read_one(&mut self, group: &str) -> Result<u64, EvalError> {
        let request = view::ReadValueRequest {
            group: group.to_owned(),
            location: 0,
            limits: Some(view::Limits {
                fresh: true,
                ..view::Limits::default()
            }),
            patience_us: PATIENCE_US,
        };
        let read = self.runtime.block_on(self.client.read_value(request));
        let read = read.map_err(|status| refused(&self.name, status))?;
        Ok(read.into_inner().value)
    }

    /// CUT of a group whose locations keep their values: all of them as of one moment between two
    /// packets.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn cut(&mut self, group: &str) -> Result<Vec<u64>, EvalError> {
        let request = view::CutRequest {
            group: group.to_owned(),
            patience_us: PATIENCE_US,
            ..view::CutRequest::default()
        };
        let window = self.runtime.block_on(self.client.cut(request));
        let window = window.map_err(|status| refused(&self.name, status))?;
        Ok(stateplane_view::unpack(&window.into_inner().values).collect())
    }

    /// WRITE_ALL_VALUES of a group with a value for each location, at once: they are staged, and a cut
    /// takes them.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn write_all(
        &mut self,
        group: &str,
        values: &[u64],
    ) -> Result<(), EvalError> {
        let packed: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.change_all(
            group,
            view::write_all_values_request::What::Values(packed.into()),
        )
    }

    /// WRITE_ALL_VALUES of a group with one value for all locations, at once: a cut.
    ///
    /// # Errors
    /// `EV003` with the engine's refusal.
    pub(in crate::approsync) fn reset(&mut self, group: &str, fill: u64) -> Result<(), EvalError> {
        self.change_all(group, view::write_all_values_request::What::Fill(fill))
    }

    fn change_all(
        &mut self,
        group: &str,
        what: view::write_all_values_request::What,
    ) -> Result<(), EvalError> {
        let request = view::WriteAllValuesRequest {
            group: group.to_owned(),
            what: Some(what),
            patience_us: PATIENCE_US,
            ..view::WriteAllValuesRequest::default()
        };
        let written = self.runtime.block_on(self.client.write_all_values(request));
        let written = written.map_err(|status| refused(&self.name, status))?;
        let is_atomic = written.into_inner().atomic;
        is_atomic
            .then_some(())
            .ok_or_else(|| refused(&self.name, "not all values changed at once"))
    }
}

/// A client of a switch's P4Runtime. Several may read; of those that write, the last that began is primary, and
/// the writes of others are refused.
pub(in crate::approsync) struct P4Runtime {
    name: String,
    runtime: Arc<Runtime>,
    client: p4::p4_runtime_client::P4RuntimeClient<Channel>,
    /// The connection that writes, whose client is primary from its first write on.
    writer: Connection,
    info: P4Info,
}

impl P4Runtime {
    pub(super) fn connect(
        name: &str,
        runtime: Arc<Runtime>,
        address: Option<SocketAddr>,
        info: &P4Info,
    ) -> Result<Self, EvalError> {
        let failed = |error: &dyn std::fmt::Display| refused(name, error);
        let address = address.ok_or_else(|| refused(name, "it serves no P4Runtime"))?;
        let endpoint = Channel::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|it| failed(&it))?.tcp_nodelay(true);
        let channel = runtime.block_on(endpoint.connect());
        let client =
            p4::p4_runtime_client::P4RuntimeClient::new(channel.map_err(|it| failed(&it))?)
                .max_encoding_message_size(MAX_MESSAGE)
                .max_decoding_message_size(MAX_MESSAGE);
        let writer = Connection::open(Target {
            address: address.to_string(),
            device_id: DEVICE,
            tls: None,
        });
        Ok(Self {
            name: name.to_owned(),
            client,
            writer: writer.map_err(|it| failed(&it))?,
            info: info.clone(),
            runtime,
        })
    }

    fn entry(&self, register: &str) -> Result<p4::RegisterEntry, EvalError> {
        let found = names::find(&self.info.registers, register, "register");
        let found = found.map_err(|wrong| refused(&self.name, wrong))?;
        Ok(p4::RegisterEntry {
            register_id: names::id(found),
            ..p4::RegisterEntry::default()
        })
    }

    /// Reads all elements of a register, by index; of wider ones than 64 bits the low bits.
    ///
    /// # Errors
    /// `EV003` with the switch's refusal, or if there is no such register.
    pub(in crate::approsync) fn read(&mut self, register: &str) -> Result<Vec<u64>, EvalError> {
        let entity = Some(Entity::RegisterEntry(self.entry(register)?));
        let request = p4::ReadRequest {
            device_id: DEVICE,
            entities: vec![p4::Entity { entity }],
            ..p4::ReadRequest::default()
        };
        let client = &mut self.client;
        let read = self.runtime.block_on(async {
            let mut parts = client.read(request).await?.into_inner();
            let mut values = Vec::new();
            while let Some(part) = parts.message().await? {
                values.extend(part.entities.iter().filter_map(value));
            }
            Ok::<_, tonic::Status>(values)
        });
        read.map_err(|status| refused(&self.name, status))
    }

    /// Writes all elements of a register in one request, an update for each: all of them or none.
    ///
    /// # Errors
    /// `EV003` with the switch's refusal, or if there is no such register.
    pub(in crate::approsync) fn write(
        &mut self,
        register: &str,
        values: &[u64],
    ) -> Result<(), EvalError> {
        let entry = self.entry(register)?;
        let updates = (0..).zip(values).map(|(index, value)| {
            let index = Some(p4::Index { index });
            modify(&entry, index, *value)
        });
        self.update(updates.collect())
    }

    /// Writes one value to all elements of a register by one update.
    ///
    /// # Errors
    /// `EV003` with the switch's refusal, or if there is no such register.
    pub(in crate::approsync) fn reset(
        &mut self,
        register: &str,
        fill: u64,
    ) -> Result<(), EvalError> {
        let entry = self.entry(register)?;
        self.update(vec![modify(&entry, None, fill)])
    }

    fn update(&mut self, updates: Vec<p4::Update>) -> Result<(), EvalError> {
        let written = self.writer.write(updates);
        written.map_err(|error| refused(&self.name, error))
    }
}

/// The value of a register's element.
fn value(entity: &p4::Entity) -> Option<u64> {
    let Some(Entity::RegisterEntry(entry)) = &entity.entity else {
        return None;
    };
    let Some(Data::Bitstring(bytes)) = &entry.data.as_ref()?.data else {
        return None;
    };
    let value = bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some(value)
}

/// An update that gives an element a value; without an index all elements.
fn modify(entry: &p4::RegisterEntry, index: Option<p4::Index>, value: u64) -> p4::Update {
    let bytes = value.to_be_bytes();
    let first = (value.leading_zeros() as usize / 8).min(bytes.len() - 1);
    let data = Data::Bitstring(bytes[first..].to_vec());
    let entry = p4::RegisterEntry {
        index,
        data: Some(p4::P4Data { data: Some(data) }),
        ..entry.clone()
    };
    names::update(Type::Modify, Entity::RegisterEntry(entry))
}
