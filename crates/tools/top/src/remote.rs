//! An engine that runs.

use crate::error::TopError;
use crate::look::{Finding, GroupLook, Look, Promise, Source, Title};
use crate::row::{SHARE, of_found, of_locations};
use stateplane_sketch::{Family, Key, Reading, Shape, Sketch, detect};
use stateplane_view::proto::v1::{self, view_client::ViewClient};
use stateplane_view::{code_of, unpack};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::Channel;

/// Most locations that are read at a look, of all groups together: 8 MiB of values.
const LOCATIONS: u64 = 1 << 20;

/// Reaches the engine, or the one of several that leads.
pub type Reach = Box<dyn FnMut(&Runtime) -> Result<ViewClient<Channel>, TopError> + Send>;

/// A sketch in groups of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketched {
    /// Its shape.
    pub shape: Shape,
    /// Names of the groups, in the order of docs/sketches.md.
    pub groups: Vec<String>,
    /// Flows that are looked for, besides those that the sketch names.
    pub keys: Vec<Key>,
}

/// The engine at an address.
pub struct Remote {
    runtime: Runtime,
    /// `None` after a refusal, until the engine is reached again.
    client: Option<ViewClient<Channel>>,
    reach: Reach,
    address: String,
    sketched: Option<Sketched>,
    threshold: Option<u64>,
    patience_us: u64,
    /// Time of the first look, and when the next one is due.
    times: Option<(Instant, Instant)>,
}

impl Remote {
    /// The engine that `reach` reaches. `address` is what is shown of it; an answer may take
    /// `patience_us`. Without a sketch the greatest locations are shown.
    ///
    /// # Errors
    ///
    /// [`TopError::Engine`] if it cannot be reached.
    pub fn new(
        runtime: Runtime,
        mut reach: Reach,
        (address, patience_us): (String, u64),
        sketched: Option<Sketched>,
        threshold: Option<u64>,
    ) -> Result<Remote, TopError> {
        let client = reach(&runtime)?;
        Ok(Remote {
            runtime,
            client: Some(client),
            reach,
            address,
            sketched,
            threshold,
            patience_us,
            times: None,
        })
    }

