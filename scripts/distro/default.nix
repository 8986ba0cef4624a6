# For Nix: nix-build scripts/distro. Untried: only the syntax was checked.
{
  pkgs ? import <nixpkgs> { },
}:
pkgs.stdenv.mkDerivation {
  pname = "refd";
  version = builtins.head (
    builtins.match ".*\nVERSION *:= ([0-9a-z.-]+)\n.*" (builtins.readFile ../../Makefile)
  );
  src = pkgs.lib.cleanSource ../..;
  nativeBuildInputs = with pkgs; [
    lowdown
    pkg-config
  ];
  buildInputs = with pkgs; [
    curl
    libevent
    libgit2
    libseccomp
    libsystemtap
    sqlite
    uthash
    zlib
  ];
  makeFlags = [
    "PREFIX=$(out)"
  ];
  buildFlags = [
    "all"
    "libgit2"
    "deliver"
  ];
  installTargets = [
    "install"
    "install-libgit2"
    "install-deliver"
  ];
  meta = {
    description = "Ref store daemon for Git servers";
    license = pkgs.lib.licenses.isc;
    platforms = pkgs.lib.platforms.linux;
  };
}
