//! One host as typed: `user@host:port`.
//!
//! Invariant: no part of it can be taken for an option of the program that reaches the host.

use super::pattern::Mistake;

/// The parts of a host as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

/// `user@host:port`, `host`, `[::1]:22`, `::1`; in fio's lists also `ip:host,port`, `ip6:host,port`,
/// `sock:path`.
pub(super) fn read(text: &str, is_fios: bool) -> Result<Address, Mistake> {
    if is_fios && let Some(path) = text.strip_prefix("sock:") {
        check_socket(path)?;
        return Ok(Address { host: text.to_string(), ..Address::default() });
    }
    let mut at = 0;
    let mut rest = text;
    if is_fios
        && let Some(prefix) = ["ip6:", "ip4:", "ip:"].into_iter().find(|prefix| rest.starts_with(prefix))
    {
        at = prefix.len();
        rest = &rest[at..];
    }
    let user = rest.rsplit_once('@').map(|(user, host)| {
        at += user.len() + 1;
        rest = host;
        user.to_string()
    });
    let (host, port) = match rest.rsplit_once(',').filter(|_| is_fios) {
        Some((host, port)) => (host, Some(port)),
        None => of_port(rest),
    };
    let wrong_port = |port: &str| {
        let message = format!("\"{port}\" is not a port");
        Mistake::new(at + rest.len() - port.len(), message, "ports are numbers from 1 to 65535")
    };
    let port = match port {
        Some(port) => {
            Some(port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(|| wrong_port(port))?)
        }
        None => None,
    };
    check(user.as_deref(), host, at)?;
    Ok(Address { user, host: host.to_string(), port })
}

/// The host and its port, if it has one: more than one colon without brackets is an address of IPv6.
fn of_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

/// What may stand in a name: nothing that a shell, a terminal or a list would read as more than a letter.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "._-:%".contains(letter)
}

/// The path of a socket is held to it too: a program that reaches hosts gets it in place of a name.
fn check_socket(path: &str) -> Result<(), Mistake> {
    if !path.is_empty() && path.chars().all(|letter| is_plain(letter) || "/,+=@".contains(letter)) {
        return Ok(());
    }
    let message = format!("\"{}\" is not the path of a socket", fiord_options::shown::visible(path));
    Err(Mistake::new("sock:".len(), message, "name the socket by letters, digits and ._-:%/,+=@ alone"))
}

fn check(user: Option<&str>, host: &str, at: usize) -> Result<(), Mistake> {
    let remedy = "write a name or an address, such as db1, user@db1 or db1:22";
    if host.is_empty() {
        return Err(Mistake::new(at, "no host", remedy));
    }
    for (what, text) in [("host", host), ("user", user.unwrap_or("x"))] {
        if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
            let message = format!("\"{}\" is not the name of a {what}", fiord_options::shown::visible(text));
            return Err(Mistake::new(if what == "host" { at } else { 0 }, message, remedy));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_ports_stand_around_the_host() {
        let shown = |text: &str, is_fios| {
            let Address { user, host, port } = read(text, is_fios).unwrap();
            format!(
                "{} {host} {}",
                user.unwrap_or_default(),
                port.map_or_else(String::new, |port| port.to_string())
            )
        };
        for (text, is_fios, expected) in [
            ("db1", false, " db1 "),
            ("me@db1:2222", false, "me db1 2222"),
            ("[::1]:22", false, " ::1 22"),
            ("me@fe80::1%eth0", false, "me fe80::1%eth0 "),
            ("ip:127.0.0.1,8765", true, " 127.0.0.1 8765"),
            ("ip6:::1,8770", true, " ::1 8770"),
            ("127.0.0.1,8765", true, " 127.0.0.1 8765"),
            ("sock:/run/a@b,1.sock", true, " sock:/run/a@b,1.sock "),
        ] {
            assert_eq!(shown(text, is_fios), expected, "{text}");
        }
    }

    #[test]
    fn what_could_be_an_option_or_a_command_is_refused() {
        for text in [
            "-oProxyCommand=x",
            "a@-b",
            "-u@b",
            "a b",
            "a;b",
            "$(x)",
            "",
            "me@",
            "@db",
            "db:0",
            "db:x",
            "db:70000",
            "db\x1b[2J",
        ] {
            let mistake = read(text, false).unwrap_err();
            assert!(mistake.at <= text.len() && !mistake.message.contains('\x1b'), "{text:?} {mistake:?}");
        }
        for text in ["sock:", "sock:/x;rm", "sock:/x y", "sock:$(x)", "sock:/x\x1b[2J"] {
            let mistake = read(text, true).unwrap_err();
            assert!(mistake.at == 5 && !mistake.message.contains('\x1b'), "{text:?} {mistake:?}");
        }
    }
}
