//! `--metrics`: counts for Prometheus.

use crate::exit::{CommandError, Failure};
use stateplane_http::{MetricsServer, Scrape};
use std::net::SocketAddr;

/// Serves what `scrape` gives at `address`, if there is one, as long as the result lives.
///
/// # Errors
///
/// Returns an error if the address is taken or not one of this machine.
pub fn serve(
    address: Option<SocketAddr>,
    scrape: Scrape,
) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let server = MetricsServer::start(address, scrape).map_err(|error| {
        let message = format!("cannot serve metrics at {address}: {error}");
        CommandError::new(Failure::System, message)
    })?;
    eprintln!("metrics: http://{}/metrics", server.address());
    Ok(Some(server))
}
