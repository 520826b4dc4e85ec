#!/bin/sh
# Installs fiord: the static binary, its manual pages and completions, for one user or for all. POSIX sh.
#
#     sh install.sh [--prefix DIRECTORY] [--version X.Y.Z]
#
# Invariant: nothing below the prefix changes before SHA256SUMS is signed by SIGNER (if one is known), the archive has the
# checksum that it says, and its binary runs here; the binary is put in place last, by a rename.
set -eu

RELEASES=https://github.com/fiord-io/fiord/releases

# The public key of whoever signs SHA256SUMS, without its first and last line; `cargo x dist --sign` puts it here.
SIGNER=${FIORD_SIGNER:-}

USAGE="sh install.sh [--prefix DIRECTORY] [--version X.Y.Z]

Downloads the newest release of fiord, or that VERSION, and installs it below DIRECTORY: /usr/local for root, else
~/.local. FIORD_BASE_URL names another place that has SHA256SUMS and the archive, FIORD_SIGNER another
public key that the former is signed by."

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# download URL FILE
download() {
    if has curl; then
        curl --fail --silent --show-error --location --output "$2" "$1" || fail "$1: cannot be downloaded"
    elif has wget; then
        wget -q -O "$2" "$1" || fail "$1: cannot be downloaded"
    else
        fail "needs curl or wget; install one of them"
    fi
}

# The digest of FILE.
sha256_of() {
    if has sha256sum; then
        sha256sum <"$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 <"$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
    else
        fail "needs sha256sum, shasum or openssl to check the download; install one of them"
    fi
}

# SHA256SUMS is signed by the signer, if one is known.
check_signature() {
    [ -n "$SIGNER" ] || return 0
    has openssl || fail "needs openssl to check who signed the download; install it"
    download "$base/SHA256SUMS.sig" "$work/SHA256SUMS.sig"
    printf '%s\n' '-----BEGIN PUBLIC KEY-----' "$SIGNER" '-----END PUBLIC KEY-----' | fold -w 64 >"$work/signer.pem"
    openssl dgst -sha256 -verify "$work/signer.pem" -signature "$work/SHA256SUMS.sig" "$work/SHA256SUMS" >/dev/null 2>&1 ||
        fail "$base/SHA256SUMS: is not signed by $SIGNER; nothing was installed, and what is there may be forged"
}

architecture() {
    [ "$(uname -s)" = Linux ] || fail "fiord runs on Linux alone, and this is $(uname -s)"
    case $(uname -m) in
        x86_64 | amd64) echo x86_64 ;;
        aarch64 | arm64) echo aarch64 ;;
        *) fail "no binary is released for $(uname -m); build it: cargo install --locked fiord" ;;
    esac
}

# install_file FILE DIRECTORY MODE: under its name, by a rename.
install_file() {
    mkdir -p "$2" || fail "$2: cannot be made; choose another with --prefix"
    partial=$2/.${1##*/}.$$
    cp "$1" "$partial" && chmod "$3" "$partial" && mv -f "$partial" "$2/${1##*/}" && partial= ||
        fail "$2: cannot be written; choose another with --prefix"
}

clean_up() {
    [ -z "${partial:-}" ] || rm -f "$partial"
    [ -z "${work:-}" ] || rm -rf "$work"
}

main() {
    prefix= base=${FIORD_BASE_URL:-$RELEASES/latest/download}
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) printf '%s\n' "$USAGE"; exit 0 ;;
            --prefix=*) prefix=${1#*=} ;;
            --version=*) base=${FIORD_BASE_URL:-$RELEASES/download/v${1#*=}} ;;
            --prefix | --version)
                [ $# -gt 1 ] || fail "$1: needs a value"
                [ "$1" = --prefix ] && prefix=$2 || base=${FIORD_BASE_URL:-$RELEASES/download/v$2}
                shift
                ;;
            *) fail "$1: unknown argument; usage: ${USAGE%%
*}" ;;
        esac
        shift
    done
    if [ -z "$prefix" ]; then
        if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?is not set: use --prefix}/.local; fi
    fi
    machine=$(architecture)
    has tar || fail "needs tar; install it"
    has gzip || fail "needs gzip; install it"

    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    work=$(mktemp -d) || fail "no temporary directory; set TMPDIR to one that can be written"
    download "$base/SHA256SUMS" "$work/SHA256SUMS"
    check_signature
    line=$(grep "  fiord-[0-9][0-9A-Za-z.+-]*-$machine-linux\.tar\.gz\$" "$work/SHA256SUMS") ||
        fail "$base/SHA256SUMS: has no archive for $machine"
    [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "$base/SHA256SUMS: has several archives for $machine"
    archive=${line##* }
    download "$base/$archive" "$work/archive.tar.gz"
    found=$(sha256_of "$work/archive.tar.gz")
    [ "$found" = "${line%% *}" ] ||
        fail "$base/$archive: its SHA-256 is $found, not ${line%% *} as SHA256SUMS says; nothing was installed, try again"
    gzip -dc "$work/archive.tar.gz" | tar -xf - -C "$work" || fail "$archive: cannot be unpacked"
    tree=$work/${archive%.tar.gz}
    said=$("$tree/fiord" version) || fail "$archive: its binary does not run here (is $work on a noexec mount? set TMPDIR)"

    for page in "$tree"/man/*.1; do
        [ ! -f "$page" ] || install_file "$page" "$prefix/share/man/man1" 644
    done
    [ ! -f "$tree/completions/bash/fiord" ] ||
        install_file "$tree/completions/bash/fiord" "$prefix/share/bash-completion/completions" 644
    [ ! -f "$tree/completions/zsh/_fiord" ] ||
        install_file "$tree/completions/zsh/_fiord" "$prefix/share/zsh/site-functions" 644
    [ ! -f "$tree/completions/fish/fiord.fish" ] ||
        install_file "$tree/completions/fish/fiord.fish" "$prefix/share/fish/vendor_completions.d" 644
    install_file "$tree/fiord" "$prefix/bin" 755
    printf 'installed %s as %s\n' "${said%%
*}" "$prefix/bin/fiord"
    case :$PATH: in
        *:"$prefix/bin":*) ;;
        *) printf 'PATH does not have it: add %s to PATH\n' "$prefix/bin" ;;
    esac
}

# At the end, so that a download of this script that was cut off does nothing.
main "$@"
