//! Bookkeeping of inherited events: which tasks are observed by which events.
//!
//! Events are opened for a task, its *root*; threads and processes that it creates later inherit them, and so
//! do theirs. Closing a root's events ends them in all tasks. So a root must be kept while a task of its tree
//! lives, and a task must not get its own events if it inherits some, or its accesses would be seen twice.
//!
//! The kernel reports both: FORK and EXIT records carry the number of the event that wrote them, hence the
//! root. A task that was found in `/proc` and turns out to inherit loses its own events again.

use std::collections::HashMap;

use super::record::Task;

/// Observed tasks, and the events `R` of each tree's root.
#[derive(Debug, Default)]
pub(crate) struct Tasks<R> {
    tasks: HashMap<u32, Entry>,
    roots: HashMap<u64, Root<R>>,
    /// Root of each event.
    events: HashMap<u64, u64>,
    next: u64,
    generation: u32,
    /// Whether roots are kept even if no task is counted, as heirs may be unknown.
    kept: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    pid: u32,
    root: u64,
}

#[derive(Debug)]
struct Root<R> {
    events: R,
    ids: Vec<u64>,
    live: usize,
    generation: u32,
}

impl<R> Tasks<R> {
    pub(crate) fn has(&self, tid: u32) -> bool {
        self.tasks.contains_key(&tid)
    }

    pub(crate) fn has_process(&self, pid: u32) -> bool {
        self.tasks.values().any(|task| task.pid == pid)
    }

    /// Records that reports were lost: unknown heirs may live, so events stay open until they are renewed.
    pub(crate) fn distrust(&mut self) {
        self.kept = true;
    }

    pub(crate) fn roots(&self) -> impl Iterator<Item = &R> {
        self.roots.values().map(|root| &root.events)
    }

    /// Makes the task a root with `events`, of which `ids` write records, in place of its earlier events.
    pub(crate) fn attach(&mut self, pid: u32, tid: u32, events: R, ids: Vec<u64>) {
        let root = self.next;
        self.next += 1;
        self.events.extend(ids.iter().map(|&id| (id, root)));
        self.roots.insert(root, Root { events, ids, live: 0, generation: self.generation });
        self.insert(tid, Entry { pid, root });
    }

    /// Starts a generation of roots that replace the earlier ones of the [`Self::outdated`] tasks.
    pub(crate) fn renew(&mut self) {
        self.generation += 1;
        self.kept = false;
        let events = &mut self.events;
        self.roots.retain(|_, root| {
            if root.live == 0 {
                events.retain(|id, _| !root.ids.contains(id));
            }
            root.live > 0
        });
    }

    /// Returns the tasks (process, thread) whose root is of an older generation.
    pub(crate) fn outdated(&self) -> Vec<(u32, u32)> {
        let old =
            |entry: &Entry| self.roots.get(&entry.root).is_none_or(|root| root.generation < self.generation);
        self.tasks.iter().filter(|(_, entry)| old(entry)).map(|(&tid, entry)| (entry.pid, tid)).collect()
    }

    /// Applies a report by the event `id` of a new task.
    pub(crate) fn forked(&mut self, id: u64, task: Task) {
        let Some(&root) = self.events.get(&id) else { return };
        let Some(before) = self.tasks.get(&task.tid).copied() else {
            self.insert(task.tid, Entry { pid: task.pid, root });
            return;
        };
        if before.root == root || self.generation_of(before.root) > self.generation_of(root) {
            return;
        }
        // It inherits and has its own events: close these, and what others inherited from them.
        let doubled: Vec<u32> =
            self.tasks.iter().filter(|(_, entry)| entry.root == before.root).map(|(&tid, _)| tid).collect();
        let same_age = self.generation_of(before.root) == self.generation_of(root);
        for tid in doubled.into_iter().filter(|&tid| same_age || tid == task.tid) {
            if let Some(entry) = self.tasks.get(&tid).copied() {
                self.insert(tid, Entry { root, ..entry });
            }
        }
    }

    pub(crate) fn exited(&mut self, tid: u32) {
        if let Some(entry) = self.tasks.remove(&tid) {
            self.release(entry.root);
        }
    }

    /// Applies the event `id`'s report of an exec: one thread is left, with the process's number.
    pub(crate) fn executed(&mut self, id: u64, pid: u32, tid: u32) {
        let root = self.events.get(&id).copied().or_else(|| Some(self.tasks.get(&tid)?.root));
        if let Some(root) = root {
            self.insert(tid, Entry { pid, root });
        }
        self.threads(pid).into_iter().filter(|&other| other != tid).for_each(|other| self.exited(other));
    }

