//! P4Info of a program.

use crate::annotation::{documentation, has, kept, pairs, written_id, wrong};
use crate::error::GenerateError;
use crate::objects::{Objects, preambles};
use crate::proto;
use crate::reach::Reached;
use crate::symbols::{Kind, Symbols};
use crate::types::TypeTable;
use num_traits::ToPrimitive;
use stateplane_ir::{
    ActionProfileId, Annotation, AnnotationValue, Interface, NamedTypeId, Program,
};
use std::collections::BTreeSet;

/// The name of the architecture.
const ARCHITECTURE: &str = "v1model";

/// Makes P4Info of a checked program: objects that packets reach, those annotated
/// `@hidden` left out, in order of declaration.
///
/// # Errors
///
/// If an annotation that P4Runtime gives a meaning (`@id`, `@p4runtime_translation`, …)
/// is not written as it says, or two objects of one kind have one name.
pub fn generate(program: &Program, interface: &Interface) -> Result<proto::P4Info, GenerateError> {
    let reached = Reached::of(program);
    let symbols = symbols(program, interface, &reached)?;
    let mut objects = Objects {
        program,
        interface,
        symbols: &symbols,
        types: TypeTable::new(interface, &program.errors),
    };
    let mut info = proto::P4Info {
        pkg_info: Some(package(&interface.package)?),
        ..Default::default()
    };
    for (id, table) in tables(program, &reached) {
        if !has(&table.annotations, "hidden") {
            info.tables.push(objects.table(id, table)?);
        }
    }
    let mut names = BTreeSet::new();
    for id in &reached.actions {
        let action = &program.actions[id.index()];
        if !has(&action.annotations, "hidden") && names.insert(action.name.as_str()) {
            let has_data = reached.in_tables.contains(id);
            info.actions.push(objects.action(*id, action, has_data)?);
        }
    }
    // Without elements is what belongs to a table; without a table too, it is not used.
    for (id, counter) in program.counters.iter().enumerate() {
        match counter.table {
            None if counter.size == 0 => {}
            None => info.counters.push(objects.counter(id, counter)),
            Some(table) if reached.tables.contains(&table) => {
                let counter = objects.direct_counter(id, counter, table);
                info.direct_counters.push(counter);
            }
            Some(_) => {}
        }
    }
    for (id, meter) in program.meters.iter().enumerate() {
        match meter.table {
            None if meter.size == 0 => {}
            None => info.meters.push(objects.meter(id, meter)),
            Some(table) if reached.tables.contains(&table) => {
                info.direct_meters
                    .push(objects.direct_meter(id, meter, table));
            }
            Some(_) => {}
        }
    }
    for (id, profile) in (0u32..).zip(&program.action_profiles) {
        let tables = tables(program, &reached)
            .filter(|(_, table)| table.implementation == Some(ActionProfileId(id)))
            .map(|(_, table)| symbols.id(Kind::Table, &table.name));
        let profile = objects.action_profile(profile, tables.collect())?;
        info.action_profiles.push(profile);
    }
    for header in &interface.controller_headers {
        info.controller_packet_metadata
            .extend(objects.controller_header(*header)?);
    }
    for (id, set) in program.value_sets.iter().enumerate() {
        info.value_sets.push(objects.value_set(id, set)?);
    }
    for (id, register) in program.registers.iter().enumerate() {
        info.registers.push(objects.register(id, register)?);
    }
    for digest in &interface.digests {
        if reached.digests.contains(&digest.name) {
            info.digests.push(objects.digest(digest)?);
        }
    }
    info.type_info = Some(objects.types.info);
    unique_names(&info)?;
    Ok(info)
}

fn tables<'p>(
    program: &'p Program,
    reached: &Reached,
) -> impl Iterator<Item = (stateplane_ir::TableId, &'p stateplane_ir::Table)> {
    reached
        .tables
        .iter()
        .map(|id| (*id, &program.tables[id.index()]))
}

