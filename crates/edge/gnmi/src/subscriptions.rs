//! Subscribe: the messages of one subscriber, made of the engine's state at given times.
//!
//! [`Subscriptions`] has no IO. It says when it wants to look ([`Subscriptions::poll_timeout`]) and
//! at what ([`Subscriptions::needs`]); a look ([`Subscriptions::handle_facts`]) notes what is to be
//! told; [`Subscriptions::poll_transmit`] makes one message at a time. It is not to be given facts
//! before all messages have left, so that a slow subscriber gets the latest values and memory is
//! bounded: of each subscription and group the values that were told last are kept.

mod entry;
mod job;
mod windows;

use std::collections::VecDeque;

use crate::facts::{Facts, GroupInfo, Needs};
use crate::proto::gnmi::{
    SubscribeRequest, SubscribeResponse, SubscriptionList, subscribe_request::Request,
    subscribe_response::Response, subscription_list::Mode,
};
use crate::refusal::Refusal;
use crate::request::{check_extensions, check_models};
use crate::value::encoding;
use entry::Entry;
use job::Job;

/// Most subscriptions of one list.
const MOST_SUBSCRIPTIONS: usize = 64;

/// µs between two looks at what may have changed.
const LOOK_US: u64 = 10_000;

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// A clock in µs that never goes back.
    pub now_us: u64,
    /// ns since the epoch of Unix, for timestamps.
    pub unix_ns: i64,
}

/// The subscriptions of one call.
#[derive(Debug)]
pub struct Subscriptions {
    mode: Mode,
    updates_only: bool,
    entries: Vec<Entry>,
    jobs: VecDeque<Job>,
    /// ONCE and POLL: rounds that are wanted, each until its sync_response.
    wanted: u32,
    /// ONCE and POLL: the round's values were told, and windows follow.
    is_told: bool,
    /// STREAM: sync_response was told; ONCE: it was, and nothing follows.
    is_synced: bool,
    /// Facts were seen.
    is_begun: bool,
    next_look: u64,
}

impl Subscriptions {
    /// Takes the first request of a call, of an engine that has `groups`.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT and UNIMPLEMENTED, as the specification says (§3.5.2.4).
    pub fn new(request: &SubscribeRequest, groups: &[GroupInfo]) -> Result<Subscriptions, Refusal> {
        check_extensions(&request.extension)?;
        let Some(Request::Subscribe(list)) = &request.request else {
            let message = "the first request of a call has a list of subscriptions, `subscribe`";
            return Err(Refusal::invalid(message));
        };
        Subscriptions::of(list, groups)
    }

    fn of(list: &SubscriptionList, groups: &[GroupInfo]) -> Result<Subscriptions, Refusal> {
        check_models(&list.use_models)?;
        let encoding = encoding(list.encoding)?;
        let Ok(mode) = Mode::try_from(list.mode) else {
            let message = format!("there is no mode {} of lists of subscriptions", list.mode);
            return Err(Refusal::invalid(message));
        };
        if list.subscription.is_empty() || list.subscription.len() > MOST_SUBSCRIPTIONS {
            let message = format!("a list has 1 to {MOST_SUBSCRIPTIONS} subscriptions");
            return Err(Refusal::invalid(message));
        }
        let entry = |subscription| Entry::new(list, subscription, mode, encoding, groups);
        let entries: Result<_, Refusal> = list.subscription.iter().map(entry).collect();
        Ok(Subscriptions {
            mode,
            updates_only: list.updates_only,
            entries: entries?,
            jobs: VecDeque::new(),
            wanted: u32::from(mode == Mode::Once),
            is_told: false,
            is_synced: false,
            is_begun: false,
            next_look: 0,
        })
    }

    /// Takes a further request of the call: a poll.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT for any other, and for a poll of what is not polled.
    pub fn handle_request(&mut self, request: &SubscribeRequest) -> Result<(), Refusal> {
        match &request.request {
            Some(Request::Poll(_)) if self.mode == Mode::Poll => {
                self.wanted = self.wanted.saturating_add(1);
                self.next_look = 0;
                Ok(())
            }
            Some(Request::Poll(_)) => {
                let message = "only a list of mode POLL is polled";
                Err(Refusal::invalid(message))
            }
            _ => {
                let message = "a call has one list of subscriptions: begin another call";
                Err(Refusal::invalid(message))
            }
        }
    }

