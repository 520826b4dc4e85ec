{
  description = "Storage I/O tester that takes fio's job files and command lines";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      version = "@VERSION@";
      archives = {
        x86_64-linux = { processor = "x86_64"; sha256 = "@SHA256_x86_64@"; };
        aarch64-linux = { processor = "aarch64"; sha256 = "@SHA256_aarch64@"; };
      };
      package = system: { processor, sha256 }:
        let pkgs = nixpkgs.legacyPackages.${system}; in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "fiord";
          inherit version;
          src = pkgs.fetchurl {
            url = "https://github.com/fiord-io/fiord/releases/download/v${version}/fiord-${version}-${processor}-linux.tar.gz";
            inherit sha256;
          };
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The binary is static, and handed out as it was built.
          dontStrip = true;
          installPhase = ''
            install -Dm755 -t $out/bin fiord
            installManPage man/*.1
            installShellCompletion --bash completions/bash/fiord --fish completions/fish/fiord.fish --zsh completions/zsh/_fiord
          '';
          meta = {
            homepage = "https://github.com/fiord-io/fiord";
            license = [ nixpkgs.lib.licenses.mit nixpkgs.lib.licenses.asl20 ];
            mainProgram = "fiord";
            platforms = builtins.attrNames archives;
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