/// Ids and names of all objects; hidden ones have them too.
fn symbols(
    program: &Program,
    interface: &Interface,
    reached: &Reached,
) -> Result<Symbols, GenerateError> {
    let mut symbols = Symbols::default();
    let mut add = |kind, name: &str, annotations: &[Annotation]| {
        symbols.add(kind, name, written_id(name, annotations)?)
    };
    for id in &reached.actions {
        let action = &program.actions[id.index()];
        add(Kind::Action, &action.name, &action.annotations)?;
    }
    for (_, table) in tables(program, reached) {
        add(Kind::Table, &table.name, &table.annotations)?;
    }
    for (id, counter) in (0u32..).zip(&program.counters) {
        let annotations = interface.counters.get(&stateplane_ir::CounterId(id));
        let kind = match counter.table {
            None if counter.size == 0 => continue,
            None => Kind::Counter,
            Some(_) => Kind::DirectCounter,
        };
        add(kind, &counter.name, annotations.map_or(&[], Vec::as_slice))?;
    }
    for (id, meter) in (0u32..).zip(&program.meters) {
        let annotations = interface.meters.get(&stateplane_ir::MeterId(id));
        let kind = match meter.table {
            None if meter.size == 0 => continue,
            None => Kind::Meter,
            Some(_) => Kind::DirectMeter,
        };
        add(kind, &meter.name, annotations.map_or(&[], Vec::as_slice))?;
    }
    for (id, register) in (0u32..).zip(&program.registers) {
        let kept = interface.registers.get(&stateplane_ir::RegisterId(id));
        let annotations = kept.map_or(&register.annotations, |kept| &kept.annotations);
        add(Kind::Register, &register.name, annotations)?;
    }
    for profile in &program.action_profiles {
        add(Kind::ActionProfile, &profile.name, &profile.annotations)?;
    }
    for set in &program.value_sets {
        add(Kind::ValueSet, &set.name, &set.annotations)?;
    }
    for digest in &interface.digests {
        if reached.digests.contains(&digest.name) {
            add(Kind::Digest, &digest.name, &[])?;
        }
    }
    for NamedTypeId(id) in &interface.controller_headers {
        let header = &interface.types[*id as usize];
        add(Kind::ControllerHeader, &header.name, &header.annotations)?;
    }
    symbols.assign()?;
    Ok(symbols)
}

fn package(annotations: &[Annotation]) -> Result<proto::PkgInfo, GenerateError> {
    let kept = kept(annotations, &["pkginfo", "platform_property"]);
    let mut info = proto::PkgInfo {
        arch: ARCHITECTURE.to_owned(),
        annotations: kept.unstructured,
        structured_annotations: kept.structured,
        doc: documentation(annotations),
        ..Default::default()
    };
    if let Some(annotation) = Annotation::find(annotations, "pkginfo") {
        for (key, value) in pairs("main", annotation)? {
            let field = match key.as_str() {
                "name" => &mut info.name,
                "version" => &mut info.version,
                "organization" => &mut info.organization,
                "contact" => &mut info.contact,
                "url" => &mut info.url,
                "arch" => &mut info.arch,
                _ => continue,
            };
            let AnnotationValue::String(text) = value else {
                return Err(wrong("main", annotation, "expected strings as values"));
            };
            *field = text;
        }
    }
    if let Some(annotation) = Annotation::find(annotations, "platform_property") {
        let properties = info.platform_properties.get_or_insert_default();
        for (key, value) in pairs("main", annotation)? {
            let field = match key.as_str() {
                "multicast_group_table_size" => &mut properties.multicast_group_table_size,
                "multicast_group_table_total_replicas" => {
                    &mut properties.multicast_group_table_total_replicas
                }
                "multicast_group_table_max_replicas_per_entry" => {
                    &mut properties.multicast_group_table_max_replicas_per_entry
                }
                _ => continue,
            };
            let number = match &value {
                AnnotationValue::Int(number) => number.to_i32(),
                _ => None,
            };
            let Some(number) = number else {
                return Err(wrong("main", annotation, "expected numbers as values"));
            };
            *field = number;
        }
    }
    Ok(info)
}

/// Names are unique among the objects of one kind.
fn unique_names(info: &proto::P4Info) -> Result<(), GenerateError> {
    let mut names = BTreeSet::new();
    let preambles = preambles(info);
    for preamble in preambles {
        if !names.insert((preamble.id >> 24, &preamble.name)) {
            return Err(GenerateError::DuplicateName {
                name: preamble.name.clone(),
            });
        }
    }
    Ok(())
}