    /// True if nothing follows what [`poll_transmit`](Self::poll_transmit) gives.
    pub fn is_finished(&self) -> bool {
        self.mode == Mode::Once && self.is_synced && self.jobs.is_empty()
    }

    /// True if polls are awaited, so that a client that sends no more requests has ended.
    pub fn is_polled(&self) -> bool {
        self.mode == Mode::Poll
    }

    /// When facts are wanted, in µs of [`Moment::now_us`]; `None` before the next poll, or for good.
    pub fn poll_timeout(&self) -> Option<u64> {
        let is_idle = match self.mode {
            Mode::Stream => false,
            Mode::Once => self.is_synced,
            Mode::Poll => self.is_begun && self.wanted == 0,
        };
        (!is_idle).then_some(self.next_look)
    }

    /// Facts that are wanted at the next look.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs {
            report: !self.is_begun,
            ..Needs::default()
        };
        for entry in &self.entries {
            entry.add_needs(self.mode, &mut needs);
        }
        needs
    }

    /// Looks at the engine's state.
    ///
    /// # Errors
    ///
    /// OUT_OF_RANGE if windows are not kept any more that were to be told.
    pub fn handle_facts(&mut self, moment: Moment, facts: &Facts) -> Result<(), Refusal> {
        self.next_look = moment.now_us.saturating_add(LOOK_US);
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first && self.updates_only {
            for entry in &mut self.entries {
                entry.skip(moment, facts);
            }
            self.sync();
            if self.mode == Mode::Once {
                self.wanted = 0;
            }
        }
        match self.mode {
            Mode::Stream => self.stream(moment, facts),
            Mode::Once | Mode::Poll if self.wanted > 0 => self.round(moment, facts),
            Mode::Once | Mode::Poll => Ok(()),
        }
    }

    fn stream(&mut self, moment: Moment, facts: &Facts) -> Result<(), Refusal> {
        let mut is_open = false;
        for entry in &mut self.entries {
            entry.stream(moment, facts, &mut self.jobs);
            is_open |= entry.take_windows(moment, facts, true, &mut self.jobs)?;
        }
        let is_whole = !is_open && self.entries.iter().all(Entry::is_whole);
        if is_whole && !self.is_synced {
            self.sync();
        }
        let now = moment.now_us;
        let next = self.entries.iter().map(|entry| entry.next_look(now)).min();
        self.next_look = next.filter(|_| !is_open).unwrap_or(now);
        Ok(())
    }

    /// ONCE and POLL: everything, once all views that are asked for are complete.
    fn round(&mut self, moment: Moment, facts: &Facts) -> Result<(), Refusal> {
        if !self.is_told {
            if !self.entries.iter().all(|it| it.is_complete(facts)) {
                return Ok(());
            }
            for entry in &mut self.entries {
                entry.tell(moment, facts, !self.updates_only, &mut self.jobs);
                if !self.updates_only {
                    entry.begin_windows();
                }
            }
            self.is_told = true;
            self.next_look = moment.now_us;
            return Ok(());
        }
        let mut is_open = false;
        for entry in &mut self.entries {
            is_open |= entry.take_windows(moment, facts, false, &mut self.jobs)?;
        }
        if is_open {
            self.next_look = moment.now_us;
        } else {
            self.is_told = false;
            self.wanted -= 1;
            self.next_look = moment.now_us;
            self.sync();
        }
        Ok(())
    }

    fn sync(&mut self) {
        self.is_synced = true;
        self.jobs.push_back(Job::Sync);
    }

    /// The next message to the subscriber.
    pub fn poll_transmit(&mut self) -> Option<SubscribeResponse> {
        loop {
            let Some(response) = self.jobs.front_mut()?.next() else {
                self.jobs.pop_front();
                continue;
            };
            if matches!(response, Response::SyncResponse(_)) {
                self.jobs.pop_front();
            }
            return Some(SubscribeResponse {
                response: Some(response),
                extension: Vec::new(),
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
