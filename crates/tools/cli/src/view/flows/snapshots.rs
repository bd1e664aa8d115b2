//! `stateplane view`: snapshots that switches in bounded inconsistency keep in a store.

use super::Session;
use crate::exit::CommandError;
use crate::view::engine::take_all;
use crate::view::refused;
use clap::Subcommand;
use stateplane_view::proto::v1;

/// Commands about snapshots that switches in bounded inconsistency keep in a store.
#[derive(Subcommand)]
pub enum SnapshotsCommand {
    /// Print arrays of which a store has snapshots, merged over all switches, dead ones too
    ///
    /// A line has the values of one element, one for each array. Comments name the switches and the
    /// numbers of their newest complete snapshots, and bound and age of what the engine has in view of
    /// their arrays: of both the newer value counts.
    Snapshots {
        /// Name of the arrays
        name: String,
    },
    /// Print each complete snapshot that comes, as JSON, once
    WatchSnapshots {
        /// Name of the arrays
        name: String,
        /// The last snapshot that is known, as SWITCH:INCARNATION:NUMBER; may be repeated
        #[arg(long, value_name = "SNAPSHOT", value_parser = known)]
        after: Vec<Known>,
        /// Stop after so many snapshots
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
}

/// A snapshot that a client has: number and start of the switch, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    switch: u32,
    incarnation: u32,
    number: u32,
}

fn known(text: &str) -> Result<Known, String> {
    let parts: Option<Vec<u32>> = text.split(':').map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some(&[switch, incarnation, number]) => Ok(Known {
            switch,
            incarnation,
            number,
        }),
        _ => Err("a snapshot is SWITCH:INCARNATION:NUMBER, in decimal numbers".to_owned()),
    }
}

impl Session<'_> {
    /// Runs a command about snapshots.
    pub(super) async fn carry_out(
        &mut self,
        command: &SnapshotsCommand,
    ) -> Result<(), CommandError> {
        match command {
            SnapshotsCommand::Snapshots { name } => {
                let request = v1::ReadSnapshotsRequest { name: name.clone() };
                let said = self.client.read_snapshots(request).await;
                self.printer
                    .snapshots(name, &said.map_err(refused)?.into_inner());
                Ok(())
            }
            SnapshotsCommand::WatchSnapshots { name, after, count } => {
                let after = after.iter().map(|it| v1::Snapshot {
                    switch: it.switch,
                    incarnation: it.incarnation,
                    number: it.number,
                    ..v1::Snapshot::default()
                });
                let request = v1::SnapshotsRequest {
                    name: name.clone(),
                    after: after.collect(),
                };
                self.watch_snapshots(request, *count).await
            }
        }
    }

    /// Prints snapshots; at another engine it goes on behind the last one of each start of a switch.
    async fn watch_snapshots(
        &mut self,
        mut request: v1::SnapshotsRequest,
        count: Option<u64>,
    ) -> Result<(), CommandError> {
        let mut left = count.unwrap_or(u64::MAX);
        loop {
            let opened = self.client.snapshots(request.clone()).await;
            let ended = take_all(opened, &mut left, |next| {
                self.printer.snapshot(&request.name, &next);
                let life = (next.switch, next.incarnation);
                let others = |it: &v1::Snapshot| (it.switch, it.incarnation) != life;
                request.after.retain(others);
                request.after.push(v1::Snapshot {
                    values: Vec::new().into(),
                    ..next
                });
            });
            match ended.await {
                None => return Ok(()),
                Some(ended) => self.follow(ended).await?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_snapshots_have_three_numbers() {
        let read = known("3:4000000000:7").expect("a snapshot");
        assert_eq!(
            (read.switch, read.incarnation, read.number),
            (3, 4_000_000_000, 7)
        );
        for wrong in ["", "3:4", "3:4:5:6", "a:4:5", "3:4294967296:5"] {
            assert!(known(wrong).is_err(), "{wrong}");
        }
    }
}
