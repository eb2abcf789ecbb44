//! New pages of a launched program over the machine's nodes, where the policy places them by weights.

use std::path::Path;

use isotherm_core::{Allocation, MAX_TIERS, Weights};
use isotherm_linux::LinuxError;
use isotherm_linux::memory::interleave::NodeWeights;

use super::target::Target;
use super::tiers::TierPlan;

/// The kernel's weights while the session runs; drop restores the former ones.
#[derive(Debug)]
pub(super) struct Interleaving {
    /// The nodes that take turns.
    pub(super) nodes: Vec<u32>,
    _weights: NodeWeights,
}

impl Interleaving {
    /// Sets the weights below `root` for a policy with this place for new pages; `None` if it has no weights,
    /// or if its tiers are shadows, which the session fills itself. `notes` gets what the user should know.
    ///
    /// # Errors
    /// If the program was not launched by the session, or the kernel has no weights that can be set.
    pub(super) fn begin(
        root: &Path,
        allocation: Allocation,
        plan: &TierPlan,
        target: &Target,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, LinuxError> {
        let bandwidths: Vec<u64> = plan.tiers.iter().map(|tier| tier.bandwidth).collect();
        let Allocation::Weighted(weights) = allocation.with_bandwidths(&bandwidths) else { return Ok(None) };
        if plan.shadow {
            return Ok(None);
        }
        if !matches!(target, Target::Launch { .. }) {
            return Err(LinuxError::Unsupported {
                what: "weighted interleaving of a program that already runs",
                remedy: "the kernel takes a memory policy from the program itself alone; start it with \
                         `isotherm run`"
                    .into(),
            });
        }
        if allocation == Allocation::Weighted(Weights::OF_HOST) && bandwidths.contains(&0) {
            notes.push(
                "the firmware reports no bandwidths: all tiers get the same number of pages; set weights with --set, such \
                 as weighted-interleave.tier_0=3 and weighted-interleave.tier_1=1"
                    .into(),
            );
        }
        let weights = of_nodes(weights, &plan.nodes);
        let nodes = weights.iter().map(|&(node, _)| node).collect();
        Ok(Some(Self { nodes, _weights: NodeWeights::set(root, &weights)? }))
    }
}

/// Divides each tier's weight among its nodes; nodes of a tier without weight take no turn.
fn of_nodes(Weights(weights): Weights, tiers: &[Vec<u32>]) -> Vec<(u32, u8)> {
    /// Divisible by every number of nodes up to 10, and beyond with less than a hundredth of an error.
    const PARTS: u64 = 2520;
    let tiers = tiers.iter().zip(weights).filter(|&(_, weight)| weight > 0);
    let parts = tiers.flat_map(|(nodes, weight)| {
        nodes.iter().map(move |&node| (node, u64::from(weight) * PARTS / nodes.len() as u64))
    });
    let (nodes, parts): (Vec<u32>, Vec<u64>) = parts.take(MAX_TIERS).unzip();
    nodes.into_iter().zip(Weights::of_bandwidths(&parts).0).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use isotherm_core::{Bytes, FastLimit};

    use super::*;
    use crate::host::Tier;

    fn launch() -> Target {
        Target::Launch {
            program: "true".into(),
            arguments: Vec::new(),
            agent: None,
            library: None,
            cgroup: None,
            descendants: false,
        }
    }

    fn plan(nodes: &[&[u32]], bandwidths: &[u64]) -> TierPlan {
        let tier = |&bandwidth| Tier { size: Bytes(1 << 30), latency: Default::default(), bandwidth };
        TierPlan {
            tiers: bandwidths.iter().map(tier).collect(),
            nodes: nodes.iter().map(|nodes| nodes.to_vec()).collect(),
            map: Default::default(),
            fast: FastLimit::Share(1.0),
            free: Bytes(0),
            shadow: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_tiers_weight_is_divided_among_its_nodes() {
        assert_eq!(of_nodes(Weights::of_first([9, 2]), &[vec![0], vec![1]]), [(0, 9), (1, 2)]);
        assert_eq!(of_nodes(Weights::of_first([3, 1]), &[vec![0, 1], vec![2]]), [(0, 3), (1, 3), (2, 2)]);
        assert_eq!(of_nodes(Weights::of_first([3, 0]), &[vec![0, 1], vec![2]]), [(0, 1), (1, 1)]);
    }

    #[test]
    fn the_kernels_weights_follow_the_bandwidths_until_the_session_ends() {
        let root = tempfile::tempdir().expect("a directory");
        let folder = root.path().join("sys/kernel/mm/mempolicy/weighted_interleave");
        fs::create_dir_all(&folder).expect("made");
        ["node0", "node2"].iter().for_each(|node| fs::write(folder.join(node), "1").expect("written"));
        let texts = || ["node0", "node2"].map(|node| fs::read_to_string(folder.join(node)).expect("there"));
        let plan = plan(&[&[0], &[2]], &[240_600, 53_400]);
        let own = Allocation::Weighted(Weights::OF_HOST);
        let mut notes = Vec::new();
        let set = Interleaving::begin(root.path(), own, &plan, &launch(), &mut notes);
        let set = set.expect("set").expect("weighted");
        assert_eq!((&set.nodes[..], texts()), (&[0, 2][..], ["9".into(), "2".into()]));
        drop(set);
        assert_eq!(texts(), ["1", "1"]);
        assert!(notes.is_empty());
        let unknown = self::plan(&[&[0], &[2]], &[0, 0]);
        drop(Interleaving::begin(root.path(), own, &unknown, &launch(), &mut notes));
        assert!(notes.concat().contains("set weights with --set"), "{notes:?}");
    }

    #[test]
    fn nothing_is_set_for_other_policies_and_for_shadows_and_a_running_program_is_refused() {
        let none = Path::new("/no/such/root");
        let plan = plan(&[&[0], &[1]], &[3, 1]);
        let weighted = Allocation::Weighted(Weights::OF_HOST);
        let begin = |allocation, plan: &TierPlan, target: &Target| {
            let set = Interleaving::begin(none, allocation, plan, target, &mut Vec::new());
            set.map(|set| set.is_some()).map_err(|error| error.to_string())
        };
        assert_eq!(begin(Allocation::FastFirst, &plan, &launch()), Ok(false));
        assert_eq!(begin(weighted, &TierPlan { shadow: true, ..plan.clone() }, &launch()), Ok(false));
        let attached = Target::Attach { pid: isotherm_linux::process::Pid(1), time: None };
        let refused = begin(weighted, &plan, &attached).expect_err("it runs already");
        assert!(refused.contains("start it with `isotherm run`"), "{refused}");
        let absent = begin(weighted, &plan, &launch()).expect_err("no such kernel");
        assert!(absent.contains("use Linux 6.9 or newer"), "{absent}");
    }
}
