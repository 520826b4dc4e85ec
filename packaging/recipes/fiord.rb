class Fiord < Formula
  desc "Storage I/O tester that takes fio's job files and command lines"
  homepage "https://github.com/fiord-io/fiord"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_intel do
    url "https://github.com/fiord-io/fiord/releases/download/v@VERSION@/fiord-@VERSION@-x86_64-linux.tar.gz"
    sha256 "@SHA256_x86_64@"
  end

  on_arm do
    url "https://github.com/fiord-io/fiord/releases/download/v@VERSION@/fiord-@VERSION@-aarch64-linux.tar.gz"
    sha256 "@SHA256_aarch64@"
  end

  def install
    bin.install "fiord"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/bash/fiord"
    fish_completion.install "completions/fish/fiord.fish"
    zsh_completion.install "completions/zsh/_fiord"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/fiord version")
  end
end
