//! Types in P4Info: their specifications, and the table of those with names.

use crate::annotation::{kept, wrong};
use crate::error::GenerateError;
use crate::proto::{self, p4_data_type_spec::TypeSpec};
use num_traits::ToPrimitive;
use stateplane_ir::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationValue, DataType, Interface, MemberType,
    NamedType, NamedTypeId, NamedTypeKind,
};

/// The annotation of a `type` whose values differ at the controller.
const TRANSLATION: &str = "p4runtime_translation";

/// Types with names met so far.
pub(crate) struct TypeTable<'a> {
    interface: &'a Interface,
    errors: &'a [String],
    pub(crate) info: proto::P4TypeInfo,
}

/// Notation of a controller for values of a translated type.
enum Controller {
    /// A string of any length.
    Text,
    /// A number of this width in bits.
    Bits(i32),
}

impl<'a> TypeTable<'a> {
    /// Table without types; `errors` are the program's.
    pub(crate) fn new(interface: &'a Interface, errors: &'a [String]) -> Self {
        TypeTable {
            interface,
            errors,
            info: proto::P4TypeInfo::default(),
        }
    }

    pub(crate) fn named(&self, id: NamedTypeId) -> &'a NamedType {
        &self.interface.types[id.0 as usize]
    }

    /// The specification of a type; its names are entered into the table.
    pub(crate) fn spec(&mut self, ty: &DataType) -> Result<proto::P4DataTypeSpec, GenerateError> {
        let spec = match ty {
            DataType::Bool => TypeSpec::Bool(proto::P4BoolType {}),
            DataType::Bits(_) | DataType::Int(_) | DataType::Varbit(_) => {
                TypeSpec::Bitstring(bit_string(ty))
            }
            DataType::Error => {
                self.info
                    .error
                    .get_or_insert_with(|| proto::P4ErrorTypeSpec {
                        members: self.errors.to_vec(),
                    });
                TypeSpec::Error(proto::P4ErrorType {})
            }
            DataType::Named(id) => {
                self.enter(*id)?;
                let named = self.named(*id);
                let reference = reference(&named.name);
                match &named.kind {
                    NamedTypeKind::Struct(_) => TypeSpec::Struct(reference),
                    NamedTypeKind::Header(_) => TypeSpec::Header(reference),
                    NamedTypeKind::Union(_) => TypeSpec::HeaderUnion(reference),
                    NamedTypeKind::Enum(_) => TypeSpec::Enum(reference),
                    NamedTypeKind::Serial { .. } => TypeSpec::SerializableEnum(reference),
                    NamedTypeKind::New { .. } => TypeSpec::NewType(reference),
                }
            }
            DataType::Stack(id, size) => {
                self.enter(*id)?;
                let named = self.named(*id);
                let element = Some(reference(&named.name));
                let size = i32::try_from(*size).unwrap_or(i32::MAX);
                match &named.kind {
                    NamedTypeKind::Union(_) => {
                        TypeSpec::HeaderUnionStack(proto::P4HeaderUnionStackTypeSpec {
                            header_union: element,
                            size,
                        })
                    }
                    _ => TypeSpec::HeaderStack(proto::P4HeaderStackTypeSpec {
                        header: element,
                        size,
                    }),
                }
            }
            DataType::Tuple(members) => TypeSpec::Tuple(proto::P4TupleTypeSpec {
                members: members
                    .iter()
                    .map(|member| self.spec(member))
                    .collect::<Result<_, _>>()?,
            }),
        };
        Ok(proto::P4DataTypeSpec {
            type_spec: Some(spec),
        })
    }

    fn enter(&mut self, id: NamedTypeId) -> Result<(), GenerateError> {
        let named = self.named(id);
        let name = named.name.clone();
        match &named.kind {
            NamedTypeKind::Struct(members) => {
                if !self.info.structs.contains_key(&name) {
                    let spec = self.structure(members)?;
                    self.info.structs.insert(name, spec);
                }
            }
            NamedTypeKind::Header(members) => {
                if !self.info.headers.contains_key(&name) {
                    let members =
                        flatten(self.interface, members)
                            .into_iter()
                            .map(|(name, _, ty)| proto::p4_header_type_spec::Member {
                                name,
                                type_spec: Some(bit_string(&ty)),
                            });
                    let spec = proto::P4HeaderTypeSpec {
                        members: members.collect(),
                        ..Default::default()
                    };
                    self.info.headers.insert(name, spec);
                }
            }
            NamedTypeKind::Union(members) => {
                if !self.info.header_unions.contains_key(&name) {
                    let spec = self.header_union(members)?;
                    self.info.header_unions.insert(name, spec);
                }
            }
            NamedTypeKind::Enum(members) => {
                let members = members.iter().map(|name| proto::p4_enum_type_spec::Member {
                    name: name.clone(),
                    ..Default::default()
                });
                let spec = proto::P4EnumTypeSpec {
                    members: members.collect(),
                    ..Default::default()
                };
                self.info.enums.insert(name, spec);
            }
            NamedTypeKind::Serial {
                underlying,
                members,
            } => {
                let width = width(self.interface, underlying);
                let members = members.iter().map(|(name, value)| {
                    proto::p4_serializable_enum_type_spec::Member {
                        name: name.clone(),
                        value: crate::objects::value_bytes(value, width),
                        ..Default::default()
                    }
                });
                let spec = proto::P4SerializableEnumTypeSpec {
                    underlying_type: Some(proto::P4BitTypeSpec { bitwidth: width }),
                    members: members.collect(),
                    ..Default::default()
                };
                self.info.serializable_enums.insert(name, spec);
            }
            NamedTypeKind::New { .. } => {
                if !self.info.new_types.contains_key(&name) {
                    let spec = self.new_type(id)?;
                    self.info.new_types.insert(name, spec);
                }
            }
        }
        Ok(())
    }

    fn structure(
        &mut self,
        members: &[MemberType],
    ) -> Result<proto::P4StructTypeSpec, GenerateError> {
        let members = members
            .iter()
            .map(|member| {
                Ok(proto::p4_struct_type_spec::Member {
                    name: member.name.clone(),
                    type_spec: Some(self.spec(&member.ty)?),
                })
            })
            .collect::<Result<_, GenerateError>>()?;
        Ok(proto::P4StructTypeSpec {
            members,
            ..Default::default()
        })
    }

    fn header_union(
        &mut self,
        members: &[MemberType],
    ) -> Result<proto::P4HeaderUnionTypeSpec, GenerateError> {
        let mut specs = Vec::new();
        for member in members {
            let DataType::Named(header) = &member.ty else {
                continue;
            };
            self.enter(*header)?;
            specs.push(proto::p4_header_union_type_spec::Member {
                name: member.name.clone(),
                header: Some(reference(&self.named(*header).name)),
            });
        }
        Ok(proto::P4HeaderUnionTypeSpec {
            members: specs,
            ..Default::default()
        })
    }

    fn new_type(&mut self, id: NamedTypeId) -> Result<proto::P4NewTypeSpec, GenerateError> {
        use proto::p4_new_type_spec::Representation;
        let named = self.named(id);
        let original = self.spec(&innermost(self.interface, &DataType::Named(id)))?;
        let representation = match translation(named)? {
            None => Representation::OriginalType(original),
            Some((uri, controller)) => {
                use proto::p4_new_type_translation::{SdnString, SdnType};
                Representation::TranslatedType(proto::P4NewTypeTranslation {
                    uri,
                    sdn_type: Some(match controller {
                        Controller::Text => SdnType::SdnString(SdnString {}),
                        Controller::Bits(width) => SdnType::SdnBitwidth(width),
                    }),
                })
            }
        };
        let kept = kept(&named.annotations, &[TRANSLATION]);
        Ok(proto::P4NewTypeSpec {
            annotations: kept.unstructured,
            structured_annotations: kept.structured,
            representation: Some(representation),
            annotation_locations: Vec::new(),
        })
    }

    /// Type of a field of a key, action or controller header: the width, and the name if it is a
    /// `type`. Names are entered into the table.
    pub(crate) fn field(
        &mut self,
        ty: &DataType,
    ) -> Result<(i32, Option<proto::P4NamedType>), GenerateError> {
        self.spec(ty)?;
        let name = match ty {
            DataType::Named(id) => match self.named(*id) {
                NamedType {
                    name,
                    kind: NamedTypeKind::New { .. },
                    ..
                } => Some(reference(name)),
                _ => None,
            },
            _ => None,
        };
        Ok((width(self.interface, ty), name))
    }
}

