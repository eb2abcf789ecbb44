//! The algorithms against plain models of themselves and their papers' invariants.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const PAGES: u32 = 24;

/// Returns the victims of `algorithm` over `stream` (`None` for a hit), and checks every cache's rules.
fn victims(algorithm: &mut impl Replacement, stream: &[u32]) -> Vec<Option<Option<u32>>> {
    let mut held: Vec<u32> = Vec::new();
    let mut record = |&page: &u32| {
        let access = algorithm.access(PageId(page));
        assert_eq!(access.is_hit(), held.contains(&page), "page {page} of {held:?}");
        let Access::Miss { evicted } = access else { return None };
        assert_eq!(
            evicted.is_some(),
            held.len() == algorithm.capacity(),
            "room is used, a full cache replaces"
        );
        held.push(page);
        held.retain(|&other| Some(PageId(other)) != evicted);
        assert_eq!(algorithm.len(), held.len());
        (0..PAGES).for_each(|page| assert_eq!(algorithm.contains(PageId(page)), held.contains(&page)));
        Some(evicted.map(|page| page.0))
    };
    stream.iter().map(&mut record).collect()
}

/// Returns the victims of a queue whose head is replaced, with `hit` done to it at the position of each hit.
fn queue(capacity: usize, stream: &[u32], hit: fn(&mut VecDeque<u32>, usize)) -> Vec<Option<Option<u32>>> {
    let mut queue = VecDeque::new();
    let mut serve = |&page: &u32| {
        if let Some(at) = queue.iter().position(|&other| other == page) {
            hit(&mut queue, at);
            return None;
        }
        let evicted = if queue.len() == capacity { queue.pop_front() } else { None };
        queue.push_back(page);
        Some(evicted)
    };
    stream.iter().map(&mut serve).collect()
}

/// Returns the victims of CLOCK as a queue: a used page at the head goes to its end, unused.
fn second_chance(capacity: usize, stream: &[u32]) -> Vec<Option<Option<u32>>> {
    let mut queue: VecDeque<(u32, bool)> = VecDeque::new();
    let mut serve = |&page: &u32| {
        if let Some(entry) = queue.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return None;
        }
        let mut evicted = None;
        while queue.len() == capacity {
            let (head, used) = queue.pop_front().expect("a full queue");
            if used { queue.push_back((head, false)) } else { evicted = Some(head) }
        }
        queue.push_back((page, false));
        Some(evicted)
    };
    stream.iter().map(&mut serve).collect()
}

fn streams() -> impl Strategy<Value = Vec<u32>> {
    // Half the accesses go to few pages, so that every list is used.
    prop::collection::vec(prop_oneof![0..PAGES / 4, 0..PAGES], 1..300)
}

proptest! {
    #[test]
    fn lru_fifo_and_clock_are_their_naive_models(stream in streams(), capacity in 1..12_usize) {
        let pages = PAGES as usize;
        let to_the_end = |queue: &mut VecDeque<u32>, at| {
            let page = queue.remove(at).expect("a position of the queue");
            queue.push_back(page);
        };
        prop_assert_eq!(victims(&mut Lru::new(pages, capacity), &stream), queue(capacity, &stream, to_the_end));
        prop_assert_eq!(victims(&mut Fifo::new(pages, capacity), &stream), queue(capacity, &stream, |_, _| ()));
        prop_assert_eq!(victims(&mut Clock::new(pages, capacity), &stream), second_chance(capacity, &stream));
    }

    /// Section III-B of the ARC paper: conditions A.1 to A.4, and p within 0 and c.
    #[test]
    fn arc_keeps_its_invariants(stream in streams(), capacity in 1..12_usize) {
        let mut arc = Arc::new(PAGES as usize, capacity);
        for page in stream {
            arc.access(PageId(page));
            let [t1, t2, b1, b2] = arc.lengths();
            prop_assert!(t1 + t2 <= capacity && t1 + b1 <= capacity && t1 + t2 + b1 + b2 <= 2 * capacity);
            prop_assert!(b1 + b2 == 0 || t1 + t2 == capacity, "ghosts only of a full cache");
            prop_assert!((0.0..=capacity as f64).contains(&arc.target()));
        }
    }

    #[test]
    fn every_miss_of_arc_and_2q_enters_one_page_and_lets_at_most_one_leave(
        stream in streams(), capacity in 1..12_usize
    ) {
        victims(&mut Arc::new(PAGES as usize, capacity), &stream);
        victims(&mut TwoQ::new(PAGES as usize, capacity, TwoQ::KIN, TwoQ::KOUT), &stream);
    }

    #[test]
    fn the_queues_of_2q_keep_their_sizes(
        stream in streams(), capacity in 1..12_usize, kin in 0.0..=1.0, kout in 0.0..2.0
    ) {
        let mut twoq = TwoQ::new(PAGES as usize, capacity, kin, kout);
        for page in stream {
            twoq.access(PageId(page));
            let [a1in, a1out, am] = twoq.lengths();
            prop_assert!(a1in + am <= capacity);
            prop_assert!(a1out as f64 <= capacity as f64 * kout);
        }
    }

    /// A cache that grew holds what one of the full size from the start does.
    #[test]
    fn pages_may_be_added_later(stream in streams(), capacity in 1..12_usize) {
        let mut grown = Arc::new(1, capacity);
        let mut whole = Arc::new(PAGES as usize, capacity);
        for page in stream {
            grown.grow(page as usize + 1);
            prop_assert_eq!(grown.access(PageId(page)), whole.access(PageId(page)));
        }
    }
}

