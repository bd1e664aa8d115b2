//! Ids of match fields, action parameters and fields of controller headers.

use crate::annotation::{has, written_id};
use crate::error::GenerateError;
use crate::types::flatten;
use stateplane_ir::{Annotation, DataType, Interface, NamedTypeId, NamedTypeKind};
use std::collections::BTreeSet;

/// The ids of an object's fields, given the annotations of each: its `@id`, or the next
/// number from 1 that none has. A field with an `@id` uses a number up all the same.
///
/// # Errors
///
/// If an `@id` is no id, or two are equal. `owner` is the object's name for the message.
pub fn field_ids<'a>(
    owner: &str,
    fields: impl Iterator<Item = &'a [Annotation]>,
) -> Result<Vec<u32>, GenerateError> {
    let written = fields
        .map(|annotations| written_id(owner, annotations))
        .collect::<Result<Vec<_>, _>>()?;
    let mut taken = BTreeSet::new();
    for id in written.iter().flatten() {
        if !taken.insert(*id) {
            return Err(GenerateError::DuplicateId {
                name: owner.to_owned(),
                id: *id,
            });
        }
    }
    let mut next = 1;
    let mut ids = Vec::new();
    for id in written {
        match id {
            Some(id) => {
                next += 1;
                ids.push(id);
            }
            None => {
                while taken.contains(&next) {
                    next += 1;
                }
                taken.insert(next);
                ids.push(next);
            }
        }
    }
    Ok(ids)
}

/// A field of a header as it lies in the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Its id.
    pub id: u32,
    /// Bits in the packet, those of its own type where the controller's is another.
    pub width: u32,
    /// True if P4Info leaves it out (`@hidden`).
    pub hidden: bool,
}

/// The fields of a header with `@controller_header`, structs in it flattened.
///
/// # Errors
///
/// Returns the errors of [`field_ids`].
pub fn header_fields(
    interface: &Interface,
    header: NamedTypeId,
) -> Result<Vec<HeaderField>, GenerateError> {
    let named = &interface.types[header.0 as usize];
    let NamedTypeKind::Header(members) = &named.kind else {
        return Ok(Vec::new());
    };
    let fields = flatten(interface, members);
    let annotations = fields
        .iter()
        .map(|(_, annotations, _)| annotations.as_slice());
    let ids = field_ids(&named.name, annotations)?;
    let fields = fields.iter().zip(ids);
    Ok(fields
        .map(|((_, annotations, ty), id)| HeaderField {
            id,
            width: packet_width(interface, ty),
            hidden: has(annotations, "hidden"),
        })
        .collect())
}

/// Bits of a scalar in a packet.
fn packet_width(interface: &Interface, ty: &DataType) -> u32 {
    match ty {
        DataType::Bool => 1,
        DataType::Bits(width) | DataType::Int(width) | DataType::Varbit(width) => *width,
        DataType::Error | DataType::Stack(..) | DataType::Tuple(_) => 0,
        DataType::Named(id) => match &interface.types[id.0 as usize].kind {
            NamedTypeKind::New { underlying } | NamedTypeKind::Serial { underlying, .. } => {
                packet_width(interface, underlying)
            }
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_ir::{AnnotationBody, AnnotationToken};

    fn id(number: u32) -> Vec<Annotation> {
        vec![Annotation {
            name: "id".to_owned(),
            body: AnnotationBody::Tokens(vec![AnnotationToken::Number(
                number.into(),
                number.to_string(),
            )]),
        }]
    }

    #[test]
    fn ids_count_around_those_written() {
        let none = Vec::new();
        let ids = |fields: &[&Vec<Annotation>]| {
            field_ids("t", fields.iter().map(|annotations| annotations.as_slice()))
        };
        assert_eq!(ids(&[&none, &none]), Ok(vec![1, 2]));
        assert_eq!(ids(&[&id(2), &none, &none]), Ok(vec![2, 3, 4]));
        assert_eq!(ids(&[&none, &id(9), &none]), Ok(vec![1, 9, 2]));
        assert!(matches!(
            ids(&[&id(3), &id(3)]),
            Err(GenerateError::DuplicateId { id: 3, .. })
        ));
        assert!(matches!(
            ids(&[&id(0)]),
            Err(GenerateError::InvalidId { .. })
        ));
    }
}
