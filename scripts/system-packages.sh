#!/bin/sh
# Installs the system packages that some tests and the stronger sandboxes use, if they are missing.
# It needs apt, and root or a sudo that asks for no password; without these it says what to type.
#
#   --require   leave with exit code 1 if anything is still missing at the end
#   --print     install nothing; only say what to type

PATH=$PATH:/usr/sbin:/sbin
export DEBIAN_FRONTEND=noninteractive
require=no
install=yes
for option in "$@"; do
    case $option in
    --require) require=yes ;;
    --print) install=no ;;
    *)
        echo "✗ $option: not one of --require, --print" >&2
        exit 2
        ;;
    esac
done

here() { command -v "$1" >/dev/null 2>&1; }

missing_packages() {
    here chromium || echo chromium
    here bwrap || echo bubblewrap
    here go || echo golang-go
    here g++ || echo g++
    here cargo || echo cargo
    here javac || echo default-jdk-headless
    if ! here dockerd; then
        echo docker.io
    elif ! here docker && apt-cache show docker-cli >/dev/null 2>&1; then
        echo docker-cli # newer releases keep the client apart from the daemon
    fi
}

as_root=
can_install() {
    [ "$install" = yes ] && here apt-get || return 1
    [ "$(id -u)" = 0 ] && return 0
    here sudo && sudo -n true 2>/dev/null && as_root='sudo -n --preserve-env=DEBIAN_FRONTEND'
}

# shellcheck disable=SC2086 # as_root and the packages are lists of words
apt_install() {
    echo "→ installing $*"
    # The lists are fetched only when the ones on disk do not lead to the packages.
    $as_root apt-get install --yes --quiet --no-install-recommends "$@" >"$log" 2>&1 && return 0
    echo "→ fetching the package lists"
    $as_root apt-get update --quiet >"$log" 2>&1 &&
        $as_root apt-get install --yes --quiet --no-install-recommends "$@" >"$log" 2>&1 && return 0
    tail -n 20 "$log" >&2
    return 1
}

packages=$(missing_packages)
if [ -z "$packages" ]; then
    echo "✓ chromium, bubblewrap, docker.io, Go, g++, cargo and a JDK are here"
    exit 0
fi

if can_install; then
    log=$(mktemp) || exit 1
    trap 'rm -f "$log"' EXIT
    # shellcheck disable=SC2086
    apt_install $packages && packages=$(missing_packages) && [ "$packages" = docker-cli ] && apt_install docker-cli
    packages=$(missing_packages)
fi

for package in $packages; do
    if [ "$(id -u)" = 0 ]; then command="apt-get install $package"; else command="sudo apt-get install $package"; fi
    echo "$package is not here: $command"
done
if [ -n "$packages" ]; then
    [ "$require" = no ]
else
    echo "✓ chromium, bubblewrap, docker.io, Go, g++, cargo and a JDK are here"
fi