    /// Stops observing the process, unless it inherits.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.threads(pid).into_iter().for_each(|tid| self.exited(tid));
    }

    fn threads(&self, pid: u32) -> Vec<u32> {
        self.tasks.iter().filter(|(_, entry)| entry.pid == pid).map(|(&tid, _)| tid).collect()
    }

    fn generation_of(&self, root: u64) -> u32 {
        self.roots.get(&root).map_or(0, |root| root.generation)
    }

    fn insert(&mut self, tid: u32, entry: Entry) {
        if let Some(root) = self.roots.get_mut(&entry.root) {
            root.live += 1;
        }
        if let Some(before) = self.tasks.insert(tid, entry) {
            self.release(before.root);
        }
    }

    /// Removes a task from a root; the last one closes the events.
    fn release(&mut self, root: u64) {
        let Some(state) = self.roots.get_mut(&root) else { return };
        state.live -= 1;
        let kept = self.kept && state.generation == self.generation;
        if state.live == 0
            && !kept
            && let Some(state) = self.roots.remove(&root)
        {
            for id in state.ids {
                self.events.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn child(pid: u32, tid: u32) -> Task {
        Task { pid, tid, parent_pid: 1, parent_tid: 1 }
    }

    fn open(tasks: &Tasks<&'static str>) -> Vec<&'static str> {
        let mut names: Vec<_> = tasks.roots().copied().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn events_stay_open_until_the_last_heir_is_gone() {
        let mut tasks = Tasks::default();
        tasks.attach(1, 1, "first", vec![10]);
        tasks.forked(10, child(1, 2));
        tasks.forked(10, child(3, 3));
        tasks.exited(1);
        tasks.exited(2);
        assert_eq!(open(&tasks), ["first"]);
        assert!(tasks.has_process(3) && !tasks.has_process(1));
        tasks.exited(3);
        tasks.exited(3);
        assert!(open(&tasks).is_empty() && tasks.events.is_empty());
    }

    #[test]
    fn an_heir_that_got_events_of_its_own_loses_them() {
        let mut tasks = Tasks::default();
        tasks.attach(1, 1, "parent", vec![10]);
        tasks.attach(1, 2, "double", vec![20]);
        tasks.forked(20, child(1, 3));
        tasks.forked(10, child(1, 2));
        assert_eq!(open(&tasks), ["parent"]);
        assert!(tasks.has(2) && tasks.has(3));
        // The record of an event that is closed by now has no effect.
        tasks.forked(20, child(1, 4));
        assert!(!tasks.has(4));
    }

    #[test]
    fn a_new_generation_replaces_the_old_one_task_by_task() {
        let mut tasks = Tasks::default();
        tasks.attach(1, 1, "old", vec![10]);
        tasks.forked(10, child(1, 2));
        tasks.renew();
        assert_eq!(tasks.outdated().len(), 2);
        tasks.attach(1, 1, "new", vec![20]);
        // Created by task 1 just now: both roots' events report it.
        tasks.forked(10, child(1, 3));
        tasks.forked(20, child(1, 3));
        tasks.forked(10, child(1, 3));
        // Created by task 2, which has only the old events.
        tasks.forked(10, child(1, 4));
        let mut outdated = tasks.outdated();
        outdated.sort_unstable();
        assert_eq!(outdated, [(1, 2), (1, 4)]);
        tasks.attach(1, 2, "new 2", vec![30]);
        tasks.attach(1, 4, "new 4", vec![40]);
        assert_eq!(open(&tasks), ["new", "new 2", "new 4"]);
    }

    #[test]
    fn exec_leaves_one_thread_under_the_processs_number() {
        let mut tasks = Tasks::default();
        tasks.attach(1, 1, "first", vec![10]);
        tasks.attach(1, 2, "second", vec![20]);
        // Thread 2 called exec: the kernel gives it the number 1.
        tasks.executed(20, 1, 1);
        assert_eq!(open(&tasks), ["second"]);
        assert!(tasks.has(1) && !tasks.has(2));
        tasks.forget(1);
        assert!(open(&tasks).is_empty());
    }

    #[test]
    fn lost_reports_keep_events_open() {
        let mut tasks = Tasks::default();
        tasks.attach(1, 1, "first", vec![10]);
        tasks.distrust();
        tasks.exited(1);
        assert_eq!(open(&tasks), ["first"]);
        tasks.renew();
        assert!(open(&tasks).is_empty() && tasks.events.is_empty());
    }

    proptest! {
        /// In any order of reports, a root is open exactly as long as tasks are counted on it.
        #[test]
        fn counts_match_the_tasks(steps in prop::collection::vec((0u8..6, 1u32..9, 1u32..4, 0u64..20), 0..200)) {
            let mut tasks = Tasks::default();
            for (step, tid, pid, id) in steps {
                match step {
                    0 => tasks.attach(pid, tid, "", vec![tasks.next]),
                    1 | 2 => tasks.forked(id, child(pid, tid)),
                    3 => tasks.exited(tid),
                    4 => tasks.executed(id, pid, tid),
                    _ => tasks.renew(),
                }
                for (number, root) in &tasks.roots {
                    let live = tasks.tasks.values().filter(|task| task.root == *number).count();
                    prop_assert_eq!(live, root.live);
                    prop_assert!(live > 0);
                }
                prop_assert!(tasks.tasks.values().all(|task| tasks.roots.contains_key(&task.root)));
                prop_assert_eq!(tasks.events.len(), tasks.roots.len());
            }
        }
    }
}
