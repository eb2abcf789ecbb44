//! Offsets of members of kernel structures, from the kernel's own type information (BTF).
//!
//! Format ("BPF Type Format" of the kernel's documentation): a header, then types in sequence, each of 12
//! bytes and an addition that depends on its kind, then strings. Types are numbered from 1.

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// Bytes of a type without its kind's addition.
const TYPE: usize = 12;
const MEMBER: usize = 12;
/// Maximum depth of nested structures and typedefs; more would be a cycle.
const DEEPEST: usize = 32;
/// Maximum members looked at for one name; more, and unnamed structures repeat.
const MOST_MEMBERS: usize = 1 << 16;

mod kind {
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const TYPE_TAG: u32 = 18;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BtfError {
    #[error("no BTF of this byte order")]
    Magic,
    #[error("BTF that is cut off")]
    Truncated,
    /// Kind that this version of the format does not define, so that the type's length is unknown.
    #[error("BTF with the unknown kind {0}")]
    Kind(u32),
}

#[derive(Debug)]
pub(super) struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Offset of each type, from type 1 on.
    offsets: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// Whether members' offsets include sizes of bit fields.
    kind_flag: bool,
    /// Size, or another type.
    other: u32,
    rest: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn added(kind: u32, length: u32) -> Result<usize, BtfError> {
    let length = length as usize;
    match kind {
        1 | 14 | 17 => Ok(4),
        3 => Ok(12),
        kind::STRUCT | kind::UNION => Ok(length * MEMBER),
        6 | 13 => Ok(length * 8),
        15 | 19 => Ok(length * 12),
        2 | 7..=12 | 16 | kind::TYPE_TAG => Ok(0),
        other => Err(BtfError::Kind(other)),
    }
}

impl<'a> Btf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let head = |at| word(bytes, at).ok_or(BtfError::Truncated);
        if head(0)? as u16 != MAGIC || bytes.len() < HEADER {
            return Err(BtfError::Magic);
        }
        let length = head(4)? as usize;
        let section = |offset: usize, size: usize| {
            let start = length.checked_add(head(offset)? as usize).ok_or(BtfError::Truncated)?;
            let end = start.checked_add(head(size)? as usize).ok_or(BtfError::Truncated)?;
            bytes.get(start..end).ok_or(BtfError::Truncated)
        };
        let mut btf = Self { types: section(8, 12)?, strings: section(16, 20)?, offsets: Vec::new() };
        let mut at = 0;
        while at < btf.types.len() {
            let (_, end) = btf.type_at(at)?;
            btf.offsets.push(at as u32);
            at = end;
        }
        Ok(btf)
    }

    /// Returns the type at an offset, and the next type's offset.
    fn type_at(&self, at: usize) -> Result<(Type<'a>, usize), BtfError> {
        let get = |index: usize| word(self.types, at + 4 * index).ok_or(BtfError::Truncated);
        let (name, info, other) = (get(0)?, get(1)?, get(2)?);
        let (kind, start) = (info >> 24 & 31, at + TYPE);
        let end = start + added(kind, info & 0xffff)?;
        let rest = self.types.get(start..end).ok_or(BtfError::Truncated)?;
        Ok((Type { name, kind, kind_flag: info >> 31 != 0, other, rest }, end))
    }

    fn get(&self, number: u32) -> Option<Type<'a>> {
        let at = *self.offsets.get((number as usize).checked_sub(1)?)?;
        self.type_at(at as usize).ok().map(|(found, _)| found)
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Returns a member's offset in a structure, in bytes; members of unnamed structures inside count, as in
    /// C. `None` if there is none, or it is a bit field.
    pub(super) fn member(&self, structure: &str, member: &str) -> Option<u64> {
        let mut left = MOST_MEMBERS;
        self.offsets.iter().find_map(|&at| {
            let (found, _) = self.type_at(at as usize).ok()?;
            let named = found.kind == kind::STRUCT && self.string(found.name) == structure.as_bytes();
            let bits = named.then(|| self.member_of(found, member.as_bytes(), DEEPEST, &mut left))??;
            (bits % 8 == 0).then_some(bits / 8)
        })
    }

    fn member_of(&self, structure: Type<'a>, member: &[u8], depth: usize, left: &mut usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        structure.rest.chunks_exact(MEMBER).find_map(|entry| {
            *left = left.checked_sub(1)?;
            let (name, number, offset) = (word(entry, 0)?, word(entry, 4)?, word(entry, 8)?);
            let (bits, field) =
                if structure.kind_flag { (offset & 0x00ff_ffff, offset >> 24) } else { (offset, 0) };
            if self.string(name) == member && field == 0 {
                return Some(u64::from(bits));
            }
            let inner = (name == 0).then(|| self.resolve(number, depth))??;
            let nested = matches!(inner.kind, kind::STRUCT | kind::UNION);
            let within = if nested { self.member_of(inner, member, depth, left)? } else { return None };
            Some(u64::from(bits) + within)
        })
    }

    fn resolve(&self, number: u32, depth: usize) -> Option<Type<'a>> {
        let found = self.get(number)?;
        match found.kind {
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                self.resolve(found.other, depth.checked_sub(1)?)
            }
            _ => Some(found),
        }
    }
}

#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(types) = Btf::parse(bytes) {
        types.member("task_struct", "pid");
    }
}

#[cfg(test)]
pub(super) mod tests;
