//! Parts that the calls of all services share.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use stateplane_host::sync::ViewError;
use stateplane_rpc::Call;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_stream::{Stream, StreamExt, wrappers::ReceiverStream};
use tonic::{Response, Status};

use crate::refusal::refused;

/// Messages of a stream that wait for its reader; the next is made when one has left.
const STREAM: usize = 1;

/// Time between two looks for a window or snapshot that is to come.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// Patience of requests that do not say theirs.
const PATIENCE_US: u64 = 1_000_000;

/// Longest patience.
const MOST_PATIENCE_US: u64 = 600_000_000;

/// Least time between two notifications.
const LEAST_INTERVAL_US: u64 = 1_000;

/// µs for which a request waits that asks for so many.
pub(crate) fn patience(asked: u64) -> u64 {
    match asked {
        0 => PATIENCE_US,
        asked => asked.min(MOST_PATIENCE_US),
    }
}

pub(crate) fn malformed(message: &str) -> Status {
    refused(&ViewError::Malformed(message.to_owned()))
}

/// The moments of a stream's notifications, so many µs apart at least.
pub(crate) fn moments(interval_us: u64) -> Interval {
    let interval_us = interval_us.max(LEAST_INTERVAL_US);
    let mut ticks = tokio::time::interval(Duration::from_micros(interval_us));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A stream of messages to a client.
pub(crate) type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The messages that `work` sends, and the refusal with which it ends, if any. They hold the call and the
/// place of the stream while it is open.
pub(crate) fn streamed<T: Send + 'static, W>(
    held: (Option<Arc<Call>>, OwnedSemaphorePermit),
    work: impl FnOnce(mpsc::Sender<Result<T, Status>>) -> W,
) -> Response<Messages<T>>
where
    W: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(STREAM);
    let last = sender.clone();
    let work = work(sender);
    tokio::spawn(async move {
        if let Err(status) = work.await {
            let _ = last.send(Err(status)).await;
        }
    });
    let messages = ReceiverStream::new(receiver).map(move |message| {
        let _open = &held;
        message
    });
    Response::new(Box::pin(messages))
}
