//! Which jobs of a run are recorded as one over time.
//!
//! Invariant: there are at most as many groups as is said, however many jobs there are; each job is in one group.

use std::collections::BTreeMap;

/// Groups of jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobGroups {
    /// The name of each group, unique.
    pub names: Vec<String>,
    /// The group of each job.
    of_job: Vec<usize>,
}

impl JobGroups {
    /// The jobs of each name; all of them in one group if there are more names than `max`.
    pub(super) fn by_name(jobs: &[&str], max: usize) -> JobGroups {
        let mut groups = JobGroups::default();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for name in jobs {
            let group = *known.entry(name).or_insert(groups.names.len());
            groups.of_job.push(group);
            if group == groups.names.len() {
                groups.names.push((*name).to_string());
            }
        }
        match groups.names.len() > max {
            true => JobGroups { names: vec![String::new()], of_job: vec![0; jobs.len()] },
            false => groups,
        }
    }

    /// Each job alone, numbered if its name is that of others too; if there are more than `max`, those of each name; if
    /// there are more names, the last group has the jobs of all further names.
    pub(super) fn single(jobs: &[&str], max: usize) -> JobGroups {
        if jobs.len() <= max {
            let named = |(index, name): (usize, &&str)| {
                let before = jobs[..index].iter().filter(|other| *other == name).count();
                match jobs.iter().filter(|other| *other == name).count() {
                    1 => (*name).to_string(),
                    _ => format!("{name} ({})", before + 1),
                }
            };
            let names = jobs.iter().enumerate().map(named).collect();
            return JobGroups { names, of_job: (0..jobs.len()).collect() };
        }
        let mut groups = JobGroups::by_name(jobs, usize::MAX);
        if groups.names.len() > max {
            let left = groups.names.len() - (max - 1);
            groups.names.truncate(max - 1);
            groups.names.push(format!("jobs of {left} other names"));
            groups.of_job.iter_mut().for_each(|group| *group = (*group).min(max - 1));
        }
        groups
    }

    /// The group of a job.
    pub(super) fn of(&self, job: usize) -> usize {
        self.of_job.get(job).copied().unwrap_or_default()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_name_are_one_group_and_too_many_names_are_one() {
        let groups = JobGroups::by_name(&["a", "b", "a"], 2);
        assert_eq!(groups, JobGroups { names: vec!["a".into(), "b".into()], of_job: vec![0, 1, 0] });
        let groups = JobGroups::by_name(&["a", "b", "c"], 2);
        assert_eq!((groups.count(), groups.of(2)), (1, 0));
    }

    #[test]
    fn jobs_are_alone_as_long_as_there_are_few() {
        let groups = JobGroups::single(&["a", "b", "a"], 3);
        assert_eq!(groups.names, ["a (1)", "b", "a (2)"]);
        assert_eq!((groups.of(0), groups.of(2)), (0, 2));
        assert_eq!(JobGroups::single(&["a", "b", "a"], 2).names, ["a", "b"]);
        let names: Vec<String> = (0..100).map(|number| format!("job{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let groups = JobGroups::single(&names, 16);
        assert_eq!((groups.count(), groups.names[14].as_str()), (16, "job14"));
        assert_eq!(groups.names[15], "jobs of 85 other names");
        assert_eq!((groups.of(14), groups.of(15), groups.of(99)), (14, 15, 15));
    }
}
