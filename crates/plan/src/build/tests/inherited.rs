//! Options that sections inherit, and that not all of them have a use for.
//!
//! Invariant: what an option of one's own would be said of is not said of one that others need.

use super::*;

#[test]
fn an_option_of_all_jobs_is_for_those_that_it_concerns() {
    let warnings = |text: &str| {
        let (_, warnings) = build(&in_file(text), &[], &machine(&[]), &RunSettings::default()).unwrap();
        warnings.iter().map(|warning| warning.to_string()).collect::<Vec<String>>()
    };
    let global = "[global]\nsize=64k\nfsync=1\n[a]\nrw=read\n[b]\n";
    assert_eq!(warnings(&format!("{global}rw=write\n")), [""; 0]);
    let [one] = &warnings(&format!("{global}rw=randread\n"))[..] else { panic!("said once") };
    assert!(
        one.starts_with("job.fio:3:") && one.contains("fsync has no effect in a job that only reads"),
        "{one}"
    );
    let own = warnings("[a]\nsize=64k\nrw=read\nfsync=1\n[b]\nsize=64k\nrw=write\nfsync=1\n");
    assert_eq!(own.len(), 1, "{own:?}");
}