/// A reference to a type by its name.
pub(crate) fn reference(name: &str) -> proto::P4NamedType {
    proto::P4NamedType {
        name: name.to_owned(),
    }
}

/// The type behind all `type`s.
fn innermost(interface: &Interface, ty: &DataType) -> DataType {
    match ty {
        DataType::Named(id) => match &interface.types[id.0 as usize].kind {
            NamedTypeKind::New { underlying } => innermost(interface, underlying),
            _ => ty.clone(),
        },
        _ => ty.clone(),
    }
}

/// Width in bits of values that the control plane writes: that of the controller's type
/// if the type is translated, 0 if that is a string, and for types without a width.
#[must_use]
pub fn width(interface: &Interface, ty: &DataType) -> i32 {
    match ty {
        DataType::Bool => 1,
        DataType::Bits(width) | DataType::Int(width) | DataType::Varbit(width) => {
            i32::try_from(*width).unwrap_or(i32::MAX)
        }
        DataType::Error | DataType::Stack(..) | DataType::Tuple(_) => 0,
        DataType::Named(id) => {
            let named = &interface.types[id.0 as usize];
            match &named.kind {
                NamedTypeKind::New { underlying } => match translation(named) {
                    Ok(Some((_, Controller::Bits(width)))) => width,
                    Ok(Some((_, Controller::Text))) => 0,
                    // A translation counts where it stands, not further in.
                    _ => width(interface, &innermost(interface, underlying)),
                },
                NamedTypeKind::Serial { underlying, .. } => width(interface, underlying),
                _ => 0,
            }
        }
    }
}

