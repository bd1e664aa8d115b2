//! Connections to the members of an etcd.

use std::path::Path;

use tokio::runtime::Runtime;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{EtcdError, PATIENCE};

/// Bytes of the longest answer: all configurations of the most chains, or the pieces of a window.
pub(crate) const LONGEST_ANSWER: usize = 1 << 28;

/// Files (PEM) for TLS.
pub(crate) struct TlsFiles<'a> {
    pub(crate) roots: Option<&'a Path>,
    pub(crate) certificate: Option<&'a Path>,
    pub(crate) key: Option<&'a Path>,
}

/// A runtime with a thread for what is under way.
///
/// # Errors
///
/// [`EtcdError::System`] if there are no threads left.
pub(crate) fn runtime() -> Result<Runtime, EtcdError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("etcd")
        .enable_all()
        .build()
        .map_err(EtcdError::System)
}

/// A channel to those of `endpoints` that answer.
///
/// # Errors
///
/// [`EtcdError::NoEndpoints`], [`EtcdError::Endpoint`], [`EtcdError::File`].
pub(crate) fn channel(
    runtime: &Runtime,
    endpoints: &[String],
    tls: &TlsFiles<'_>,
) -> Result<Channel, EtcdError> {
    if endpoints.is_empty() {
        return Err(EtcdError::NoEndpoints);
    }
    let tls = config(tls)?;
    let endpoints = endpoints.iter();
    let endpoints: Result<Vec<Endpoint>, EtcdError> = endpoints
        .map(|endpoint| open(endpoint, tls.as_ref()))
        .collect();
    let endpoints = endpoints?.into_iter();
    Ok(runtime.block_on(async { Channel::balance_list(endpoints) }))
}

fn open(endpoint: &str, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, EtcdError> {
    let wrong = |cause| EtcdError::Endpoint {
        endpoint: endpoint.to_owned(),
        cause,
    };
    let opened = Endpoint::from_shared(endpoint.to_owned())
        .map_err(wrong)?
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE);
    match tls {
        Some(tls) if endpoint.starts_with("https:") => {
            opened.tls_config(tls.clone()).map_err(wrong)
        }
        _ => Ok(opened),
    }
}

fn config(files: &TlsFiles<'_>) -> Result<Option<ClientTlsConfig>, EtcdError> {
    let text = |path: &Path| {
        std::fs::read(path).map_err(|cause| EtcdError::File {
            path: path.into(),
            cause,
        })
    };
    let Some(roots) = files.roots else {
        return Ok(None);
    };
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(text(roots)?));
    Ok(Some(match (files.certificate, files.key) {
        (Some(certificate), Some(key)) => {
            tls.identity(Identity::from_pem(text(certificate)?, text(key)?))
        }
        _ => tls,
    }))
}
