//! An operation of a recipe, followed to its end.

use std::collections::BTreeMap;

use crate::{Agent, Answer, Event, Fate, Operation, Reason, Refused, Ticket};

/// How an operation ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It was decided. After an unknown outcome the record is missing.
    Answered(Answer),
    /// It had no effect and will have none.
    Never,
    /// Nobody can tell, nor ever will: the session or the group's contents are gone.
    Lost,
    /// Another name has the same key.
    Clash,
}

/// One operation at a time. An unknown outcome is waited for until it is resolved (rule 6).
#[derive(Debug, Default)]
pub(crate) struct Call {
    ticket: Option<Ticket>,
}

impl Call {
    /// Begins an operation; the former one is no longer followed.
    pub fn begin(
        &mut self,
        now: u64,
        agent: &mut Agent,
        operation: Operation,
    ) -> Result<(), Refused> {
        self.ticket = None;
        self.ticket = Some(agent.submit(now, operation)?);
        Ok(())
    }

    /// True if an operation is under way.
    pub fn is_busy(&self) -> bool {
        self.ticket.is_some()
    }

    /// True if `event` is about the operation under way.
    pub fn concerns(&self, event: &Event) -> bool {
        self.ticket.is_some() && event.ticket() == self.ticket
    }

    /// Gives up the operation under way; its end is told all the same.
    pub fn cancel(&self, now: u64, agent: &mut Agent) {
        if let Some(ticket) = self.ticket {
            agent.cancel(now, ticket);
        }
    }

    /// The end of the operation, if `event` is that.
    pub fn end(&mut self, event: &Event) -> Option<End> {
        if !self.concerns(event) {
            return None;
        }
        let end = end_of(event)?;
        self.ticket = None;
        Some(end)
    }
}

/// Operations that run side by side, each with what the recipe calls it.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    running: BTreeMap<Ticket, T>,
}

impl<T> Default for Calls<T> {
    fn default() -> Calls<T> {
        Calls {
            running: BTreeMap::new(),
        }
    }
}

impl<T> Calls<T> {
    /// Begins an operation.
    pub fn begin(
        &mut self,
        now: u64,
        agent: &mut Agent,
        operation: Operation,
        call: T,
    ) -> Result<(), Refused> {
        let ticket = agent.submit(now, operation)?;
        self.running.insert(ticket, call);
        Ok(())
    }

    /// True if none is under way.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// True if `event` is about one of them.
    pub fn concerns(&self, event: &Event) -> bool {
        event
            .ticket()
            .is_some_and(|ticket| self.running.contains_key(&ticket))
    }

    /// The end of one of them, if `event` is that.
    pub fn end(&mut self, event: &Event) -> Option<(T, End)> {
        let ticket = event.ticket()?;
        if !self.running.contains_key(&ticket) {
            return None;
        }
        let end = end_of(event)?;
        Some((self.running.remove(&ticket)?, end))
    }
}

fn end_of(event: &Event) -> Option<End> {
    Some(match event {
        Event::Answered { answer, .. } => End::Answered(answer.clone()),
        Event::Expired { .. } => End::Never,
        Event::Failed { reason, .. } => match reason {
            Reason::Clash => End::Clash,
            Reason::LaneEnded | Reason::Refounded => End::Lost,
        },
        Event::Resolved { fate, .. } => match *fate {
            Fate::Executed {
                outcome,
                number,
                token,
            } => End::Answered(Answer {
                outcome,
                number,
                newest: number,
                token,
                record: None,
                slot: 0,
                more: false,
            }),
            Fate::Never => End::Never,
            Fate::Lost => End::Lost,
        },
        Event::Unknown { .. }
        | Event::Entry { .. }
        | Event::ChainWanted { .. }
        | Event::LanesEnded => return None,
    })
}
