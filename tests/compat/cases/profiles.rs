//! The built-in profiles, in short runs.
//!
//! Invariant: jobs and amounts are compared, rates never. fio does not end with `--profile=act --prep` on a small file.

use fiord_compat::compare::{counts, equal, files, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};

/// The same jobs, in the same groups, that moved data in the same directions.
fn jobs(pair: &Pair) -> Verdict {
    let (fio, fiord) = (pair.fio.jobs()?, pair.fiord.jobs()?);
    equal("number of jobs", fio.len(), fiord.len())?;
    fio.iter().zip(fiord).try_for_each(|(fio, fiord)| {
        ["jobname", "groupid", "error"].iter().try_for_each(|key| equal(key, &fio[*key], &fiord[*key]))?;
        ["read", "write"].iter().try_for_each(|direction| {
            let moves = |job: &serde_json::Value| job[*direction]["io_bytes"].as_u64() > Some(0);
            equal(&format!("{direction}s"), moves(fio), moves(fiord))
        })
    })
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    // Debian's fio ignores the profile's own `size`, which depends on the memory of the machine.
    let tiobench = "--profile=tiobench --filesize=64k --io_size=64k --output-format=json";
    let act = "--profile=act --device-names=dev --test-duration=1 --output-format=json";
    vec![
        case("profiles/tiobench", tiobench).check(success).check(counts).check(files),
        case("profiles/act", act).bytes("dev", 1 << 20).check(success).check(jobs).check(files),
        case("profiles/act-without-a-device", "--profile=act --output-format=json")
            .check(|pair| equal("refused", pair.fio.status != 0, pair.fiord.status != 0)),
    ]
}