/// `@p4runtime_translation(uri, sdn_type)` of a type (P4Runtime specification,
/// "Translation of user-defined types").
fn translation(named: &NamedType) -> Result<Option<(String, Controller)>, GenerateError> {
    let Some(annotation) = Annotation::find(&named.annotations, TRANSLATION) else {
        return Ok(None);
    };
    let bits = |number: &num_bigint::BigInt| number.to_i32().map(Controller::Bits);
    let word = |token: &AnnotationToken, text: &str| *token == AnnotationToken::Other(text.into());
    let found = match &annotation.body {
        AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
            [AnnotationToken::String(uri), comma, rest @ ..] if word(comma, ",") => {
                let controller = match rest {
                    [AnnotationToken::Number(width, _)] => bits(width),
                    [text] if word(text, "string") => Some(Controller::Text),
                    [bit, open, AnnotationToken::Number(width, _), close]
                        if word(bit, "bit") && word(open, "<") && word(close, ">") =>
                    {
                        bits(width)
                    }
                    _ => None,
                };
                controller.map(|controller| (uri.clone(), controller))
            }
            _ => None,
        },
        AnnotationBody::Values(values) => match values.as_slice() {
            [AnnotationValue::String(uri), AnnotationValue::Int(width)] => {
                bits(width).map(|controller| (uri.clone(), controller))
            }
            _ => None,
        },
        _ => None,
    };
    match found {
        Some(found) => Ok(Some(found)),
        None => Err(wrong(
            &named.name,
            annotation,
            "expected a URI and `string`, `bit<W>` or a width",
        )),
    }
}

/// A field of a header: its name, annotations and type.
pub(crate) type Flat = (String, Vec<Annotation>, DataType);

/// The fields of a header, those of structs within as `outer.inner`.
pub(crate) fn flatten(interface: &Interface, members: &[MemberType]) -> Vec<Flat> {
    let mut fields = Vec::new();
    for member in members {
        let inner = match &member.ty {
            DataType::Named(id) => match &interface.types[id.0 as usize].kind {
                NamedTypeKind::Struct(inner) => Some(inner),
                _ => None,
            },
            _ => None,
        };
        match inner {
            None => fields.push((
                member.name.clone(),
                member.annotations.clone(),
                member.ty.clone(),
            )),
            Some(inner) => {
                for (name, mut annotations, ty) in flatten(interface, inner) {
                    for outer in &member.annotations {
                        if Annotation::find(&annotations, &outer.name).is_none() {
                            annotations.push(outer.clone());
                        }
                    }
                    fields.push((format!("{}.{name}", member.name), annotations, ty));
                }
            }
        }
    }
    fields
}

/// A number of a header as a string of bits.
fn bit_string(ty: &DataType) -> proto::P4BitstringLikeTypeSpec {
    use proto::p4_bitstring_like_type_spec::TypeSpec;
    let signed = |width: &u32| i32::try_from(*width).unwrap_or(i32::MAX);
    let spec = match ty {
        DataType::Int(width) => TypeSpec::Int(proto::P4IntTypeSpec {
            bitwidth: signed(width),
        }),
        DataType::Varbit(width) => TypeSpec::Varbit(proto::P4VarbitTypeSpec {
            max_bitwidth: signed(width),
        }),
        DataType::Bits(width) => TypeSpec::Bit(proto::P4BitTypeSpec {
            bitwidth: signed(width),
        }),
        _ => TypeSpec::Bit(proto::P4BitTypeSpec { bitwidth: 1 }),
    };
    proto::P4BitstringLikeTypeSpec {
        type_spec: Some(spec),
        ..Default::default()
    }
}
