//! Errors of etcd as the controller's storage.

use std::path::PathBuf;

/// Error of etcd as the controller's storage.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// An endpoint that is no address, or keys for TLS that cannot be used.
    #[error("etcd: {endpoint}: {cause}; an endpoint is written as http://10.0.0.1:2379")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// Description of the error.
        cause: tonic::transport::Error,
    },
    /// No endpoint is set.
    #[error("etcd: `endpoints` is empty: name the client address of at least one member")]
    NoEndpoints,
    /// A file of certificates or keys cannot be read.
    #[error("etcd: {} cannot be read: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// The system has no threads or descriptors left.
    #[error("etcd: {0}")]
    System(std::io::Error),
    /// etcd does not answer, or refuses.
    #[error("etcd: {}: {}", .0.code(), .0.message())]
    Refused(#[from] Box<tonic::Status>),
    /// A key holds something else than a controller wrote.
    #[error("etcd: {key} holds no configuration: restore it, or name another `prefix`")]
    Foreign {
        /// The key.
        key: String,
    },
}

impl EtcdError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            EtcdError::Endpoint { .. } => "H421",
            EtcdError::NoEndpoints => "H422",
            EtcdError::File { .. } => "H423",
            EtcdError::System(_) => "H424",
            EtcdError::Refused(_) => "H425",
            EtcdError::Foreign { .. } => "H426",
        }
    }
}

impl From<tonic::Status> for EtcdError {
    fn from(status: tonic::Status) -> EtcdError {
        EtcdError::Refused(Box::new(status))
    }
}
