//! The history that hosts' lines tell.

use super::hosts::QUEUE;
use crate::error::LabError;
use stateplane_history::multicast::{
    Document, Event, EventKind, History, Multicast, MulticastEvent,
};
use std::path::Path;

/// Events of a host's output, in its order. The last line of one that was killed may be half
/// there, and is left out.
///
/// # Errors
/// The fault of a line.
pub(super) fn events(text: &str) -> Result<Vec<Event>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let document = Document::read(whole).map_err(|error| error.to_string())?;
    Ok(document.history.events)
}

/// Events of the file of a host's output.
///
/// # Errors
/// `LAB003` if it cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<Event>, LabError> {
    let text = std::fs::read_to_string(path).map_err(|reason| LabError::file(path, reason))?;
    events(&text).map_err(|fault| LabError::file(path, std::io::Error::other(fault)))
}

/// The host that a receiver's events were of last, by its number.
pub(super) fn last_node(events: &[Event]) -> Option<u32> {
    let mut latest = events.iter().rev();
    latest.find_map(|event| match event.kind {
        EventKind::Of(
            MulticastEvent::Joined { node, .. }
            | MulticastEvent::Left { node, .. }
            | MulticastEvent::Delivered { node, .. }
            | MulticastEvent::Executed { node, .. }
            | MulticastEvent::Sent { node, .. },
        ) => Some(node),
        _ => None,
    })
}

/// Rank among events of one microsecond: those come first that make others right, and a message
/// that is sent when another is complete counts as sent before, an operation that is called when
/// another is answered as called before.
fn rank(event: &Event) -> u8 {
    let event = match &event.kind {
        EventKind::Of(event) => event,
        EventKind::Call { .. } => return 1,
        EventKind::Return { .. } => return 3,
        _ => return 4,
    };
    match event {
        MulticastEvent::Joined { .. } => 0,
        MulticastEvent::Sent { .. } => 1,
        MulticastEvent::Completed { .. } | MulticastEvent::Refused { .. } => 3,
        _ => 2,
    }
}

/// The history of a run in which everything arrives within `within` µs of the last fault.
pub(super) fn history(mut events: Vec<Event>, within: u64, window: u32) -> History {
    events.sort_by_key(|event| (event.at, rank(event)));
    History {
        system: Multicast {
            within,
            queue: QUEUE.into(),
            window: window.into(),
        },
        events,
    }
}
