//! The document of a run on several hosts, in the shape of fio's client mode.
//!
//! Invariant: an entry is that of a run on one machine, with the address and the port of its host instead of the times that are
//! left.

use super::{Detail, Writer, job, options};
use crate::figures;
use crate::model::{JobReport, RunReport};

/// A host's report, and where the host is.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// Its address, as it was typed.
    pub hostname: &'a str,
    /// Its port; 0 if none was given.
    pub port: u16,
    /// Its report.
    pub report: &'a RunReport,
}

/// Writes the members of the document up to `disk_util`. `all` are all jobs as one; fio has it if there is more than one entry.
pub fn write(json: &mut Writer, clients: &[Client<'_>], all: Option<&JobReport>, detail: Detail) {
    if let Some(Client { report, .. }) = clients.last() {
        json.string("fio version", &report.version);
        json.integer("timestamp", report.timestamp_ms / 1000);
        json.string("time", &figures::date(report));
    }
    global_options(json, clients);
    json.list("client_stats", |json| {
        for Client { hostname, port, report } in clients {
            let groups = report.groups();
            for entry in &report.jobs {
                json.item(|json| job(json, entry, &groups, detail, Some((hostname, *port))));
            }
        }
        // Its address is that of one of the clients, as in fio.
        if let (Some(all), Some(last)) = (all, clients.last()) {
            // As in fio, it has no depth to a latency target.
            let all = JobReport { unstarted: true, ..all.clone() };
            let run = RunReport { jobs: vec![all], ..RunReport::default() };
            let groups = run.groups();
            json.item(|json| job(json, &run.jobs[0], &groups, detail, Some((last.hostname, last.port))));
        }
    });
    json.list("disk_util", |_| {});
}

/// An object for one client, a list for several.
fn global_options(json: &mut Writer, clients: &[Client<'_>]) {
    let given: Vec<&Client<'_>> =
        clients.iter().filter(|client| !client.report.global_options.is_empty()).collect();
    match given.as_slice() {
        [] => {}
        [one] if clients.len() == 1 => {
            json.object("global options", |json| options(json, &one.report.global_options));
        }
        several => json.list("global options", |json| {
            for client in several {
                json.item(|json| {
                    json.string("hostname", client.hostname);
                    json.integer("port", client.port);
                    options(json, &client.report.global_options);
                });
            }
        }),
    }
}
