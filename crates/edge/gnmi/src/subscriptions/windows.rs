//! Windows of a subscription: each once, in order, until it is not kept any more.

use std::collections::VecDeque;

use stateplane_host::sync::ViewError;
use tonic::Code;

use super::Moment;
use super::entry::Entry;
use super::job::{Dropped, Job, WindowJob};
use crate::facts::{Facts, WindowNext};
use crate::path::Selection;
use crate::refusal::Refusal;

/// Windows that were told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    /// Number behind which the next is wanted.
    pub(super) after: u64,
    /// Number of the first that was told and may be kept still; 0 before.
    pub(super) oldest: u64,
    /// The engine was asked for a first one.
    pub(super) is_begun: bool,
    /// All that were kept have been told.
    pub(super) is_whole: bool,
    /// The only one that is wanted has been told, or is not kept.
    pub(super) is_over: bool,
}

impl Entry {
    /// ONCE and POLL: windows are told from the oldest on.
    pub(super) fn begin_windows(&mut self) {
        let first = windows_of(&self.selection);
        for group in &mut self.groups {
            group.windows = group.windows.map(|_| first);
        }
    }

    /// Notes the windows that came; true if more may be there.
    ///
    /// # Errors
    ///
    /// OUT_OF_RANGE if one is not kept any more that was to be told.
    pub(super) fn take_windows(
        &mut self,
        moment: Moment,
        facts: &Facts,
        is_stream: bool,
        jobs: &mut VecDeque<Job>,
    ) -> Result<bool, Refusal> {
        let mut is_open = false;
        for group in &mut self.groups {
            let Some(windows) = group.windows.as_mut() else {
                continue;
            };
            let answer = |after: u64| {
                let mut all = facts.windows.iter();
                let found = all.find(|(at, behind, _)| (*at, *behind) == (group.at, after));
                found.map(|(_, _, next)| next)
            };
            if is_stream
                && windows.oldest > 0
                && let Some(WindowNext::Gone { oldest }) = answer(windows.oldest - 1)
            {
                let end = (*oldest).min(windows.after + 1);
                jobs.push_back(Job::Dropped(Dropped {
                    head: self.head.clone(),
                    name: group.info.name.clone(),
                    unix_ns: moment.unix_ns,
                    rest: windows.oldest..end,
                }));
                windows.oldest = if *oldest > windows.after { 0 } else { *oldest };
            }
            let Some(next) = answer(windows.after).filter(|_| !windows.is_over) else {
                is_open |= !windows.is_whole;
                continue;
            };
            let only = self.selection.window();
            match next {
                WindowNext::NotYet => (windows.is_begun, windows.is_whole) = (true, true),
                WindowNext::Gone { .. } if only.is_some() => windows.end(),
                WindowNext::Gone { oldest } if !windows.is_begun => {
                    windows.after = oldest - 1;
                    is_open = true;
                }
                WindowNext::Gone { oldest } => {
                    let gone = ViewError::Gone {
                        after: windows.after,
                        oldest: *oldest,
                    };
                    return Err(Refusal::of(Code::OutOfRange, gone.code(), gone.to_string()));
                }
                WindowNext::Window(window) => {
                    windows.is_begun = true;
                    is_open = true;
                    windows.after = window.number;
                    if only.is_some() {
                        windows.end();
                    }
                    if only.is_some_and(|only| only != window.number) {
                        continue;
                    }
                    if windows.oldest == 0 {
                        windows.oldest = window.number;
                    }
                    let leaves = self.selection.leaves.iter().copied();
                    jobs.push_back(Job::Window(Some(Box::new(WindowJob {
                        head: self.head.clone(),
                        name: group.info.name.clone(),
                        unix_ns: moment.unix_ns,
                        window: window.clone(),
                        leaves: leaves.filter(|it| it.is_of_window()).collect(),
                    }))));
                }
            }
        }
        Ok(is_open)
    }
}

impl Windows {
    fn end(&mut self) {
        (self.is_over, self.is_whole) = (true, true);
    }

    /// True if nothing is left to be told, not even that it is not kept any more.
    pub(super) fn is_idle(&self) -> bool {
        self.is_over && self.oldest == 0
    }
}

/// Before the first window of a selection.
pub(super) fn windows_of(selection: &Selection) -> Windows {
    Windows {
        after: selection.window().map_or(0, |only| only.saturating_sub(1)),
        ..Windows::default()
    }
}
