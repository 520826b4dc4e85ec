//! Agents by the user's ssh: its configuration, keys, agents and jump hosts stay as they are.
//!
//! Invariant: one session a host, in which the program is looked for by its digest, received where it is missing, and
//! executed; so a server that allows one session is enough. Nothing that a host's name contains is read by a shell.

use std::ffi::OsString;
use std::fmt::Write;

use fiord_fleet::Host;

use crate::push::Push;

/// What the far end prints when the program has to be sent.
pub(crate) const WANTED: &[u8] = b"fiord: send the program\n";

/// How ssh is used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Whether the program is copied.
    pub push: Push,
    /// Whether a copy stays there.
    pub keeps_agent: bool,
    /// Whether the agent is root there, by `sudo`, which may not ask for a password.
    pub by_sudo: bool,
    /// How long it may take to connect, in seconds.
    pub connect_s: u64,
    /// SHA-256 of the program, in hexadecimal digits.
    pub digest: String,
    /// The length of the program, in bytes.
    pub length: usize,
    /// Where the program is here: often it is there as well.
    pub own_path: String,
}

/// The words that start ssh.
pub(crate) fn command(settings: &Settings, host: &Host) -> Vec<OsString> {
    let connect = format!("ConnectTimeout={}", settings.connect_s.max(1));
    let mut words: Vec<String> = vec!["ssh".into(), "-T".into()];
    for option in ["BatchMode=yes", "ServerAliveInterval=5", &connect] {
        words.extend(["-o".to_string(), option.to_string()]);
    }
    if let Some(port) = host.port {
        words.extend(["-p".to_string(), port.to_string()]);
    }
    if let Some(user) = &host.user {
        words.extend(["-l".to_string(), user.clone()]);
    }
    words.extend(["--".to_string(), host.address.clone(), script(settings, host)]);
    words.into_iter().map(OsString::from).collect()
}

/// What a shell there does. It is one word for ssh, and for the shell whatever the user has a line for `sh`.
pub(crate) fn script(settings: &Settings, host: &Host) -> String {
    let Settings { push, keeps_agent, by_sudo, digest, length, own_path, .. } = settings;
    let exec = if *by_sudo { "exec sudo -n" } else { "exec" };
    let mut script = String::new();
    if let Some(agent) = &host.agent {
        let _ = write!(script, "{exec} {} agent", quoted(&agent.to_string_lossy()));
        return format!("exec sh -c {}", quoted(&script));
    }
    let same = |path: &str| {
        format!("[ \"$(sha256sum <{path} 2>/dev/null)\" = \"{digest}  -\" ] && {exec} {path} agent")
    };
    let _ = writeln!(script, "cached=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/fiord/agent-{digest}\"");
    if *push != Push::Always {
        let _ = writeln!(script, "there=$(command -v fiord 2>/dev/null || echo /usr/bin/fiord)");
        for path in ["\"$there\"", &quoted(own_path), "\"$cached\""] {
            let _ = writeln!(script, "{}", same(path));
        }
    }
    if *push == Push::Never {
        let _ = writeln!(script, "echo 'fiord of this version is not there (--push=never)' >&2; exit 127");
        return format!("exec sh -c {}", quoted(&script));
    }
    let after = if *keeps_agent { "" } else { " --remove" };
    let wanted = String::from_utf8_lossy(WANTED).trim_end().to_string();
    let _ = write!(
        script,
        "umask 077\necho '{wanted}'\n\
         mkdir -p \"${{cached%/*}}\" 2>/dev/null && to=\"$cached.$$\" || to=$(mktemp) || exit 1\n\
         head -c {length} >\"$to\" && chmod 700 \"$to\" || {{ rm -f \"$to\"; exit 1; }}\n\
         [ \"$(sha256sum <\"$to\")\" = \"{digest}  -\" ] || {{ rm -f \"$to\"; \
         echo 'the program was damaged on its way' >&2; exit 1; }}\n"
    );
    if *keeps_agent {
        let _ = writeln!(script, "mv -f \"$to\" \"$cached\" 2>/dev/null && to=$cached");
    }
    // Where its directory is mounted noexec the shell says so, and the copy must not stay.
    let _ = writeln!(
        script,
        "\"$to\" version >/dev/null 2>&1 || {{ \"$to\" version >&2; rm -f \"$to\"; exit 126; }}"
    );
    let _ = write!(script, "{exec} \"$to\" agent{after}");
    format!("exec sh -c {}", quoted(&script))
}

/// A word that a shell reads as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_word_behind_the_options() {
        let host = Host { port: Some(2222), user: Some("bench".to_string()), ..Host::of("-oProxyCommand=x") };
        let words = command(&Settings { connect_s: 10, ..Settings::default() }, &host);
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let at = words.iter().position(|word| *word == "--").unwrap();
        assert_eq!((words[at + 1], words.len()), ("-oProxyCommand=x", at + 3));
        assert!(words.contains(&"ConnectTimeout=10") && words.contains(&"2222") && words.contains(&"bench"));
    }

    #[test]
    fn what_a_shell_must_not_read_is_quoted() {
        assert_eq!(quoted("a'b $c"), r"'a'\''b $c'");
        let root = Settings { by_sudo: true, ..Settings::default() };
        let direct = Host { agent: Some("/opt/fiord".into()), ..Host::default() };
        assert_eq!(script(&root, &direct), r"exec sh -c 'exec sudo -n '\''/opt/fiord'\'' agent'");
        assert_eq!(script(&root, &Host::default()).matches("exec sudo -n ").count(), 4);
        let never = script(&Settings { push: Push::Never, ..Settings::default() }, &Host::default());
        assert!(!never.contains("head -c") && never.contains("exit 127"), "{never}");
    }
}
