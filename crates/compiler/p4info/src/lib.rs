//! P4Info: the control plane's view of a P4 program, as the P4Runtime specification 1.4
//! defines it (chapter "P4Info Message"), with the ids and names that the reference
//! compiler gives.
//!
//! [`generate`] makes it from a checked program; [`text`] and [`binary`] read and write
//! it. An object's id is its kind in the high byte and a hash of its name below it
//! ([`Symbols`]), unless `@id` gives one.

mod annotation;
mod error;
mod fields;
mod generate;
mod objects;
mod reach;
mod symbols;
pub mod text;
mod types;

pub use error::{FormatError, GenerateError};
pub use fields::{HeaderField, field_ids, header_fields};
pub use generate::generate;
pub use symbols::{Kind, Symbols};
pub use types::width;

use prost::Message;

/// Messages of the package p4.config.v1.
#[expect(missing_docs, reason = "the definitions in proto/ have the comments")]
#[allow(clippy::all, reason = "generated code")]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
}

/// The descriptors of all messages in [`proto`], for reading and writing by reflection: an encoded
/// `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Binary form of P4Info.
pub mod binary {
    use super::{FormatError, Message, proto};

    /// Writes the binary form.
    #[must_use]
    pub fn write(info: &proto::P4Info) -> Vec<u8> {
        info.encode_to_vec()
    }

    /// Reads the binary form.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a `P4Info` message.
    pub fn read(bytes: &[u8]) -> Result<proto::P4Info, FormatError> {
        proto::P4Info::decode(bytes).map_err(|error| FormatError::Binary(error.to_string()))
    }
}
