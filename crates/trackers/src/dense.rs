//! Defines the exact table: an array of counts indexed by page number.

use crate::{Change, Tracker};

/// The type of an exact count: it saturates at its largest value.
pub trait Count: Copy + Default + Send + std::fmt::Debug + Into<u32> + TryFrom<u32> + 'static {
    /// The largest count.
    const MAXIMUM: Self;

    /// Half of it, rounded down.
    #[must_use]
    fn half(self) -> Self;
}

macro_rules! count {
    ($($name:ident)*) => {$(
        impl Count for $name {
            const MAXIMUM: Self = Self::MAX;

            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }
        }
    )*};
}

count!(u8 u16 u32);

/// One exact count for each page: what a filter is measured against, and the fastest tracker where pages are few.
#[derive(Debug, Clone)]
pub struct DenseTable<C> {
    counts: Vec<C>,
}

impl<C: Count> DenseTable<C> {
    /// A table of zeros for the pages below `pages`; a page beyond makes it grow when it is first counted.
    pub fn new(pages: usize) -> Self {
        Self { counts: vec![C::default(); pages] }
    }

    /// Makes room for `index`; rare, thus out of the way.
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
        self.counts.iter_mut().for_each(|count| *count = count.half());
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
