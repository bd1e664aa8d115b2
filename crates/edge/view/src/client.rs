//! A client of an engine.

use std::time::Duration;

use stateplane_host::sync::VALUE_BYTES;
use tonic::transport::{Channel, Endpoint};

use crate::proto::v1::flows_client::FlowsClient;
use crate::proto::v1::view_client::ViewClient;

/// Bytes that may be under way before a client has read them: a view of 2²⁰ values fits.
const WINDOW: u32 = 16 << 20;

/// Bytes of the longest frame of HTTP/2 that the client takes. A view of 2¹⁶ values fits, which then
/// comes by a few system calls.
const FRAME: u32 = 1 << 20;

/// Longest answer about flows: a million of them with states of a hundred bytes fit.
const MOST_FLOWS: usize = 256 << 20;

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// Why there is no connection.
pub type ConnectError = tonic::transport::Error;

/// A client of the views of the engine at `address`, as `http://127.0.0.1:9560`.
///
/// # Errors
///
/// The address is none, or nobody answers there.
pub async fn connect(address: String) -> Result<ViewClient<Channel>, ConnectError> {
    Ok(view_client(open(address).await?))
}

/// A connection to the engine at `address`, as `http://127.0.0.1:9560`.
///
/// # Errors
///
/// The address is none, or nobody answers there.
pub async fn open(address: String) -> Result<Channel, ConnectError> {
    let endpoint = Endpoint::from_shared(address)?
        .tcp_nodelay(true)
        .max_frame_size(FRAME)
        .connect_timeout(CONNECT)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    endpoint.connect().await
}

/// A client of the views of the engine to which `channel` leads.
pub fn view_client(channel: Channel) -> ViewClient<Channel> {
    ViewClient::new(channel)
        .max_decoding_message_size(2 * WINDOW as usize)
        .max_encoding_message_size(2 * WINDOW as usize)
}

/// A client of the flows of the engine to which `channel` leads.
pub fn flows_client(channel: Channel) -> FlowsClient<Channel> {
    FlowsClient::new(channel).max_decoding_message_size(MOST_FLOWS)
}

/// The values of packed bytes; bytes of a value that is cut are left out.
pub fn unpack(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, _) = bytes.as_chunks::<VALUE_BYTES>();
    whole.iter().map(|value| u64::from_le_bytes(*value))
}
