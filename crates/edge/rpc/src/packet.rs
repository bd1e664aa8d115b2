//! Packets to and from the controller: headers of the program as metadata, and back
//! (specification, "Packet I/O").

use crate::bytes::{self, Form};
use crate::proto::v1;
use crate::refusal::Refusal;
use num_bigint::BigUint;
use stateplane_ir::{Annotation, Interface, NamedTypeKind};

/// A header with `@controller_header`, which a packet of the CPU port begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// The annotation's argument: `packet_in` or `packet_out`.
    pub name: String,
    /// Its fields in order.
    pub fields: Vec<HeaderField>,
}

/// A field of such a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Its id in P4Info; `None` if it is hidden, and zero then.
    pub id: Option<u32>,
    /// Its bits in the packet.
    pub width: u32,
}

impl PacketHeader {
    /// The headers of a program.
    #[must_use]
    pub fn of(interface: &Interface) -> Vec<PacketHeader> {
        let headers = interface.controller_headers.iter();
        headers
            .filter_map(|id| {
                let named = &interface.types[id.0 as usize];
                let NamedTypeKind::Header(_) = named.kind else {
                    return None;
                };
                let annotation = Annotation::find(&named.annotations, "controller_header")?;
                let fields = stateplane_p4info::header_fields(interface, *id).ok()?;
                Some(PacketHeader {
                    name: annotation.string()?.to_owned(),
                    fields: fields
                        .into_iter()
                        .map(|field| HeaderField {
                            id: (!field.hidden).then_some(field.id),
                            width: field.width,
                        })
                        .collect(),
                })
            })
            .collect()
    }
}

/// A header, and how its fields are written as metadata.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) header: PacketHeader,
    /// Of the fields, in order.
    pub(crate) forms: Vec<Form>,
}

impl Layout {
    fn width(&self) -> u64 {
        let fields = self.header.fields.iter();
        fields.map(|field| u64::from(field.width)).sum::<u64>()
    }

    /// The frame of a packet of the controller.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` or `OUT_OF_RANGE` for metadata that are missing, given twice,
    /// unknown, or too wide.
    pub(crate) fn frame(&self, packet: &v1::PacketOut) -> Result<Vec<u8>, Refusal> {
        let mut values: Vec<Option<&[u8]>> = vec![None; self.header.fields.len()];
        for metadata in &packet.metadata {
            let at = self
                .header
                .fields
                .iter()
                .position(|field| field.id == Some(metadata.metadata_id));
            let Some(at) = at else {
                return Err(Refusal::invalid(format!(
                    "`{}` has no field {}",
                    self.header.name, metadata.metadata_id
                )));
            };
            if values[at].replace(&metadata.value).is_some() {
                return Err(Refusal::invalid(format!(
                    "field {} of `{}` is given twice",
                    metadata.metadata_id, self.header.name
                )));
            }
        }
        let mut bits = BigUint::default();
        for ((field, form), value) in self.header.fields.iter().zip(&self.forms).zip(values) {
            let value = match (field.id, value) {
                (None, _) => BigUint::default(),
                (Some(id), None) => {
                    return Err(Refusal::invalid(format!(
                        "field {id} of `{}` is missing",
                        self.header.name
                    )));
                }
                (Some(id), Some(value)) => {
                    let what = || format!("field {id} of `{}`", self.header.name);
                    let value = bytes::decode(value, form, &what)?;
                    if value.bits() > u64::from(field.width) {
                        return Err(Refusal::new(
                            tonic::Code::OutOfRange,
                            format!("{value} does not fit {}", what()),
                        ));
                    }
                    value
                }
            };
            bits = (bits << field.width) | value;
        }
        let length = self.width().div_ceil(8) as usize;
        bits <<= length as u64 * 8 - self.width();
        let digits = bits.to_bytes_be();
        let digits = match bits.bits() {
            0 => &[][..],
            _ => &digits[..],
        };
        let mut frame = vec![0; length - digits.len()];
        frame.extend_from_slice(digits);
        frame.extend_from_slice(&packet.payload);
        Ok(frame)
    }

    /// The packet for the controller of a frame; `None` if it is shorter than the header.
    #[must_use]
    pub(crate) fn packet(&self, frame: &[u8]) -> Option<v1::PacketIn> {
        let length = self.width().div_ceil(8) as usize;
        let (header, payload) = frame.split_at_checked(length)?;
        let bits = BigUint::from_bytes_be(header);
        let mut below = length as u64 * 8;
        let mut metadata = Vec::new();
        for (field, form) in self.header.fields.iter().zip(&self.forms) {
            below -= u64::from(field.width);
            let value = (&bits >> below) & bytes::all_ones(field.width);
            if let Some(id) = field.id {
                metadata.push(v1::PacketMetadata {
                    metadata_id: id,
                    value: bytes::encode(&value, form),
                });
            }
        }
        Some(v1::PacketIn {
            payload: payload.to_vec(),
            metadata,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Layout {
        let field = |id, width| HeaderField { id, width };
        Layout {
            header: PacketHeader {
                name: "packet_out".to_owned(),
                fields: vec![field(Some(1), 9), field(None, 3), field(Some(7), 4)],
            },
            forms: [9, 3, 4].map(Form::Bits).to_vec(),
        }
    }

    #[test]
    fn metadata_become_bits_and_back() {
        let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
            metadata_id,
            value: value.to_vec(),
        };
        let packet = v1::PacketOut {
            payload: vec![0xaa],
            metadata: vec![metadata(7, &[5]), metadata(1, &[0, 1])],
        };
        let frame = header().frame(&packet).unwrap();
        assert_eq!(frame, [0b0000_0000, 0b1000_0101, 0xaa]);
        let back = header().packet(&frame).unwrap();
        assert_eq!(back.payload, [0xaa]);
        assert_eq!(back.metadata, [metadata(1, &[1]), metadata(7, &[5])]);
        assert_eq!(header().packet(&[0]), None);
    }

    #[test]
    fn wrong_metadata_are_refused() {
        let metadata = |metadata_id, value: &[u8]| v1::PacketMetadata {
            metadata_id,
            value: value.to_vec(),
        };
        let code = |metadata: Vec<v1::PacketMetadata>| {
            let packet = v1::PacketOut {
                payload: Vec::new(),
                metadata,
            };
            header().frame(&packet).unwrap_err().code
        };
        use tonic::Code::{InvalidArgument, OutOfRange};
        assert_eq!(code(vec![metadata(1, &[1])]), InvalidArgument);
        assert_eq!(
            code(vec![metadata(1, &[1]), metadata(1, &[1])]),
            InvalidArgument
        );
        assert_eq!(code(vec![metadata(2, &[1])]), InvalidArgument);
        assert_eq!(
            code(vec![metadata(1, &[4, 0]), metadata(7, &[1])]),
            OutOfRange
        );
    }
}
