//! Transactions that hold ten locks each: the workload of NetChain's §8.5, after TPC-C's new-order.

use crate::measure::Latencies;
use crate::service::{Connection, Service};
use serde::{Deserialize, Serialize};
use stateplane_random::Random;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Locks of a transaction, one of them of a hot item.
const LOCKS: usize = 10;
/// Time, at most, before a client asks again for a lock that another has, at first.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
/// And after many attempts.
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// Clients that run transactions. Each takes the lock of one of `hot` items, then those of nine of
/// `cold` items at once, and gives all of them back. A client that is refused one of the nine gives
/// back what it has and begins anew, so that none waits while it holds what another needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Number of clients.
    pub clients: usize,
    /// Hot items, at least 1: the inverse of the contention index.
    pub hot: u64,
    /// Other items, at least 9.
    pub cold: u64,
    /// Duration in ms.
    pub duration_ms: u64,
    /// True if all ten are asked for in one request, where the service has such requests.
    pub together: bool,
}

impl Contest {
    /// Items of a transaction: the hot one first, the others by their number. Cold items are
    /// counted on from the last hot one.
    pub fn draw(&self, random: &mut Random) -> Vec<u64> {
        let mut items = vec![random.between(0, self.hot - 1)];
        while items.len() < LOCKS {
            let item = self.hot + random.between(0, self.cold - 1);
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items[1..].sort_unstable();
        items
    }

    /// The time before attempt `attempt`, from 1, at a lock that another had.
    pub fn pause(random: &mut Random, attempt: u32) -> Duration {
        let longest = FIRST_PAUSE * 2_u32.saturating_pow(attempt.min(16) - 1);
        let longest = longest.min(LAST_PAUSE).as_micros() as u64;
        Duration::from_micros(random.between(longest / 4, longest))
    }
}

/// Transactions of a [`Contest`].
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    /// Transactions that held all their locks.
    pub done: u64,
    /// Requests that another's lock refused.
    pub refused: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// Time for which transactions were counted.
    pub spent: Duration,
    /// Times of transactions, with all attempts.
    pub latencies: Latencies,
}

/// A connection whose service has locks that end with their client.
pub(crate) trait Locks: Connection + Clone + Sync {
    /// True if the service takes several locks in one request.
    const TOGETHER: bool;

    /// Takes all of `locks`, or none; false if another has one.
    fn try_lock(&self, locks: &[u64]) -> impl Future<Output = Result<bool, String>> + Send;

    /// Gives back locks that it has.
    fn unlock(&self, locks: &[u64]) -> impl Future<Output = Result<(), String>> + Send;
}

#[allow(
    private_bounds,
    reason = "which services have locks is this crate's to say"
)]
impl<C: Locks> Service<C> {
    /// Runs transactions; clients without a connection are left out.
    pub fn transactions(&mut self, contest: &Contest, seed: u64) -> Transactions {
        let mut random = Random::new(seed);
        let (runtime, connections) = self.parts();
        let clients: Vec<C> = connections.iter().take(contest.clients).cloned().collect();
        let contest = *contest;
        let duration = Duration::from_millis(contest.duration_ms);
        let end = Instant::now() + duration;
        let ended = runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for client in clients {
                tasks.spawn(transact(client, contest, random.split(), end));
            }
            tasks.join_all().await
        });
        let mut all = Transactions {
            spent: duration,
            ..Transactions::default()
        };
        for one in ended {
            all.done += one.done;
            all.refused += one.refused;
            all.failed += one.failed;
            all.latencies.append(one.latencies);
        }
        all
    }
}

async fn transact<C: Locks>(
    client: C,
    contest: Contest,
    mut random: Random,
    end: Instant,
) -> Transactions {
    let mut told = Transactions::default();
    while Instant::now() < end {
        let items = contest.draw(&mut random);
        let begun = Instant::now();
        let mut attempt = 0;
        loop {
            let taken = if contest.together && C::TOGETHER {
                all(&client, vec![items.clone()], &mut told).await
            } else {
                in_turn(&client, &items, &mut told).await
            };
            if taken.len() == items.len() {
                give_back(&client, taken, contest.together && C::TOGETHER, &mut told).await;
                let now = Instant::now();
                if now <= end {
                    told.done += 1;
                    told.latencies.add(now - begun);
                }
                break;
            }
            give_back(&client, taken, false, &mut told).await;
            if Instant::now() >= end {
                break;
            }
            attempt += 1;
            tokio::time::sleep(Contest::pause(&mut random, attempt)).await;
        }
    }
    told
}

/// The locks that it got: the hot one, then the others at once.
async fn in_turn<C: Locks>(client: &C, items: &[u64], told: &mut Transactions) -> Vec<u64> {
    let mut taken = all(client, vec![vec![items[0]]], told).await;
    if !taken.is_empty() {
        let rest = items[1..].iter().map(|item| vec![*item]).collect();
        taken.extend(all(client, rest, told).await);
    }
    taken
}

/// Asks for several sets of locks at once; gives those that it got.
async fn all<C: Locks>(client: &C, sets: Vec<Vec<u64>>, told: &mut Transactions) -> Vec<u64> {
    let mut tasks = JoinSet::new();
    for set in sets {
        let client = client.clone();
        tasks.spawn(async move { (client.try_lock(&set).await, set) });
    }
    let mut taken = Vec::new();
    for (answer, set) in tasks.join_all().await {
        match answer {
            Ok(true) => taken.extend(set),
            Ok(false) => told.refused += 1,
            Err(_) => told.failed += 1,
        }
    }
    taken
}

async fn give_back<C: Locks>(client: &C, taken: Vec<u64>, together: bool, told: &mut Transactions) {
    let sets = if together {
        vec![taken]
    } else {
        taken.into_iter().map(|item| vec![item]).collect()
    };
    let mut tasks = JoinSet::new();
    for set in sets {
        let client = client.clone();
        tasks.spawn(async move { client.unlock(&set).await });
    }
    for answer in tasks.join_all().await {
        told.failed += u64::from(answer.is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_one_hot_item_and_nine_others() {
        let contest = Contest {
            clients: 1,
            hot: 10,
            cold: 20,
            duration_ms: 1,
            together: false,
        };
        let mut random = Random::new(3);
        for _ in 0..100 {
            let items = contest.draw(&mut random);
            assert_eq!(items.len(), LOCKS);
            assert!(items[0] < 10);
            assert!(items[1..].iter().all(|item| (10..30).contains(item)));
            assert!(items[1..].windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn pauses_grow_up_to_their_bound() {
        let mut random = Random::new(3);
        let mut longest = |attempt: u32| {
            let drawn = (0..200).map(|_| Contest::pause(&mut random, attempt));
            drawn.max().unwrap()
        };
        let of_each: Vec<Duration> = [1, 2, 3, 60].map(&mut longest).to_vec();
        assert!(of_each[0] <= FIRST_PAUSE);
        assert!(of_each.is_sorted(), "{of_each:?}");
        assert!(of_each[3] <= LAST_PAUSE && of_each[3] > LAST_PAUSE / 2);
    }
}