    /// All groups, read one after another.
    fn look(&mut self) -> Result<(Vec<GroupLook>, Option<u64>), TopError> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => (self.reach)(&self.runtime)?,
        };
        let asks = async {
            let said = client.groups(v1::GroupsRequest {}).await;
            let said = said.map_err(refused)?.into_inner();
            let mut looks: Vec<GroupLook> = said.groups.into_iter().map(group).collect();
            let packets = match &self.sketched {
                Some(sketched) => self.find(sketched, &mut client, &mut looks).await?,
                None => {
                    self.greatest(&mut client, &mut looks).await?;
                    None
                }
            };
            Ok::<_, TopError>((looks, packets))
        };
        let patience = Duration::from_micros(self.patience_us);
        let asks = async { tokio::time::timeout(patience, asks).await };
        let looked = self.runtime.block_on(asks).unwrap_or_else(|_| {
            Err(TopError::Engine {
                code: None,
                message: format!("the engine at {} does not answer", self.address),
            })
        });
        if looked.is_ok() {
            self.client = Some(client);
        }
        looked
    }

    /// Reads a view; `None` if it is not complete any more.
    async fn read(
        &self,
        client: &mut ViewClient<Channel>,
        group: &str,
        fresh: bool,
    ) -> Result<Option<Reading>, TopError> {
        let limits = v1::Limits {
            fresh,
            ..v1::Limits::default()
        };
        let request = v1::ReadAllValuesRequest {
            group: group.to_owned(),
            limits: Some(limits),
            // So that its refusal comes in time.
            patience_us: self.patience_us / 2,
        };
        let said = match client.read_all_values(request).await {
            Ok(said) => said.into_inner(),
            Err(status) if matches!(code_of(&status), Some("SYNC021" | "SYNC022")) => {
                return Ok(None);
            }
            Err(status) => return Err(refused(status)),
        };
        Ok(said.told.map(|told| Reading {
            values: unpack(&said.values).collect(),
            bound: told.bound,
            all_but: told.all_but,
            within: told.within,
            age_us: told.age_us,
            generation: told.generation,
            epoch: told.epoch,
        }))
    }

    /// The greatest locations of each group that has room.
    async fn greatest(
        &self,
        client: &mut ViewClient<Channel>,
        looks: &mut [GroupLook],
    ) -> Result<(), TopError> {
        let mut left = LOCATIONS;
        for look in looks.iter_mut().filter(|look| look.told.is_some()) {
            let Some(less) = left.checked_sub(look.locations.into()) else {
                continue;
            };
            left = less;
            look.threshold = self.threshold;
            if let Some(reading) = self.read(client, &look.name, false).await? {
                look.rows = of_locations(&reading, self.threshold);
            }
        }
        Ok(())
    }

    /// Heavy hitters of the sketch, shown with its first group; and of Count-Min all packets.
    async fn find(
        &self,
        sketched: &Sketched,
        client: &mut ViewClient<Channel>,
        looks: &mut Vec<GroupLook>,
    ) -> Result<Option<u64>, TopError> {
        let is_named = |look: &GroupLook| sketched.groups.contains(&look.name);
        let mut names = sketched.groups.iter();
        let unknown = names.find(|name| !looks.iter().any(|look| look.name == **name));
        if let Some(name) = unknown {
            let message = format!("the engine follows no group `{name}`");
            return Err(TopError::Engine {
                code: Some("SYNC020".to_owned()),
                message,
            });
        }
        looks.retain(is_named);
        let mut parts = Vec::new();
        for name in &sketched.groups {
            let is_complete = looks.iter().any(|it| it.name == *name && it.told.is_some());
            let read = match is_complete.then_some(!parts.is_empty()) {
                Some(fresh) => self.read(client, name, fresh).await?,
                None => None,
            };
            let Some(reading) = read else {
                return Ok(None);
            };
            parts.push(reading);
        }
        let sketch = Sketch::new(sketched.shape, parts).map_err(|error| TopError::Engine {
            code: Some(error.code().to_owned()),
            message: error.to_string(),
        })?;
        let counted = match sketched.shape.family {
            Family::CountMin => sketch.parts()[0].values.last().copied(),
            _ => None,
        };
        let share = counted.map(|counted| counted / SHARE);
        let threshold = self.threshold.or(share);
        let mut keys = sketch.keys();
        keys.extend(&sketched.keys);
        keys.sort_unstable();
        keys.dedup();
        let found = detect::heavy_hitters(&sketch, keys, threshold.unwrap_or(0));
        let first = sketched.groups.first();
        if let Some(look) = looks.iter_mut().find(|look| Some(&look.name) == first) {
            look.finding = Finding::HeavyHitters;
            look.threshold = threshold;
            look.rows = of_found(&found, |_| None);
        }
        Ok(counted)
    }
}

fn group(said: v1::Group) -> GroupLook {
    let status = said.status.unwrap_or_default();
    GroupLook {
        name: said.name,
        locations: said.locations,
        told: said.told.map(|told| Promise {
            bound: told.bound,
            all_but: told.all_but,
            within: told.within,
            age_us: told.age_us,
            generation: told.generation,
        }),
        unsent: status.unsent,
        queued: status.queued,
        sent: status.sent,
        lost: status.lost,
        missing: status.missing,
        ..GroupLook::default()
    }
}

fn refused(status: Status) -> TopError {
    TopError::Engine {
        code: code_of(&status).map(str::to_owned),
        message: status.message().to_owned(),
    }
}

impl Source for Remote {
    fn title(&self) -> Title {
        let (program, traffic) = match &self.sketched {
            Some(sketched) => (sketched.shape.family.name(), String::new()),
            None => {
                let hint = "greatest locations; --group names those of a sketch";
                ("registers", hint.to_owned())
            }
        };
        Title {
            program: program.to_owned(),
            place: format!("engine at {}", self.address),
            traffic,
        }
    }

    fn next(&mut self, interval: Duration) -> Result<Look, TopError> {
        let now = Instant::now();
        let is_first = self.times.is_none();
        let (begin, due) = self.times.unwrap_or((now, now));
        std::thread::sleep(due.saturating_duration_since(now));
        let at = Instant::now();
        self.times = Some((begin, at + interval));
        let looked = self.look();
        let at_us = at.saturating_duration_since(begin).as_micros() as u64;
        let look = Look {
            at_us,
            ..Look::default()
        };
        match looked {
            Ok((groups, packets)) => Ok(Look {
                groups,
                packets,
                ..look
            }),
            Err(error) if is_first => Err(error),
            Err(error) => Ok(Look {
                trouble: Some(error.to_string()),
                ..look
            }),
        }
    }
}
