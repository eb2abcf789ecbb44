//! Counts of each process, and the choice of processes that are followed.

use std::collections::{HashMap, HashSet};

use isotherm_virtual_pmu::Process;
use serde::{Serialize, Serializer};

/// Number of processes with their own account; the rest share the first.
const MAX: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    #[serde(flatten, serialize_with = "name")]
    process: Option<Process>,
    pub(crate) accesses: u64,
    pub(crate) instructions: u64,
    /// Picoseconds for which it stood still for memory.
    #[serde(rename = "stall_ns", serialize_with = "nanoseconds")]
    pub(crate) stall_ps: u64,
    pub(crate) misses: Vec<[u64; 2]>,
}

fn nanoseconds<S: Serializer>(picoseconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(picoseconds / 1000)
}

#[derive(Serialize)]
struct Name {
    #[serde(skip_serializing_if = "Option::is_none")]
    tgid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_tables: Option<u64>,
}

fn name<S: Serializer>(process: &Option<Process>, serializer: S) -> Result<S::Ok, S::Error> {
    let (tgid, page_tables) = match *process {
        Some(Process::Tgid(tgid)) => (Some(tgid), None),
        Some(Process::PageTables(tables)) => (None, Some(tables)),
        None => (None, None),
    };
    Name { tgid, page_tables }.serialize(serializer)
}

pub(crate) type AccountId = usize;

#[derive(Debug)]
pub(crate) struct Accounts {
    numbers: HashMap<Process, AccountId>,
    list: Vec<Account>,
    tiers: usize,
}

impl Accounts {
    pub(crate) fn new(tiers: usize) -> Self {
        let mut accounts = Self { numbers: HashMap::new(), list: Vec::new(), tiers };
        accounts.open(None);
        accounts
    }

    fn open(&mut self, process: Option<Process>) -> AccountId {
        let misses = vec![[0; 2]; self.tiers];
        self.list.push(Account { process, accesses: 0, instructions: 0, stall_ps: 0, misses });
        self.list.len() - 1
    }

    pub(crate) fn number(&mut self, process: Process) -> AccountId {
        if let Some(&number) = self.numbers.get(&process) {
            return number;
        }
        if self.list.len() > MAX {
            return 0;
        }
        let number = self.open(Some(process));
        self.numbers.insert(process, number);
        number
    }

    #[inline]
    pub(crate) fn get(&mut self, number: AccountId) -> Option<&mut Account> {
        self.list.get_mut(number)
    }

    pub(crate) fn used(&self) -> impl Iterator<Item = &Account> {
        self.list.iter().filter(|account| account.accesses > 0)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Followed {
    all: bool,
    asked: HashSet<u32>,
    /// Children of processes that were followed when they appeared.
    inherited: HashSet<u32>,
    children: bool,
}

impl Followed {
    /// Applies the guest's filter; an empty one follows every process.
    pub(crate) fn set(&mut self, filter: impl Iterator<Item = u32>, children: bool) {
        self.asked = filter.collect();
        self.all = self.asked.is_empty();
        self.children = children;
        if !children || self.all {
            self.inherited.clear();
        }
    }

    /// Returns whether a process is followed; calls `parent` only if that decides.
    pub(crate) fn has(&mut self, process: Process, parent: impl FnOnce() -> Option<u32>) -> bool {
        let Process::Tgid(tgid) = process else { return self.all };
        if self.all || self.asked.contains(&tgid) || self.inherited.contains(&tgid) {
            return true;
        }
        let follows = |parent: u32| self.asked.contains(&parent) || self.inherited.contains(&parent);
        let inherits = self.children && parent().is_some_and(follows);
        if inherits {
            self.inherited.insert(tgid);
        }
        inherits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_one_account() {
        let mut accounts = Accounts::new(2);
        let (one, two) = (Process::Tgid(7), Process::PageTables(7));
        let (first, second) = (accounts.number(one), accounts.number(two));
        assert!(first != second && accounts.number(one) == first && accounts.number(two) == second);
        accounts.get(first).expect("there").accesses = 5;
        accounts.get(second).expect("there").instructions = 3;
        let json = serde_json::to_value(accounts.used().collect::<Vec<_>>()).expect("JSON");
        let account = serde_json::json!(
            {"tgid": 7, "accesses": 5, "instructions": 0, "stall_ns": 0, "misses": [[0, 0], [0, 0]]}
        );
        assert_eq!(json, serde_json::json!([account]));
    }

    #[test]
    fn endless_processes_share_an_account() {
        let mut accounts = Accounts::new(1);
        let numbers: HashSet<_> =
            (0..2 * MAX as u32).map(|tgid| accounts.number(Process::Tgid(tgid))).collect();
        assert_eq!(numbers.len(), MAX + 1);
    }

    #[test]
    fn children_inherit_where_that_is_asked_for() {
        let mut followed = Followed::default();
        let of = |followed: &mut Followed, tgid, parent| followed.has(Process::Tgid(tgid), || parent);
        followed.set([].into_iter(), true);
        assert!(of(&mut followed, 1, None) && followed.has(Process::PageTables(1), || None));
        followed.set([10].into_iter(), false);
        assert!(of(&mut followed, 10, None) && !of(&mut followed, 11, Some(10)));
        assert!(!followed.has(Process::PageTables(10), || None));
        followed.set([10].into_iter(), true);
        assert!(of(&mut followed, 11, Some(10)) && of(&mut followed, 12, Some(11)));
        assert!(!of(&mut followed, 13, Some(9)) && !of(&mut followed, 14, None));
        assert!(of(&mut followed, 12, Some(1)), "its parent has ended");
        followed.set([20].into_iter(), true);
        assert!(of(&mut followed, 12, Some(1)) && !of(&mut followed, 10, None));
        followed.set([20].into_iter(), false);
        assert!(!of(&mut followed, 12, Some(1)));
    }
}
