#!/usr/bin/env bash
# Tests the packages of build/packages in roots of Debian 11 and 12, which debootstrap makes in build/roots
# from the archive that this machine's apt uses. Needs root. Mounts, processes and network end with it.
#
#   scripts/package-test.sh [deb|static|image ...]
set -euo pipefail
cd "$(dirname "$0")/.."

packages=build/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

fail() {
    echo "package-test: $*" >&2
    exit 1
}

make_root() {
    local release=$1 archive
    shift
    [ ! -d "build/roots/$release" ] || return 0
    archive=$(apt-get indextargets --format '$(COMPONENT) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "main" && $2 == "Debian" { print $3; exit }')
    [ -n "$archive" ] || fail "this machine's apt sources hold no archive of Debian"
    echo "package-test: making build/roots/$release"
    mkdir -p build/roots
    rm -rf "build/roots/$release.part"
    debootstrap --variant=minbase "$@" "$release" "build/roots/$release.part" "$archive" >build/roots/log ||
        fail "debootstrap failed; see build/roots/log"
    mv "build/roots/$release.part" "build/roots/$release"
}

if [ -z "${PACKAGE_TEST_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || fail "run as root: it enters roots of Debian"
    make_root bookworm --include=systemd
    make_root bullseye
    export PACKAGE_TEST_INSIDE=1
    exec unshare --mount --pid --net --fork --kill-child --mount-proc "$0" "$@"
fi

# From here on in namespaces of its own.
ip link set lo up
work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
trap 'umount --lazy "$work"; rmdir "$work"' EXIT
# The program that daemons look at.
cp /bin/sleep "$work/measured"
"$work/measured" infinity &

# Copies a release's root to $root.
fresh_root() {
    root=$work/$1
    cp -a "build/roots/$1" "$root"
    mount_system
}

mount_system() {
    mkdir -p "$root"/{proc,sys,run}
    mount -t proc proc "$root/proc"
    mount --rbind --make-rslave /sys "$root/sys"
    mount -t tmpfs tmpfs "$root/run"
    mkdir "$root/run/isotherm"
}

configure() {
    printf 'shadow = true\n[[group]]\nname = "measured"\ncommand = "measured"\n' >"$root/etc/isotherm/isotherm.toml"
}

# Runs the daemon in $root with the service's capabilities until it has found the program, and ends it.
try_daemon() {
    local isotherm=$1 capabilities daemon page
    capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' packaging/isotherm.service | sed 's/ *CAP_/,+/g' | tr A-Z a-z)
    setpriv --bounding-set "-all,+sys_chroot$capabilities" chroot "$root" "$isotherm" daemon &
    daemon=$!
    for _ in {1..60}; do
        page=$(chroot "$root" "$isotherm" top --once 2>&1 || true)
        ! grep -q '^[0-9]* *measured  measured' <<<"$page" || break
        sleep 1
    done
    grep '^[0-9]* *measured  measured' <<<"$page" || fail "the daemon does not find the program: $page"
    exec 3<>/dev/tcp/127.0.0.1/9467
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    grep -F 'isotherm_programs{group="measured"} 1.0' <&3 || fail "/metrics does not show the program"
    exec 3>&-
    kill "$daemon"
    wait "$daemon" || fail "the daemon ended with status $?"
}

# Every file of $root but those that any package's installation changes, with its size.
files() {
    find "$root" -xdev -mindepth 1 -not -path "$root/var/lib/dpkg/*" -not -path "$root/var/log/*" \
        \( -type f -printf '%P %s\n' -o -printf '%P\n' \) | sort
}

binaries() {
    find "$root/$1/bin" "$root/$1/lib" -type f \( -name isotherm -o -name 'libisotherm*.so' \)
}

expect_libraries() {
    local linked
    linked=$(binaries "$1" | sed "s|^$root||" | xargs chroot "$root" ldd)
    ! grep 'not found' <<<"$linked" || fail "libraries are missing"
}

test_deb() {
    local warnings
    fresh_root bookworm
    files >"$work/before"
    cp "$packages/isotherm_${version}_amd64.deb" "$root/run/one.deb"
    chroot "$root" dpkg --install /run/one.deb
    [ -L "$root/etc/systemd/system/multi-user.target.wants/isotherm.service" ] || fail "the service is not enabled"
    warnings=$(chroot "$root" systemd-analyze verify --man=no isotherm.service 2>&1) || fail "the unit: $warnings"
    [ -z "$warnings" ] || fail "the unit: $warnings"
    [ -f "$root/usr/share/man/man1/isotherm-daemon.1.gz" ] || fail "the daemon has no manual page"
    chroot "$root" bash -n /usr/share/bash-completion/completions/isotherm
    chroot "$root" isotherm daemon --check
    expect_libraries usr
    configure
    try_daemon /usr/bin/isotherm

    # A newer package with another default: the operator's file stays.
    cp "$root/etc/isotherm/isotherm.toml" "$work/changed"
    dpkg-deb --raw-extract "$root/run/one.deb" "$work/two"
    sed -i "s/^Version: .*/Version: $version+2/" "$work/two/DEBIAN/control"
    echo '# newer' >>"$work/two/etc/isotherm/isotherm.toml"
    dpkg-deb --build --root-owner-group -Znone "$work/two" "$root/run/two.deb"
    chroot "$root" dpkg --install --force-confold /run/two.deb
    cmp "$work/changed" "$root/etc/isotherm/isotherm.toml" || fail "the upgrade changed the configuration"
    grep -q newer "$root/etc/isotherm/isotherm.toml.dpkg-dist" || fail "the newer default is not beside it"
    [ -L "$root/etc/systemd/system/multi-user.target.wants/isotherm.service" ] || fail "the upgrade disabled the service"
    try_daemon /usr/bin/isotherm

    chroot "$root" dpkg --remove isotherm
    cmp "$work/changed" "$root/etc/isotherm/isotherm.toml" || fail "the removal took the configuration"
    chroot "$root" dpkg --purge isotherm
    files | diff "$work/before" - || fail "the purge left something or took too much"
}

test_static() {
    local newest
    fresh_root bullseye
    tar -xzf "$packages/isotherm-$version-x86_64-linux.tar.gz" -C "$root/usr/local" --strip-components=1
    newest=$(binaries usr/local | xargs objdump -T | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    echo "newest symbol: $newest"
    [ "$(printf '%s\nGLIBC_2.31\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ] || fail "$newest; expected 2.31 at most"
    expect_libraries usr/local
    chroot "$root" isotherm --version
    chroot "$root" env LD_PRELOAD=/usr/local/lib/libisotherm_alloc.so ls / 2>&1 >/dev/null | grep . &&
        fail "the allocator does not load"
    install -D -m 644 "$root/usr/local/share/isotherm/isotherm.toml" "$root/etc/isotherm/isotherm.toml"
    configure
    try_daemon /usr/local/bin/isotherm
}

test_image() {
    local layout=oci:$packages/image:$version shown
    # The copy checks every digest.
    skopeo copy --quiet "oci-archive:$packages/isotherm-$version-oci.tar:localhost/isotherm:$version" "dir:$work/copy"
    shown=$(skopeo inspect --format '{{ .Os }}/{{ .Architecture }}' "$layout")
    [ "$shown" = linux/amd64 ] || fail "the image is for $shown"
    shown=$(skopeo inspect --config --format '{{ .Config.Entrypoint }} {{ .Config.Cmd }}' "$layout")
    [ "$shown" = '[/usr/bin/isotherm] [daemon]' ] || fail "the image runs $shown"
    umoci unpack --image "$packages/image:$version" "$work/bundle"
    root=$work/bundle/rootfs
    mount_system
    chroot "$root" /usr/bin/isotherm daemon --check
    configure
    try_daemon /usr/bin/isotherm
}

[ $# -gt 0 ] || set -- deb static image
for package in "$@"; do
    echo "== $package"
    "test_$package"
done
echo "package-test: $* passed in $SECONDS s"
