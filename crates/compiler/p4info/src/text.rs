//! The text form of P4Info (protobuf text format).

use crate::error::FormatError;
use crate::{DESCRIPTORS, proto};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MapKey, MessageDescriptor, Value,
};
use std::fmt::Write;

/// The full name of the message.
const P4INFO: &str = "p4.config.v1.P4Info";

fn descriptor() -> Result<MessageDescriptor, String> {
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|error| error.to_string())?;
    pool.get_message_by_name(P4INFO)
        .ok_or_else(|| format!("{P4INFO} has no descriptor"))
}

/// Writes the text form, with the two lines before it that tell tools what it is. Fields
/// stand in order of their numbers, map entries in order of their keys.
///
/// # Errors
///
/// Never for a message that [`generate`](crate::generate) made.
pub fn write(info: &proto::P4Info) -> Result<String, FormatError> {
    let bytes = info.encode_to_vec();
    let message = descriptor()
        .and_then(|descriptor| {
            DynamicMessage::decode(descriptor, bytes.as_slice()).map_err(|error| error.to_string())
        })
        .map_err(FormatError::Text)?;
    let mut text =
        format!("# proto-file: p4/config/v1/p4info.proto\n# proto-message: {P4INFO}\n\n");
    write_message(&mut text, &message, 0);
    Ok(text)
}

/// Reads the text form.
///
/// # Errors
///
/// Returns an error with the position if the text is not a `P4Info` message.
pub fn read(text: &str) -> Result<proto::P4Info, FormatError> {
    let descriptor = descriptor().map_err(FormatError::Text)?;
    let message = DynamicMessage::parse_text_format(descriptor, text)
        .map_err(|error| FormatError::Text(error.to_string()))?;
    message
        .transcode_to()
        .map_err(|error| FormatError::Text(error.to_string()))
}

fn write_message(text: &mut String, message: &DynamicMessage, indent: usize) {
    let mut fields: Vec<(FieldDescriptor, &Value)> = message.fields().collect();
    fields.sort_by_key(|(field, _)| field.number());
    for (field, value) in fields {
        match value {
            Value::List(values) => {
                for value in values {
                    write_field(text, field.name(), &field, value, indent);
                }
            }
            Value::Map(entries) => {
                let mut entries: Vec<(&MapKey, &Value)> = entries.iter().collect();
                entries.sort_by_key(|(key, _)| key.as_str().map(str::to_owned));
                for (key, value) in entries {
                    write_entry(text, &field, key, value, indent);
                }
            }
            value => write_field(text, field.name(), &field, value, indent),
        }
    }
}

/// A map's entry is a message with `key` and `value`.
fn write_entry(
    text: &mut String,
    field: &FieldDescriptor,
    key: &MapKey,
    value: &Value,
    indent: usize,
) {
    let prost_reflect::Kind::Message(entry) = field.kind() else {
        return;
    };
    line(text, indent, &format!("{} {{", field.name()));
    let key_text = quoted(key.as_str().unwrap_or_default().as_bytes());
    line(text, indent + 1, &format!("key: {key_text}"));
    write_field(
        text,
        "value",
        &entry.map_entry_value_field(),
        value,
        indent + 1,
    );
    line(text, indent, "}");
}

fn write_field(
    text: &mut String,
    name: &str,
    field: &FieldDescriptor,
    value: &Value,
    indent: usize,
) {
    let scalar = match value {
        Value::Message(message) => {
            line(text, indent, &format!("{name} {{"));
            write_message(text, message, indent + 1);
            line(text, indent, "}");
            return;
        }
        Value::Bool(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::String(value) => quoted(value.as_bytes()),
        Value::Bytes(value) => quoted(value),
        Value::EnumNumber(number) => match field.kind() {
            prost_reflect::Kind::Enum(kind) => kind
                .get_value(*number)
                .map_or_else(|| number.to_string(), |value| value.name().to_owned()),
            _ => number.to_string(),
        },
        Value::List(_) | Value::Map(_) => return,
    };
    line(text, indent, &format!("{name}: {scalar}"));
}

fn line(text: &mut String, indent: usize, content: &str) {
    for _ in 0..indent {
        text.push_str("  ");
    }
    text.push_str(content);
    text.push('\n');
}

/// A string or bytes in quotes; what is not printable ASCII as three octal digits.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\'' => text.push_str("\\'"),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x20..0x7f => text.push(char::from(*byte)),
            // Writing to a string does not fail.
            other => drop(write!(text, "\\{other:03o}")),
        }
    }
    text.push('"');
    text
}
