//! Description of a program for the control plane: [`ir::Interface`], collected while the program
//! is checked.

use crate::annotation;
use crate::build::Builder;
use crate::checker::Checker;
use crate::scope::Param;
use crate::types::{StructKind, Ty, Types};
use num_traits::ToPrimitive;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, Direction, TablePropertyValue};

/// Type and annotations of a key.
pub(crate) type KeyInterface = (ir::DataType, Vec<ir::Annotation>);

/// An action of a table with the annotations of the table's list.
pub(crate) type ActionRef = (ir::ActionId, Vec<ir::Annotation>);

impl Builder {
    /// The type as the control plane sees it; `None` if it has no values there.
    pub(crate) fn data_type(&mut self, types: &Types, ty: &Ty) -> Option<ir::DataType> {
        Some(match ty {
            Ty::Bool => ir::DataType::Bool,
            Ty::Bits(width) => ir::DataType::Bits(*width),
            Ty::Int(width) => ir::DataType::Int(*width),
            Ty::Varbit(width) => ir::DataType::Varbit(*width),
            Ty::Error => ir::DataType::Error,
            Ty::Enum(_) | Ty::Serial(_) | Ty::Newtype(_) | Ty::Struct(_) => {
                ir::DataType::Named(self.named_type(types, ty)?)
            }
            Ty::Stack(element, size) => {
                ir::DataType::Stack(self.named_type(types, element)?, *size)
            }
            Ty::Tuple(members) | Ty::List(members) => ir::DataType::Tuple(
                members
                    .iter()
                    .map(|member| self.data_type(types, member))
                    .collect::<Option<_>>()?,
            ),
            _ => return None,
        })
    }

    fn named_type(&mut self, types: &Types, ty: &Ty) -> Option<ir::NamedTypeId> {
        if let Some(found) = self.named_types.get(ty) {
            return Some(*found);
        }
        let named = match ty {
            Ty::Enum(id) => {
                let info = &types.enums[*id as usize];
                let members = info.members.iter().map(|(name, _)| name.clone());
                named(
                    &info.name,
                    ir::NamedTypeKind::Enum(members.collect()),
                    &info.annotations,
                )
            }
            Ty::Serial(id) => {
                let info = &types.serials[*id as usize];
                let kind = ir::NamedTypeKind::Serial {
                    underlying: self.data_type(types, &info.underlying)?,
                    members: info.members.clone(),
                };
                named(&info.name, kind, &info.annotations)
            }
            Ty::Newtype(id) => {
                let info = &types.newtypes[*id as usize];
                let kind = ir::NamedTypeKind::New {
                    underlying: self.data_type(types, &info.underlying)?,
                };
                named(&info.name, kind, &info.annotations)
            }
            Ty::Struct(id) => {
                let info = types.info(*id);
                let members = info
                    .fields
                    .iter()
                    .map(|field| {
                        Some(ir::MemberType {
                            name: control_name(&field.name, &field.annotations),
                            ty: self.data_type(types, &field.ty)?,
                            annotations: field.annotations.clone(),
                        })
                    })
                    .collect::<Option<Vec<_>>>()?;
                let kind = match info.kind {
                    StructKind::Struct => ir::NamedTypeKind::Struct(members),
                    StructKind::Header => ir::NamedTypeKind::Header(members),
                    StructKind::Union => ir::NamedTypeKind::Union(members),
                };
                named(&info.name, kind, &types.template(*id).annotations)
            }
            _ => return None,
        };
        self.interface.types.push(named);
        let id = ir::NamedTypeId(self.interface.types.len() as u32 - 1);
        self.named_types.insert(ty.clone(), id);
        Some(id)
    }

    /// Notes a header that the controller sends or receives.
    pub(crate) fn controller_header(&mut self, types: &Types, ty: &Ty) {
        let Ty::Struct(id) = ty else { return };
        let annotations = &types.template(*id).annotations;
        let controller = ir::Annotation::find(annotations, "controller_header").is_some();
        if controller && types.is_header(ty) {
            let header = self.named_type(types, ty);
            self.interface.controller_headers.extend(header);
        }
    }
}

fn named(name: &str, kind: ir::NamedTypeKind, annotations: &[ir::Annotation]) -> ir::NamedType {
    ir::NamedType {
        name: control_name(name, annotations),
        kind,
        annotations: annotations.to_vec(),
    }
}

