//! How a worker's thread runs: CPUs, memory nodes, priorities, identity, commands around it.
//!
//! Invariant: every CPU exists on this machine; the list is empty only if any CPU may be used.

use fiord_options::job;
use fiord_options::value::{CpusAllowedPolicy, NumaNodes, NumaPolicy};
use fiord_options::{Problem, ProblemKind, Spec};

use super::section::ResolvedSection;
use crate::facts::Facts;
use crate::job::{ControlGroup, NumaMemory, Process};

/// The thread of one clone, which does not run on `time_cpus`.
pub(crate) fn process(
    section: &ResolvedSection<'_>,
    clone: u32,
    time_cpus: &[u32],
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Process {
    let options = section.options;
    let cpus = cpus(section, clone, time_cpus, facts, problems);
    let text = |text: &Option<fiord_options::value::Text>| text.as_ref().map(|text| text.0.clone());
    Process {
        comm: text(&options.process.comm),
        nice: section.is_given(job::Process::nice).then_some(options.process.nice),
        io_class: options.process.prioclass.map(|class| class.min(3) as u8),
        io_priority: options.process.prio.map(|level| level.min(7) as u8),
        io_hint: options.process.priohint.min(1023) as u16,
        cpus,
        time_cpus: time_cpus.to_vec(),
        numa_cpu_nodes: match &options.process.numa_cpu_nodes {
            Some(wanted) => nodes(section, job::Process::numa_cpu_nodes, wanted, facts, problems),
            None => Vec::new(),
        },
        numa_memory: options
            .process
            .numa_mem_policy
            .as_ref()
            .map(|policy| numa_memory(section, policy, facts, problems)),
        control_group: options.process.cgroup.as_ref().map(|name| ControlGroup {
            name: name.0.clone(),
            weight: options.process.cgroup_weight,
            stays: options.process.cgroup_nodelete,
        }),
        uid: options.process.uid,
        gid: options.process.gid,
        exec_prerun: text(&options.process.exec_prerun),
        exec_postrun: text(&options.process.exec_postrun),
        io_scheduler: text(&options.files.ioscheduler),
    }
}

/// The CPU that keeps the time for a section's workers, if it is one that they may use.
pub(crate) fn time_cpu(section: &ResolvedSection<'_>, facts: &Facts, problems: &mut Vec<Problem>) {
    if let Some(cpu) = section.options.time.gtod_cpu {
        online(section, job::Time::gtod_cpu, vec![cpu], facts, problems);
    }
}

/// The CPUs of a clone: of `cpus_allowed` or `cpumask`, whichever was given last, each clone's own one if they are
/// to be split.
fn cpus(
    section: &ResolvedSection<'_>,
    clone: u32,
    time_cpus: &[u32],
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Vec<u32> {
    let options = section.options;
    let Some(option) = section.given.last_of(&[job::Process::cpus_allowed, job::Process::cpumask]) else {
        return match time_cpus {
            [] => Vec::new(),
            _ => without(section, job::Time::gtod_cpu, facts.cpus_allowed.clone(), time_cpus, problems),
        };
    };
    let of_mask = options.process.cpumask.filter(|_| option == job::Process::cpumask).map(bits);
    let of_list = || options.process.cpus_allowed.as_ref().map(|set| set.0.clone());
    let Some(wanted) = of_mask.or_else(of_list) else { return Vec::new() };
    if wanted.is_empty() {
        problems.push(section.error(ProblemKind::InvalidValue, option, "no CPU is left to run on", ""));
        return Vec::new();
    }
    let wanted = online(section, option, wanted, facts, problems);
    let wanted = without(section, option, wanted, time_cpus, problems);
    match options.process.cpus_allowed_policy {
        CpusAllowedPolicy::Split if !wanted.is_empty() => vec![split(&wanted, clone)],
        CpusAllowedPolicy::Shared | CpusAllowedPolicy::Split => wanted,
    }
}

/// These CPUs without those that keep the time; an error if no other is among them.
fn without(
    section: &ResolvedSection<'_>,
    option: &'static Spec,
    cpus: Vec<u32>,
    time_cpus: &[u32],
    problems: &mut Vec<Problem>,
) -> Vec<u32> {
    let left: Vec<u32> = cpus.iter().copied().filter(|cpu| !time_cpus.contains(cpu)).collect();
    if left.is_empty() && !cpus.is_empty() {
        let message = format!("no CPU is left for the job: gtod_cpu={} keeps the time", numbers(time_cpus));
        let remedy = "leave out gtod_cpu, or give the job another CPU (cpus_allowed)";
        problems.push(section.error(ProblemKind::Conflict, option, message, remedy));
    }
    left
}

/// These CPUs, if this machine has all of them.
pub(crate) fn online(
    section: &ResolvedSection<'_>,
    option: &'static Spec,
    wanted: Vec<u32>,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Vec<u32> {
    let missing: Vec<u32> = wanted.iter().copied().filter(|cpu| !facts.cpus_online.contains(cpu)).collect();
    if !missing.is_empty() {
        let message = format!("this machine has no CPU {}", numbers(&missing));
        problems.push(section.error(
            ProblemKind::NotOnMachine,
            option,
            message,
            format!("online CPUs: {}", numbers(&facts.cpus_online)),
        ));
        return Vec::new();
    }
    wanted
}

/// The CPU of one clone when each has its own; clones beyond the number of CPUs start again at the first.
fn split(cpus: &[u32], clone: u32) -> u32 {
    cpus[clone as usize % cpus.len()]
}

fn bits(mask: u32) -> Vec<u32> {
    (0..u32::BITS).filter(|bit| mask & (1 << bit) != 0).collect()
}

fn nodes(
    section: &ResolvedSection<'_>,
    option: &'static Spec,
    wanted: &NumaNodes,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Vec<u32> {
    let known: Vec<u32> = facts.numa_nodes.keys().copied().collect();
    let NumaNodes::List(list) = wanted else { return known };
    let missing: Vec<u32> = list.0.iter().copied().filter(|node| !known.contains(node)).collect();
    if !missing.is_empty() {
        let message = format!("this machine has no NUMA node {}", numbers(&missing));
        problems.push(section.error(
            ProblemKind::NotOnMachine,
            option,
            message,
            format!("nodes: {}", numbers(&known)),
        ));
    }
    list.0.clone()
}

fn numa_memory(
    section: &ResolvedSection<'_>,
    policy: &NumaPolicy,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> NumaMemory {
    let mut known =
        |wanted: &NumaNodes| nodes(section, job::Process::numa_mem_policy, wanted, facts, problems);
    match policy {
        NumaPolicy::Default => NumaMemory::Default,
        NumaPolicy::Local => NumaMemory::Local,
        NumaPolicy::Prefer(node) => {
            known(&NumaNodes::List(fiord_options::value::NumberSet(vec![*node])));
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
