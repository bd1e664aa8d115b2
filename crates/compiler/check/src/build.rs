//! The IR under construction.

use crate::types::{StructKind, StructTy, Ty, Types};
use stateplane_ir as ir;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Entities made so far, and which source types they stand for.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    pub structs: Vec<ir::StructDef>,
    pub stacks: Vec<ir::StackDef>,
    pub enums: Vec<ir::EnumDef>,
    pub vars: Vec<ir::Var>,
    pub parsers: Vec<ir::Parser>,
    pub controls: Vec<ir::Control>,
    pub actions: Vec<ir::Action>,
    pub functions: Vec<ir::Function>,
    pub tables: Vec<ir::Table>,
    pub registers: Vec<ir::Register>,
    pub counters: Vec<ir::Counter>,
    pub meters: Vec<ir::Meter>,
    pub value_sets: Vec<ir::ValueSet>,
    pub action_profiles: Vec<ir::ActionProfile>,
    pub interface: ir::Interface,
    pub(crate) named_types: BTreeMap<Ty, ir::NamedTypeId>,
    struct_ids: BTreeMap<StructTy, ir::StructId>,
    tuple_ids: BTreeMap<Rc<[Ty]>, ir::StructId>,
    stack_ids: BTreeMap<(Ty, u32), ir::StackId>,
    enum_ids: BTreeMap<u32, ir::EnumId>,
}

impl Builder {
    /// A new variable.
    pub(crate) fn var(&mut self, name: String, ty: ir::Type) -> ir::VarId {
        self.vars.push(ir::Var { name, ty });
        ir::VarId(self.vars.len() as u32 - 1)
    }

    /// The IR type of a source type; `None` if values of it do not exist while
    /// packets are processed (`int`, `string`, externs, open type parameters).
    pub(crate) fn ty(&mut self, types: &Types, ty: &Ty) -> Option<ir::Type> {
        Some(match ty {
            Ty::Bool => ir::Type::Bool,
            Ty::Bits(width) => ir::Type::Bits(*width),
            Ty::Int(width) => ir::Type::Int(*width),
            Ty::Varbit(width) => ir::Type::Varbit(*width),
            Ty::Error => ir::Type::Error,
            Ty::Enum(id) => ir::Type::Enum(self.enumeration(types, *id)),
            Ty::Serial(id) => self.ty(types, &types.serials[*id as usize].underlying)?,
            Ty::Newtype(id) => self.ty(types, &types.newtypes[*id as usize].underlying)?,
            Ty::Struct(id) => {
                let lowered = self.structure(types, *id)?;
                match types.info(*id).kind {
                    StructKind::Struct => ir::Type::Struct(lowered),
                    StructKind::Header => ir::Type::Header(lowered),
                    StructKind::Union => ir::Type::Union(lowered),
                }
            }
            Ty::Stack(element, size) => ir::Type::Stack(self.stack(types, element, *size)?),
            Ty::Tuple(members) | Ty::List(members) => ir::Type::Struct(self.tuple(types, members)?),
            Ty::Poison
            | Ty::Void
            | Ty::Integer
            | Ty::MatchKind
            | Ty::Str
            | Ty::Record(..)
            | Ty::Dots
            | Ty::Invalid
            | Ty::Extern(..)
            | Ty::Block(..)
            | Ty::Body(..)
            | Ty::ListOf(_)
            | Ty::Package(..)
            | Ty::Var(_) => return None,
        })
    }

    fn enumeration(&mut self, types: &Types, id: u32) -> ir::EnumId {
        if let Some(found) = self.enum_ids.get(&id) {
            return *found;
        }
        let info = &types.enums[id as usize];
        self.enums.push(ir::EnumDef {
            name: info.name.clone(),
            members: info.members.iter().map(|(name, _)| name.clone()).collect(),
        });
        let lowered = ir::EnumId(self.enums.len() as u32 - 1);
        self.enum_ids.insert(id, lowered);
        lowered
    }

    fn structure(&mut self, types: &Types, id: StructTy) -> Option<ir::StructId> {
        if let Some(found) = self.struct_ids.get(&id) {
            return Some(*found);
        }
        let info = types.info(id);
        let fields = info
            .fields
            .iter()
            .map(|field| {
                Some(ir::FieldDef {
                    name: field.name.clone(),
                    ty: self.ty(types, &field.ty)?,
                    annotations: field.annotations.clone(),
                })
            })
            .collect::<Option<Vec<_>>>()?;
        self.structs.push(ir::StructDef {
            name: info.name.clone(),
            fields,
            annotations: types.template(id).annotations.clone(),
        });
        let lowered = ir::StructId(self.structs.len() as u32 - 1);
        self.struct_ids.insert(id, lowered);
        Some(lowered)
    }

    fn tuple(&mut self, types: &Types, members: &Rc<[Ty]>) -> Option<ir::StructId> {
        if let Some(found) = self.tuple_ids.get(members) {
            return Some(*found);
        }
        let fields = members
            .iter()
            .enumerate()
            .map(|(position, ty)| {
                Some(ir::FieldDef {
                    name: format!("f{position}"),
                    ty: self.ty(types, ty)?,
                    annotations: Vec::new(),
                })
            })
            .collect::<Option<Vec<_>>>()?;
        self.structs.push(ir::StructDef {
            name: types.show(&Ty::Tuple(members.clone())),
            fields,
            annotations: Vec::new(),
        });
        let lowered = ir::StructId(self.structs.len() as u32 - 1);
        self.tuple_ids.insert(members.clone(), lowered);
        Some(lowered)
    }

    fn stack(&mut self, types: &Types, element: &Ty, size: u32) -> Option<ir::StackId> {
        let key = (element.clone(), size);
        if let Some(found) = self.stack_ids.get(&key) {
            return Some(*found);
        }
        let element = self.ty(types, element)?;
        self.stacks.push(ir::StackDef { element, size });
        let lowered = ir::StackId(self.stacks.len() as u32 - 1);
        self.stack_ids.insert(key, lowered);
        Some(lowered)
    }

    /// The whole program.
    pub(crate) fn finish(
        self,
        errors: Vec<String>,
        pipeline: ir::Pipeline,
        field_lists: Vec<ir::FieldList>,
    ) -> ir::Program {
        ir::Program {
            structs: self.structs,
            stacks: self.stacks,
            enums: self.enums,
            errors,
            vars: self.vars,
            parsers: self.parsers,
            controls: self.controls,
            actions: self.actions,
            functions: self.functions,
            tables: self.tables,
            registers: self.registers,
            counters: self.counters,
            meters: self.meters,
            value_sets: self.value_sets,
            action_profiles: self.action_profiles,
            field_lists,
            pipeline,
        }
    }
}