/// The name of a type or member for the control plane (spec §18.3).
fn control_name(name: &str, annotations: &[ir::Annotation]) -> String {
    let written = ir::Annotation::find(annotations, "name").and_then(ir::Annotation::string);
    let name = written.unwrap_or(name);
    name.strip_prefix('.').unwrap_or(name).to_owned()
}

impl<'a> Checker<'a> {
    /// Notes the data of the action that is made next.
    pub(crate) fn action_interface(&mut self, decl: &'a tree::ActionDecl, params: &[Param<'a>]) {
        let mut data = Vec::new();
        for (written, param) in decl.params.iter().zip(params) {
            if param.direction != Direction::None {
                continue;
            }
            let Some(ty) = self.out.data_type(&self.types, &param.ty) else {
                continue;
            };
            let annotations = self.kept(&written.annotations);
            data.push(ir::MemberType {
                name: control_name(param.name, &annotations),
                ty,
                annotations,
            });
        }
        let id = ir::ActionId(self.out.actions.len() as u32);
        let interface = ir::ActionInterface { params: data };
        self.out.interface.actions.insert(id, interface);
    }

    /// Type and annotations of a key.
    pub(crate) fn key_interface(
        &mut self,
        element: &'a tree::KeyElement,
        ty: &Ty,
    ) -> Option<KeyInterface> {
        let annotations = self.kept(&element.annotations);
        Some((self.out.data_type(&self.types, ty)?, annotations))
    }

    /// Notes what belongs to a table.
    pub(crate) fn table_interface(
        &mut self,
        decl: &'a tree::TableDecl,
        id: ir::TableId,
        table: &ir::Table,
        keys: Vec<KeyInterface>,
        mut action_refs: Vec<ActionRef>,
    ) {
        let listed = action_refs.len();
        for implicit in table.actions.iter().skip(listed) {
            let defaultonly = ir::Annotation {
                name: "defaultonly".to_owned(),
                body: ir::AnnotationBody::Empty,
            };
            action_refs.push((implicit.action, vec![defaultonly]));
        }
        let size = decl
            .properties
            .iter()
            .find_map(|property| match &property.value {
                TablePropertyValue::Expr(expr) if property.name.as_str() == "size" => Some(expr),
                _ => None,
            });
        let size = size.and_then(|expr| self.property_int(expr, "the size of a table").to_u64());
        let interface = ir::TableInterface {
            keys,
            action_refs,
            size,
        };
        self.out.interface.tables.insert(id, interface);
    }

    /// Notes the element type of the register that is made next.
    pub(crate) fn register_interface(&mut self, element: &Ty, annotations: &[ir::Annotation]) {
        let Some(element) = self.out.data_type(&self.types, element) else {
            return;
        };
        let id = ir::RegisterId(self.out.registers.len() as u32);
        let interface = ir::RegisterInterface {
            element,
            annotations: annotations.to_vec(),
        };
        self.out.interface.registers.insert(id, interface);
    }

    /// Notes the type of the members of the value set that is made next.
    pub(crate) fn value_set_interface(&mut self, element: &Ty) {
        if let Some(element) = self.out.data_type(&self.types, element) {
            let id = ir::ValueSetId(self.out.value_sets.len() as u32);
            self.out.interface.value_sets.insert(id, element);
        }
    }

    /// Notes a message to the control plane and returns its name there.
    pub(crate) fn digest_interface(&mut self, ty: &Ty) -> Option<String> {
        let data = self.out.data_type(&self.types, ty)?;
        let digests = &self.out.interface.digests;
        if let Some(known) = digests.iter().find(|digest| digest.ty == data) {
            return Some(known.name.clone());
        }
        let name = match &data {
            ir::DataType::Named(id) => self.out.interface.types[id.0 as usize].name.clone(),
            _ => {
                let unnamed = digests
                    .iter()
                    .filter(|digest| !matches!(digest.ty, ir::DataType::Named(_)));
                format!("digest_{}", unnamed.count())
            }
        };
        let digest = ir::DigestInterface {
            name: name.clone(),
            ty: data,
        };
        self.out.interface.digests.push(digest);
        Some(name)
    }
}

/// The control-plane name of an object made within a table's property: `@name` of the
/// property as it stands, or the property's place in the table.
pub(crate) fn property_object_name(property: &tree::TableProperty, table: &str) -> String {
    annotation::find(&property.annotations, "name")
        .and_then(tree::Annotation::string)
        .map_or_else(
            || format!("{table}.{}", property.name),
            |name| name.strip_prefix('.').unwrap_or(&name).to_owned(),
        )
}
