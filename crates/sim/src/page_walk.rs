//! Counts the page-table entries that a walk reads. A table without mapped pages does not exist: one entry of
//! the level above skips it.

pub(crate) const PAGES_PER_TABLE: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct EntriesRead {
    /// Entries of the tables passed.
    read: u64,
    table: u64,
    /// Entries of the current table.
    entries: u64,
    mapped: bool,
}

impl EntriesRead {
    pub(crate) fn visit(&mut self, page: usize, mapped: bool) {
        let table = page as u64 / PAGES_PER_TABLE;
        if table != self.table {
            *self = Self { read: self.total(), table, entries: 0, mapped: false };
        }
        self.entries += 1;
        self.mapped |= mapped;
    }

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