#[test]
fn a_hit_in_b1_raises_the_target_of_arc_and_one_in_b2_lowers_it() {
    let mut arc = Arc::new(PAGES as usize, 4);
    // 0 and 1 become frequent; 2 to 5 pass through T1, so 2 and 3 become ghosts in B1.
    for page in [0, 0, 1, 1, 2, 3, 4, 5] {
        arc.access(PageId(page));
    }
    let mut miss = |page, evicted| {
        assert_eq!(arc.access(PageId(page)), Access::Miss { evicted: Some(PageId(evicted)) });
        (arc.lengths(), arc.target())
    };
    assert_eq!(miss(2, 4), ([1, 3, 2, 0], 1.0), "5 and 4 in T1 were above its target");
    assert_eq!(miss(3, 0), ([1, 3, 1, 1], 2.0), "5 alone is below, so the least recent page of T2 leaves");
    assert_eq!(miss(0, 5), ([0, 4, 2, 0], 1.0), "T1 is at its target, and the page was in B2");
    assert_eq!(miss(6, 1), ([1, 3, 2, 1], 1.0), "T1 was empty");
    assert_eq!(miss(7, 2), ([2, 2, 2, 2], 1.0), "T1 is at its target, and the page is new");
}

#[test]
fn a_newcomer_of_2q_that_is_used_only_while_new_is_forgotten_and_a_remembered_one_is_hot() {
    let mut twoq = TwoQ::new(PAGES as usize, 4, 0.25, 0.5);
    // 0 is used three times in A1in, which is one use; 4 makes it leave.
    for page in [0, 0, 0, 1, 2, 3] {
        twoq.access(PageId(page));
    }
    assert_eq!(twoq.access(PageId(4)), Access::Miss { evicted: Some(PageId(0)) });
    assert_eq!(twoq.lengths(), [4, 1, 0]);
    twoq.access(PageId(0));
    assert_eq!(twoq.lengths(), [3, 1, 1], "0 came back from the ghosts, 1 went there");
    (5..20).for_each(|page| {
        twoq.access(PageId(page));
    });
    assert!(twoq.contains(PageId(0)), "pages that are used once pass by");
}

#[test]
fn one_pass_over_many_pages_flushes_lru_and_neither_arc_nor_2q() {
    fn survivors(mut algorithm: impl Replacement) -> usize {
        // Page 0 to 3 are hot: used among others until each algorithm knows.
        (0..200).for_each(|round| {
            algorithm.access(PageId(round % 4));
            algorithm.access(PageId(4 + round % 9));
        });
        (100..200).for_each(|page| {
            algorithm.access(PageId(page));
        });
        (0..4).filter(|&page| algorithm.contains(PageId(page))).count()
    }
    assert_eq!(survivors(Lru::new(200, 8)), 0);
    assert_eq!(survivors(Arc::new(200, 8)), 4);
    assert_eq!(survivors(TwoQ::new(200, 8, TwoQ::KIN, TwoQ::KOUT)), 4);
}
