//! The exact table: an array of counts indexed by page number.

use std::fmt::Debug;
use std::ops::Shr;

use crate::{Change, Tracker};

/// Type of an exact count, which saturates at its largest value.
pub trait Count:
    Copy + Default + Send + Debug + Into<u32> + TryFrom<u32> + Shr<u32, Output = Self> + 'static
{
    /// Largest count.
    const MAXIMUM: Self;
}

impl Count for u8 {
    const MAXIMUM: Self = Self::MAX;
}

impl Count for u16 {
    const MAXIMUM: Self = Self::MAX;
}

impl Count for u32 {
    const MAXIMUM: Self = Self::MAX;
}

/// One exact count per page: the reference for the filters, and the fastest tracker where pages are few.
#[derive(Debug, Clone)]
pub struct DenseTable<C> {
    counts: Vec<C>,
}

impl<C: Count> DenseTable<C> {
    /// Creates a table of zeros for the pages below `pages`; it grows when a page beyond is first counted.
    pub fn new(pages: usize) -> Self {
        Self { counts: vec![C::default(); pages] }
    }

    /// Makes room for `index`.
    #[cold]
    fn grow(&mut self, index: usize) {
        self.counts.resize(index + 1, C::default());
    }
}

impl<C: Count> Tracker for DenseTable<C> {
    #[inline]
    fn increase(&mut self, key: u32, amount: u32) -> Change {
        let index = key as usize;
        if index >= self.counts.len() {
            self.grow(index);
        }
        let count = &mut self.counts[index];
        let before: u32 = (*count).into();
        *count = C::try_from(before.saturating_add(amount)).unwrap_or(C::MAXIMUM);
        Change { before, after: (*count).into() }
    }

    #[inline]
    fn get(&self, key: u32) -> u32 {
        self.counts.get(key as usize).map_or(0, |&count| count.into())
    }

    fn age(&mut self) {
        self.counts.iter_mut().for_each(|count| *count = *count >> 1);
    }

    fn maximum(&self) -> u32 {
        C::MAXIMUM.into()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.counts.as_slice())
    }

    fn lines(&self) -> u32 {
        1
    }
}
