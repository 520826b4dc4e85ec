//! Power that the machine's management controller tells, and the power states of NVMe disks.
//!
//! Invariant: what is told is what the case makes it tell; emulation measures nothing.

use fiord_guest::{Bmc, NullBlk, fiord, nvme};
use serde_json::Value;

use crate::guest;

/// The report of a run of two seconds, in which the controller is asked at least once.
fn report(target: &str, options: &[&str]) -> Value {
    let target = format!("--filename={target}");
    let args = ["--name=p", &target, "--rw=read", "--bs=64k", "--size=1m"];
    let run = fiord(&[&args[..], options].concat()).expect("fiord runs");
    assert!(run.code == Some(0) && run.stderr.is_empty(), "{run:?}");
    run.report().expect("a report")
}

#[test]
fn the_management_controller_tells_the_power_and_one_without_dcmi_does_not() {
    guest!();
    let disk = NullBlk::new("powered", 16, &[]).unwrap();
    let run = || report(&disk.path(), &["--time_based", "--runtime=4"]);
    let bmc = Bmc::start(417).unwrap();
    let told = run();
    let energy = told["energy"].as_array().expect("there is a source");
    let source = energy.iter().find(|used| used["source"] == "ipmi0").expect("it is the controller");
    for figure in ["watts", "idle_watts"] {
        let watts = source[figure].as_f64().expect("it is known");
        assert!((watts - 417.0).abs() < 0.001, "{source}");
    }
    assert!(source["net_joules"].is_null(), "nothing was used beyond idle: {source}");
    bmc.set_watts(Bmc::NO_DCMI);
    let told = run();
    let energy = told["energy"].as_array().cloned().unwrap_or_default();
    assert!(!energy.iter().any(|used| used["source"] == "ipmi0"), "{energy:?}");
}

#[test]
fn an_nvme_disk_tells_its_power_states_and_a_disk_in_memory_has_none() {
    guest!();
    let told = report(&nvme("plain").expect("the machine has one"), &[]);
    let states = &told["devices"][0]["power_states"];
    for end in ["start", "end"] {
        let state = &states[end];
        assert_eq!((&state["state"], &state["does_io"]), (&Value::from(0), &Value::from(true)), "{states}");
        assert_eq!(state["max_watts"].as_f64(), Some(25.0), "{states}");
        assert!(state["active_watts"].is_null() && state["idle_watts"].is_null(), "{states}");
    }
    let disk = NullBlk::new("stateless", 16, &[]).unwrap();
    let told = report(&disk.path(), &[]);
    assert!(told["devices"][0].get("power_states").is_none(), "{told}");
}
