//! How a worker's thread runs: CPUs, memory nodes, priorities, identity, commands around it.
//!
//! Invariant: CPUs are real ones, and empty only when every CPU will do.

use fiord_options::Problem;
use fiord_options::value::{CpusAllowedPolicy, NumaNodes, NumaPolicy};

use super::source::{Source, last_given};
use crate::facts::Facts;
use crate::job::{NumaMemory, Process};

/// The thread of one clone.
pub(crate) fn process(
    source: &Source<'_>,
    clone: u32,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Process {
    let options = source.options;
    let text = |text: &Option<fiord_options::value::Text>| text.as_ref().map(|text| text.0.clone());
    Process {
        nice: source.is_given("nice").then_some(options.nice),
        io_class: options.prioclass.map(|class| class.min(3) as u8),
        io_priority: options.prio.map(|level| level.min(7) as u8),
        cpus: cpus(source, clone, facts, problems),
        numa_cpu_nodes: match &options.numa_cpu_nodes {
            Some(wanted) => nodes(source, "numa_cpu_nodes", wanted, facts, problems),
            None => Vec::new(),
        },
        numa_memory: options
            .numa_mem_policy
            .as_ref()
            .map(|policy| numa_memory(source, policy, facts, problems)),
        uid: options.uid,
        gid: options.gid,
        exec_prerun: text(&options.exec_prerun),
        exec_postrun: text(&options.exec_postrun),
        io_scheduler: text(&options.ioscheduler),
    }
}

/// The CPUs of a clone: of `cpus_allowed` or `cpumask`, whichever was given last, each clone's own one if they are
/// to be split.
fn cpus(source: &Source<'_>, clone: u32, facts: &Facts, problems: &mut Vec<Problem>) -> Vec<u32> {
    let options = source.options;
    let last = last_given(source, &["cpus_allowed", "cpumask"]);
    let (option, wanted) = match (last, &options.cpus_allowed, options.cpumask) {
        (Some("cpumask"), _, Some(mask)) => ("cpumask", bits(mask)),
        (_, Some(set), _) => ("cpus_allowed", set.0.clone()),
        _ => return Vec::new(),
    };
    if wanted.is_empty() {
        problems.push(source.error(option, "no CPU is left to run on", ""));
        return Vec::new();
    }
    let missing: Vec<u32> = wanted.iter().copied().filter(|cpu| !facts.cpus_online.contains(cpu)).collect();
    if !missing.is_empty() {
        let message = format!("this machine has no CPU {}", numbers(&missing));
        problems.push(source.error(
            option,
            message,
            format!("CPUs on line: {}", numbers(&facts.cpus_online)),
        ));
        return Vec::new();
    }
    match options.cpus_allowed_policy {
        CpusAllowedPolicy::Shared => wanted,
        CpusAllowedPolicy::Split => vec![split(&wanted, clone)],
    }
}

/// The CPU of one clone when each has its own; clones beyond the number of CPUs start again at the first.
fn split(cpus: &[u32], clone: u32) -> u32 {
    cpus[clone as usize % cpus.len()]
}

fn bits(mask: u32) -> Vec<u32> {
    (0..u32::BITS).filter(|bit| mask & (1 << bit) != 0).collect()
}

fn nodes(
    source: &Source<'_>,
    option: &str,
    wanted: &NumaNodes,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Vec<u32> {
    let known: Vec<u32> = facts.numa_nodes.keys().copied().collect();
    let NumaNodes::List(list) = wanted else { return known };
    let missing: Vec<u32> = list.0.iter().copied().filter(|node| !known.contains(node)).collect();
    if !missing.is_empty() {
        let message = format!("this machine has no NUMA node {}", numbers(&missing));
        problems.push(source.error(option, message, format!("nodes: {}", numbers(&known))));
    }
    list.0.clone()
}

fn numa_memory(
    source: &Source<'_>,
    policy: &NumaPolicy,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> NumaMemory {
    let mut known = |wanted: &NumaNodes| nodes(source, "numa_mem_policy", wanted, facts, problems);
    match policy {
        NumaPolicy::Default => NumaMemory::Default,
        NumaPolicy::Local => NumaMemory::Local,
        NumaPolicy::Prefer(node) => {
            known(&NumaNodes::List(fiord_options::value::CpuSet(vec![*node])));
            NumaMemory::Prefer(*node)
        }
        NumaPolicy::Bind(wanted) => NumaMemory::Bind(known(wanted)),
        NumaPolicy::Interleave(wanted) => NumaMemory::Interleave(known(wanted)),
    }
}

fn numbers(list: &[u32]) -> String {
    list.iter().map(u32::to_string).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_take_turns_on_split_cpus() {
        assert_eq!((0..4).map(|clone| split(&[2, 5], clone)).collect::<Vec<u32>>(), [2, 5, 2, 5]);
    }

    #[test]
    fn a_mask_is_its_bits() {
        assert_eq!(bits(0b1011), [0, 1, 3]);
        assert_eq!(bits(0), Vec::<u32>::new());
    }
}
