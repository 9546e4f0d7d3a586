//! What is wrong with a safetensors file that its library refuses, said with the tensor at fault.

use std::collections::BTreeMap;

use safetensors::Dtype;
use serde::Deserialize;
use serde_json::Value;

/// Bytes that hold the length of the header.
const LENGTH: usize = 8;
/// What the library takes.
const LONGEST_HEADER: u64 = 100_000_000;

/// One tensor as the header describes it.
struct Entry {
    name: String,
    begin: usize,
    end: usize,
}

/// The first fault of `bytes`, or `refusal` when this finds none.
pub(super) fn explain(bytes: &[u8], refusal: &dyn std::fmt::Display) -> String {
    fault(bytes).unwrap_or_else(|| refusal.to_string())
}

fn fault(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(b"version https://git-lfs") {
        return Some(
            "a pointer of Git LFS stands here instead of the weights; fetch them with `git lfs pull`"
                .to_owned(),
        );
    }
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else {
        return Some(format!(
            "truncated: {} bytes, and the length of the header alone takes {LENGTH}",
            bytes.len()
        ));
    };
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 || length > LONGEST_HEADER {
        return Some(format!(
            "truncated, or no safetensors file: the header is said to take {length} bytes and {} follow",
            rest.len()
        ));
    }
    let (header, data) = rest.split_at(length as usize);
    let header: BTreeMap<String, Value> = match serde_json::from_slice(header) {
        Ok(header) => header,
        Err(error) => return Some(format!("the header is not valid JSON: {error}")),
    };
    let mut entries = Vec::new();
    for (name, described) in header {
        if name == "__metadata__" {
            if !is_metadata(&described) {
                return Some("`__metadata__` is not an object of strings".to_owned());
            }
            continue;
        }
        match entry(&name, &described) {
            Ok((begin, end)) => entries.push(Entry { name, begin, end }),
            Err(fault) => return Some(format!("tensor `{name}`: {fault}")),
        }
    }
    entries.sort_by_key(|entry| (entry.begin, entry.end));
    misplaced(&entries, data.len())
}

fn is_metadata(described: &Value) -> bool {
    let object = described.as_object();
    object.is_some_and(|object| object.values().all(Value::is_string))
}

/// The offsets of a tensor, which its shape must fill.
fn entry(name: &str, described: &Value) -> Result<(usize, usize), String> {
    let Some(object) = described.as_object() else {
        return Err(format!("`{name}` is described by {described}"));
    };
    let dtype = object.get("dtype").unwrap_or(&Value::Null);
    let bits = match Dtype::deserialize(dtype) {
        Ok(dtype) => dtype.bitsize(),
        Err(_) => return Err(format!("unknown dtype {dtype}")),
    };
    let shape = sizes(object.get("shape")).ok_or("`shape` is not a list of sizes")?;
    let offsets = sizes(object.get("data_offsets"));
    let Some(&[begin, end]) = offsets.as_deref() else {
        return Err("`data_offsets` is not a pair of places".to_owned());
    };
    if begin > end {
        return Err(format!(
            "it ends at byte {end}, before it begins at {begin}"
        ));
    }
    let sizes = shape.iter().copied();
    let needed = sizes
        .chain([bits])
        .try_fold(1usize, usize::checked_mul)
        .ok_or_else(|| format!("shape {shape:?} is larger than any memory"))?
        .div_ceil(8);
    if needed != end - begin {
        return Err(format!(
            "shape {shape:?} of {dtype} takes {needed} bytes, but the offsets {begin} to {end} hold {}",
            end - begin
        ));
    }
    Ok((begin, end))
}

fn sizes(value: Option<&Value>) -> Option<Vec<usize>> {
    let list = value?.as_array()?.iter();
    list.map(|size| usize::try_from(size.as_u64()?).ok())
        .collect()
}

/// Tensors lie one after the other and fill the file.
fn misplaced(entries: &[Entry], data: usize) -> Option<String> {
    let mut filled = 0;
    let mut before = "";
    for Entry { name, begin, end } in entries {
        if *begin < filled {
            return Some(format!(
                "tensor `{name}` begins at byte {begin}, inside `{before}`, which ends at {filled}"
            ));
        }
        if *begin > filled {
            return Some(format!(
                "tensor `{name}` begins at byte {begin}, but what lies before it ends at {filled}"
            ));
        }
        if *end > data {
            return Some(format!(
                "truncated: tensor `{name}` ends at byte {end} of the data, but the file holds {data}"
            ));
        }
        (filled, before) = (*end, name);
    }
    (filled < data).then(|| format!("{} bytes follow the last tensor", data - filled))
}
