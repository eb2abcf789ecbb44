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

macro_rules! count {
    ($($type:ty),*) => {$(
        impl Count for $type {
            const MAXIMUM: Self = Self::MAX;
        }
    )*};
}
count!(u8, u16, u32);

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
}

impl<C: Count> Tracker for DenseTable<C> {
    #[inline]
    fn increase(&mut self, key: u32, amount: u32) -> Change {
        let index = key as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, C::default());
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
