//! What the cases are made of: servers that a case starts for itself, and programs that are run against them.
//!
//! Invariant: a server has a directory and a port of its own, is reached by loopback alone, and is killed with everything
//! it started when its value is dropped, or when the test's thread ends in any other way.

pub mod ceph;
mod directory;
mod figures;
pub mod gluster;
mod server;

pub use directory::Directory;
pub use figures::{counts, number};
pub use fiord_programs::{Finished, Place, Resources, Running, fio, fiord, resources_after, start};
pub use server::{Server, eventually, free_port, installed, listens, listens_on, output_of};

/// A script that makes two authorities, `client` and `other`, and in `server` a server with a certificate of the first.
pub const CERTIFICATES: &str = "set -e
mkdir server client other
for name in client other; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$name \
        -addext basicConstraints=critical,CA:TRUE -keyout $name-key.pem -out $name/ca-cert.pem
done
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout server/server-key.pem \
    -out request.pem
printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > extensions
openssl x509 -req -in request.pem -CA client/ca-cert.pem -CAkey client-key.pem -CAcreateserial -days 2 \
    -extfile extensions -out server/server-cert.pem
cp client/ca-cert.pem server/ca-cert.pem
";

/// Ends a case, which then counts as skipped, if it was not started by `cargo x servers`, or a program is missing.
#[macro_export]
macro_rules! needs {
    ($($program:literal of $package:literal),+ $(,)?) => {
        if ::std::env::var_os("FIORD").is_none() {
            ::fiord_testing::skip!("FIORD names no binary; `cargo x servers` runs it");
        }
        $(::fiord_testing::need!($crate::installed($program, $package));)+
    };
}
