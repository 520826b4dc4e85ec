//! Tests of whole lists.
//!
//! Invariant: files are values.

use super::*;
use fiord_options::Origin;
use fiord_options::environment::KeywordValues;
use fiord_options::value::EngineName;
use proptest::prelude::*;

fn read_with(list: &str, files: &[(&str, &str)]) -> Result<Vec<Host>, String> {
    let read_file = |name: &OsStr| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from_raw_os_error(2))
    };
    let variables = |name: &OsStr| (name == "USER").then(|| OsString::from("me"));
    let keywords = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };
    let environment =
        Environment { files: &read_file, variables: &variables, keywords, engines: &[EngineName::Psync] };
    let place = Place { source: Origin::CommandLine, line: 1, column: 9 };
    read(OsStr::new(list), &place, &environment)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn names(hosts: &[Host]) -> String {
    hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_ranges_and_exclusions_follow_each_other() {
    let hosts = read_with("db[01-03,15], me@web:2222,^db02", &[]).unwrap();
    assert_eq!(names(&hosts), "db01 db03 db15 web");
    assert_eq!(hosts.iter().map(|host| host.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((hosts[3].user.as_deref(), hosts[3].port), (Some("me"), Some(2222)));
    let ports = read_with("127.0.0.1:1,127.0.0.1:2,[::1]:3", &[]).unwrap();
    assert_eq!(names(&ports), "127.0.0.1:1 127.0.0.1:2 ::1");
    assert_eq!(ports[1].address, "127.0.0.1");
}

#[test]
fn a_file_has_a_host_on_each_line_as_fios() {
    let file = "# nodes\n127.0.0.1,8765\n\ndb[1-2]   ; two\n^db2\nip6:::1,8770\n";
    let hosts = read_with("./nodes", &[("./nodes", file)]).unwrap();
    assert_eq!(names(&hosts), "127.0.0.1 db1 ::1");
    assert_eq!((hosts[0].port, hosts[2].port), (Some(8765), Some(8770)));
    assert_eq!(names(&read_with("-", &[("-", "a\nb\n")]).unwrap()), "a b");
    assert_eq!(names(&read_with("nodes,c", &[("nodes", "a\nb\n")]).unwrap()), "a b c");
}

#[test]
fn sections_are_hosts_with_keys_and_options_of_jobs() {
    let file = "[global]\nvia=ssh\nuser=${USER}\n[db[1-2]]\nfilename=/dev/nvme1n1\n[db12]\n\
                filename=/dev/nvme0n1\nrole=slow-rack\naddress=127.0.0.12\nport=2222\nagent=/opt/fiord\n";
    let hosts = read_with("./nodes", &[("./nodes", file)]).unwrap();
    assert_eq!(names(&hosts), "db1 db2 db12");
    let last = &hosts[2];
    assert_eq!((last.via.as_deref(), last.user.as_deref(), last.port), (Some("ssh"), Some("me"), Some(2222)));
    assert_eq!((last.address.as_str(), last.role.as_deref()), ("127.0.0.12", Some("slow-rack")));
    assert_eq!(last.agent.as_deref(), Some(std::path::Path::new("/opt/fiord")));
    let setting = &last.settings[0];
    assert_eq!((setting.spec.name, setting.text()), ("filename", Some("/dev/nvme0n1")));
    assert_eq!(setting.place.to_string(), "./nodes:7:1");
    let section = Section::new("a").with([(Files::filename, "/dev/null")]);
    let own = last.sections(&[section]);
    assert_eq!(own[0].last(Files::filename).and_then(Setting::text), Some("/dev/nvme0n1"));
    assert_eq!((hosts[0].role.as_deref(), hosts[0].port), (None, None));
}

#[test]
fn mistakes_name_their_place_and_what_to_do() {
    let nodes = "[global]\nuser=-x\n[db1]\nblocksise=4k\nport=x\n[db[3-1]]\n[db1]\n";
    for (list, expected) in [
        ("a,db[3-1]", "command line:1:14: error: the range \"3-1\" runs backwards\n  write 1-3"),
        ("a,a", "command line:1:11: error: a stands in the list twice"),
        ("a,^b", "command line:1:11: error: ^b leaves out no host"),
        ("a,^a", "command line:1:9: error: no host is left"),
        ("a,,b", "command line:1:11: error: no host"),
        (
            "./no",
            "command line:1:9: error: cannot read the list of hosts ./no: No such file or directory (ENOENT)",
        ),
        ("a,-oProxyCommand=x", "command line:1:11: error: \"-oProxyCommand=x\" is not the name of a host"),
        ("db[1-1000000]", "stands for 1000000 hosts"),
        ("a[1-9999],b[1-9999]", "19998 hosts are more than"),
        ("./nodes", "./nodes:2:1: error: \"-x\" is not the name of a user"),
        ("./nodes", "./nodes:4:1: error: no option is called \"blocksise\"\n  did you mean \"blocksize\"?"),
        ("./nodes", "./nodes:5:1: error: \"x\" is not a port"),
        ("./nodes", "./nodes:6:5: error: the range \"3-1\" runs backwards"),
        ("./nodes", "./nodes:7:2: error: db1 stands in the list twice"),
        ("./empty", "./empty: error: the list of hosts is empty"),
        ("./unset", "./unset:2:1: error: the variable NO is not set"),
    ] {
        let files = [("./nodes", nodes), ("./empty", "# none\n"), ("./unset", "[a]\nuser=${NO}\n")];
        let problems = read_with(list, &files).unwrap_err();
        assert!(problems.contains(expected), "{list}:\n{problems}");
    }
}

proptest! {
    #[test]
    fn any_list_is_read_or_refused(list in "[ab1-3\\[\\],^@:./ -]{0,24}", file in "[\\[\\]a-c0-2=\n#;^,.:@ -]{0,60}") {
        let files = [("a", file.as_str()), ("./a", file.as_str()), ("-", file.as_str())];
        if let Ok(hosts) = read_with(&list, &files) {
            let known: HashSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
            prop_assert_eq!(known.len(), hosts.len());
            prop_assert!(!hosts.is_empty() && hosts.iter().all(|host| !host.address.starts_with('-')));
        }
    }
}
