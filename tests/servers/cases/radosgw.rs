//! http against radosgw: S3 with signatures, and Swift with a token.
//!
//! Invariant: what one protocol has written is read by the other, and by Ceph's own `rados`, which knows neither.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use fiord_servers::ceph::Cluster;
use fiord_servers::{Directory, Server, counts, fiord, free_port, listens, needs};

use crate::engine::strings;

/// radosgw in front of a cluster, with one user.
struct Gateway {
    cluster: Cluster,
    server: Server,
    port: u16,
}

const S3: &str = "--http_mode=s3 --http_s3_keyid=fiordid --http_s3_key=fiord/key";

impl Gateway {
    fn start() -> Gateway {
        let cluster = Cluster::start().unwrap();
        let port = free_port().unwrap();
        let mut command = Command::new("radosgw");
        command.arg("-c").arg(cluster.monitor.directory.join("ceph.conf"));
        command.args([
            "-f",
            "-n",
            "client.admin",
            &format!("--rgw-frontends=beast endpoint=127.0.0.1:{port}"),
        ]);
        let server = Server::start(Directory::new().unwrap(), &command, |_| listens(port)).unwrap();
        cluster
            .ceph(
                "radosgw-admin",
                "user create --uid=u --display-name=u --access-key=fiordid --secret-key=fiord/key",
            )
            .unwrap();
        cluster
            .ceph(
                "radosgw-admin",
                "subuser create --uid=u --subuser=u:s --access=full --key-type=swift --secret-key=k",
            )
            .unwrap();
        Gateway { cluster, server, port }
    }

    /// Sends a request without a body; the head of the answer, and what follows it.
    fn request(&self, line: &str, fields: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{fields}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&answer[..end]).into_owned(), answer[end + 4..].to_vec())
    }

    /// A token of Swift.
    fn token(&self) -> String {
        let (head, _) = self.request("GET /auth/v1.0", "X-Auth-User: u:s\r\nX-Auth-Key: k\r\n");
        let field = head.lines().find_map(|line| line.strip_prefix("X-Auth-Token: "));
        field.unwrap_or_else(|| panic!("{head}")).to_string()
    }

    fn fiord(&self, words: &str) -> fiord_servers::Finished {
        let mut args = vec![
            "--name=a".to_string(),
            "--ioengine=http".into(),
            format!("--http_host=localhost:{}", self.port),
        ];
        args.extend(words.split(' ').map(str::to_string));
        fiord(self.server.directory.path(), &strings(&args)).unwrap()
    }
}

#[test]
fn objects_of_s3_and_swift_are_those_of_the_cluster() {
    needs!("radosgw" of "radosgw", "ceph-mon" of "ceph-mon", "ceph-osd" of "ceph-osd", "rbd" of "ceph-common");
    let gateway = Gateway::start();
    let token = gateway.token();
    let (head, _) = gateway.request("PUT /swift/v1/bucket", &format!("X-Auth-Token: {token}\r\n"));
    assert!(head.starts_with("HTTP/1.1 201"), "{head}");
    let swift = format!("--http_mode=swift --http_swift_auth_token={token}");
    let job = "--bs=16k --size=256k";
    for (protocol, name) in [(S3, "/bucket/a$b"), (&swift, "/swift/v1/bucket/c")] {
        let write = format!("{protocol} --filename={name} --rw=randwrite {job} --buffer_pattern=\"fiord!?\"");
        let ran = gateway.fiord(&write);
        assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (16, 262_144)), "{ran:?}");
    }
    let objects = gateway.cluster.ceph("rados", "-p default.rgw.buckets.data ls").unwrap();
    for name in ["a$b", "c"] {
        let first = objects.lines().find(|line| line.ends_with(&format!("_{name}_0_16384")));
        let first = first.unwrap_or_else(|| panic!("{objects}"));
        gateway.cluster.ceph("rados", &format!("-p default.rgw.buckets.data get {first} copy")).unwrap();
        let bytes = std::fs::read(gateway.cluster.monitor.directory.join("copy")).unwrap();
        assert!(bytes.iter().eq(b"fiord!?".iter().cycle().take(16384)), "{name}");
        let whole = objects.lines().filter(|line| line.contains(&format!("_{name}_"))).count();
        assert_eq!(whole, 16, "{objects}");
    }
    // Each protocol reads and verifies what the other has written.
    let verify = format!("{job} --verify=crc32c --verify_state_save=0");
    let (s3, swift) = ((S3, "/bucket/v"), (swift.as_str(), "/swift/v1/bucket/v"));
    for (writer, reader) in [(s3, swift), (swift, s3)] {
        let wrote = gateway
            .fiord(&format!("{} --filename={} --rw=randwrite --do_verify=0 {verify}", writer.0, writer.1));
        let read = gateway.fiord(&format!("{} --filename={} --rw=randread {verify}", reader.0, reader.1));
        assert_eq!((wrote.code, read.code), (Some(0), Some(0)), "{wrote:?} {read:?}");
        assert_eq!(counts(&read.job().unwrap())[0], (16, 262_144), "{read:?}");
    }
    for (protocol, name) in [(S3, "/bucket/a$b"), (swift.0, "/swift/v1/bucket/c")] {
        let ran = gateway.fiord(&format!("{protocol} --filename={name} --rw=trim {job}"));
        assert_eq!((ran.code, counts(&ran.job().unwrap())[2].0), (Some(0), 16), "{ran:?}");
    }
    let wrong = gateway.fiord(&format!("{S3} --http_s3_key=other --filename=/bucket/x --rw=write {job}"));
    assert!(wrong.code == Some(1) && wrong.job().unwrap()["error"] == 13, "{wrong:?}");
    let expired = gateway.fiord(&format!("--http_mode=swift --http_swift_auth_token=AUTH_rgwtk00 --filename=/swift/v1/bucket/x --rw=write {job}"));
    assert!(expired.code == Some(1) && expired.job().unwrap()["error"] == 13, "{expired:?}");
    let whole = gateway.fiord(&format!(
        "{S3} --http_object_mode=range --filename=/bucket/w --bs=256k --size=256k --rw=write"
    ));
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let ranges =
        gateway.fiord(&format!("{S3} --http_object_mode=range --filename=/bucket/w --rw=randread {job}"));
    assert_eq!((ranges.code, counts(&ranges.job().unwrap())[0]), (Some(0), (16, 262_144)), "{ranges:?}");
}
