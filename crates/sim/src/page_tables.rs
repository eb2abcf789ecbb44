//! Defines how many page-table entries a walk reads: a table that maps nothing does not exist, its range is passed over by one
//! look at the level above.

/// Entries of one page table.
pub(crate) const PAGES_PER_TABLE: u64 = 512;

/// Counts the entries of a walk in ascending order.
#[derive(Debug, Default)]
pub(crate) struct EntriesRead {
    /// Of tables that were left.
    read: u64,
    table: u64,
    /// Of the present table.
    entries: u64,
    mapped: bool,
}

impl EntriesRead {
    /// The walk comes to the entry of a page.
    pub(crate) fn visit(&mut self, page: usize, mapped: bool) {
        let table = page as u64 / PAGES_PER_TABLE;
        if table != self.table {
            *self = Self { read: self.total(), table, entries: 0, mapped: false };
        }
        self.entries += 1;
        self.mapped |= mapped;
    }

    /// Entries read so far.
    pub(crate) fn total(&self) -> u64 {
        self.read + if self.mapped { self.entries } else { self.entries.min(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_pages_is_one_look_and_others_are_read_entry_by_entry() {
        let mut read = EntriesRead::default();
        assert_eq!(read.total(), 0);
        (0..512).for_each(|page| read.visit(page, false));
        assert_eq!(read.total(), 1);
        (512..600).for_each(|page| read.visit(page, page == 599));
        assert_eq!(read.total(), 1 + 88);
        (1024..1124).for_each(|page| read.visit(page, false));
        assert_eq!(read.total(), 1 + 88 + 1);
    }
}
