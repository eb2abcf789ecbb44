//! The LRU lists, one for each allocation class, linked through the items' headers.
//!
//! As in CacheLib's MMLru, a hit moves its item to the head only after the refresh time. Most hits therefore
//! read the time in their own header, which the lookup has brought, and touch no neighbour.

use super::item::{HEADER, Item, NIL};
use super::slabs::Class;
use crate::{Memory, Token};

/// Bytes of a list's own state (lock, head, tail, size): lists do not share a line.
pub(super) const LIST: u64 = 64;

/// The lists' memory and their refresh time; the links stand in classes and items.
pub(super) struct Lists {
    start: u64,
    refresh: u64,
}

impl Lists {
    pub(super) fn new(classes: usize, refresh: u64, memory: &mut dyn Memory) -> Self {
        Self { start: memory.allocate(classes as u64 * LIST, "LRU lists"), refresh }
    }

    /// Locks a class' list and reads its head and tail.
    fn lock(&self, class: u8, memory: &mut dyn Memory) -> Token {
        let address = self.start + u64::from(class) * LIST;
        let token = memory.load(address, Token::NONE);
        memory.store(address, Token::NONE);
        token
    }

    pub(super) fn push(&self, class: &mut Class, items: &mut [Item], item: u32, memory: &mut dyn Memory) {
        let token = self.lock(items[item as usize].class, memory);
        Self::link(class, items, item, memory, token);
    }

    /// Notes a hit at `now`; `after` is what the item's address came from.
    pub(super) fn touch(
        &self,
        class: &mut Class,
        items: &mut [Item],
        item: u32,
        now: u64,
        memory: &mut dyn Memory,
        after: Token,
    ) {
        let touched = &mut items[item as usize];
        if now - touched.refreshed < self.refresh {
            return;
        }
        touched.refreshed = now;
        let token = self.lock(touched.class, memory);
        Self::unlink(class, items, item, memory, after);
        Self::link(class, items, item, memory, token);
    }

    /// Removes a class' least recent item, having read its header and key; `None` if the list is empty.
    pub(super) fn pop(
        &self,
        class: &mut Class,
        items: &mut [Item],
        memory: &mut dyn Memory,
    ) -> Option<(u32, Token)> {
        let item = class.tail;
        let (number, address, key) =
            items.get(item as usize).map(|item| (item.class, item.address, item.key))?;
        let list = self.lock(number, memory);
        let token = memory.load_range(address, HEADER + key.bytes, list);
        Self::unlink(class, items, item, memory, token);
        Some((item, token))
    }

    fn link(class: &mut Class, items: &mut [Item], item: u32, memory: &mut dyn Memory, list: Token) {
        let head = class.head;
        items[item as usize].older = head;
        items[item as usize].newer = NIL;
        memory.store(items[item as usize].address, Token::NONE);
        match items.get_mut(head as usize) {
            Some(head) => {
                head.newer = item;
                memory.store(head.address, list);
            }
            None => class.tail = item,
        }
        class.head = item;
    }

    fn unlink(class: &mut Class, items: &mut [Item], item: u32, memory: &mut dyn Memory, after: Token) {
        let (newer, older) = (items[item as usize].newer, items[item as usize].older);
        match items.get_mut(newer as usize) {
            Some(newer) => {
                newer.older = older;
                memory.store(newer.address, after);
            }
            None => class.head = older,
        }
        match items.get_mut(older as usize) {
            Some(older) => {
                older.newer = newer;
                memory.store(older.address, after);
            }
            None => class.tail = newer,
        }
    }
}
