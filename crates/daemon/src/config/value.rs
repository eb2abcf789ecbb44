//! Values with units.

use std::ops::Range;

use isotherm_core::{Bytes, Nanos, parse_number};
use serde::Deserialize;
use toml::Spanned;

use super::Mistake;

/// An amount of fast memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// So many bytes.
    Bytes(Bytes),
    /// A share of the fast memory of all groups, from 0 to 1.
    Share(f64),
}

impl Size {
    /// Parses a size such as `4G` or `25%`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(_) => parse_number(text).ok().filter(|share| (0.0..=1.0).contains(share)).map(Self::Share),
            None => text.parse().map(Self::Bytes).ok(),
        }
    }

    /// Returns the size where all groups together have `all`.
    pub fn of(self, all: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes((all.0 as f64 * share) as u64),
        }
    }
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

pub(super) fn size(text: &Spanned<String>, key: &str) -> Result<Size, Mistake> {
    let value = text.as_ref();
    Size::parse(value).ok_or_else(|| {
        Mistake::at(text, format!("{key}: expected a size such as 4G or 25%, found '{value}'"))
    })
}

pub(super) fn overhead(text: &Spanned<String>) -> Result<f64, Mistake> {
    let value = text.as_ref();
    let share = parse_number(value).ok().filter(|share| (0.0..=0.5).contains(share));
    share.ok_or_else(|| {
        Mistake::at(text, format!("overhead: expected a share such as 2%, at most 50%, found '{value}'"))
    })
}

pub(super) fn nanos(text: &Spanned<String>, key: &str, range: Range<Nanos>) -> Result<Nanos, Mistake> {
    let value = text.as_ref();
    value.parse().ok().filter(|time| range.contains(time)).ok_or_else(|| {
        let Range { start, end } = range;
        Mistake::at(text, format!("{key}: expected a time from {start} to {end}, found '{value}'"))
    })
}
