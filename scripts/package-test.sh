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
cgroups=
finish() {
    { kill -KILL $(jobs -p) && wait; } 2>/dev/null || true
    [ -z "$cgroups" ] || find "$cgroups" -depth -type d -exec rmdir {} \;
    umount --lazy "$work"
    rmdir "$work"
}
trap finish EXIT
cp /bin/sleep "$work/measured"
"$work/measured" infinity &
measured=$!

# Mounts what a daemon reads; `enter` runs a command in $root from then on.
mount_system() {
    mkdir -p "$root"/{proc,sys,run}
    mount -t proc proc "$root/proc"
    mount --rbind --make-rslave /sys "$root/sys"
    mount -t tmpfs tmpfs "$root/run"
    mkdir "$root/run/isotherm"
    enter=(chroot "$root")
}

# As the first process of new namespaces: makes $root its root and becomes systemd.
become_systemd() {
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs tmpfs run
    mount -t tmpfs tmpfs tmp
    mount -t tmpfs tmpfs dev
    cp -a /dev/{null,zero,full,random,urandom,tty} dev
    mkdir dev/shm run/old
    pivot_root . run/old
    umount --lazy /run/old
    exec env -i container=test /lib/systemd/systemd
}

# Boots the Debian in $root; `enter` runs a command in it from then on.
boot() {
    local first
    export root
    export -f become_systemd
    unshare --mount --pid --uts --ipc --cgroup --fork --kill-child bash -ec become_systemd </dev/null >"$work/boot" 2>&1 &
    for _ in {1..60}; do
        first=$(cat "/proc/$!/task/$!/children")
        enter=(nsenter --target "${first% }" --mount --pid --uts --ipc --cgroup --root --wd)
        [ -z "$first" ] || [ "$("${enter[@]}" systemctl is-system-running 2>/dev/null)" != running ] || return 0
        sleep 1
    done
    fail "systemd does not come up in $root: $(cat "$work/boot") $("${enter[@]}" systemctl --failed 2>&1)"
}

groups=$'shadow = true\n[[group]]\nname = "measured"\ncommand = "measured"'

# Waits until the daemon has found the program in a group, and reads its metrics.
ask_daemon() {
    local isotherm=$1 group=${2:-measured} page
    for _ in {1..60}; do
        page=$("${enter[@]}" "$isotherm" top --once 2>&1 || true)
        ! grep -q "^[0-9]* *$group  *measured" <<<"$page" || break
        sleep 1
    done
    grep "^[0-9]* *$group  *measured" <<<"$page" || fail "the daemon does not find the program: $page"
    exec 3<>/dev/tcp/127.0.0.1/9467
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    grep -F "isotherm_programs{group=\"$group\"} 1.0" <&3 || fail "/metrics does not show the program"
    exec 3>&-
}

# Runs the daemon in $root with the service's capabilities, and ends it. What stands before its path, as
# `unshare`, starts it.
try_daemon() {
    local isotherm=$1 group=$2 capabilities daemon
    shift 2
    capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' packaging/isotherm.service | sed 's/ *CAP_/,+/g' | tr A-Z a-z)
    "$@" setpriv --bounding-set "-all,+sys_chroot$capabilities" "${enter[@]}" "$isotherm" daemon &
    daemon=$!
    ask_daemon "$isotherm" "$group"
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
    linked=$(binaries "$1" | sed "s|^$root||" | xargs "${enter[@]}" ldd)
    ! grep 'not found' <<<"$linked" || fail "libraries are missing"
}

# Fails unless the service runs and starts with the machine; prints its process.
expect_service() {
    [ "$("${enter[@]}" systemctl is-enabled isotherm)" = enabled ] || fail "the service is not enabled $1"
    for _ in {1..20}; do
        [ "$("${enter[@]}" systemctl is-active isotherm)" != active ] || break
        sleep 0.5
    done
    "${enter[@]}" systemctl status --no-pager isotherm >"$work/status" || fail "$1: $(cat "$work/status")"
    "${enter[@]}" systemctl show --property MainPID isotherm
}

test_deb() {
    local text first
    root=$work/bookworm
    cp -a build/roots/bookworm "$root"
    boot
    files >"$work/before"
    "${enter[@]}" sh -c 'cat >/run/one.deb' <"$packages/isotherm_$version-1_amd64.deb"
    "${enter[@]}" dpkg --install /run/one.deb
    expect_service "after the installation"
    text=$("${enter[@]}" systemd-analyze verify --man=no /lib/systemd/system/isotherm.service 2>&1) || fail "the unit: $text"
    [ -z "$text" ] || fail "the unit: $text"
    [ -f "$root/usr/share/man/man1/isotherm-daemon.1.gz" ] || fail "the daemon has no manual page"
    "${enter[@]}" bash -n /usr/share/bash-completion/completions/isotherm
    "${enter[@]}" isotherm daemon --check
    expect_libraries usr

    echo "$groups" >"$root/etc/isotherm/isotherm.toml"
    "${enter[@]}" cp /bin/sleep /run/measured
    "${enter[@]}" /run/measured infinity &
    "${enter[@]}" systemctl reload isotherm
    ask_daemon isotherm
    first=$(expect_service "after a reload")
    "${enter[@]}" systemctl kill --signal KILL isotherm
    sleep 2
    [ "$(expect_service "after a kill")" != "$first" ] || fail "the daemon was not killed"
    ask_daemon isotherm

    # A newer package with another default: the operator's file stays.
    dpkg-deb --raw-extract "$packages/isotherm_$version-1_amd64.deb" "$work/two"
    sed -i "s/^Version: .*/Version: $version-2/" "$work/two/DEBIAN/control"
    echo '# newer' >>"$work/two/etc/isotherm/isotherm.toml"
    dpkg-deb --build --root-owner-group -Znone "$work/two" "$work/two.deb"
    "${enter[@]}" sh -c 'cat >/run/two.deb' <"$work/two.deb"
    first=$(expect_service "before the upgrade")
    "${enter[@]}" dpkg --install --force-confold /run/two.deb
    [ "$(expect_service "after the upgrade")" != "$first" ] || fail "the upgrade left the old daemon running"
    [ "$(cat "$root/etc/isotherm/isotherm.toml")" = "$groups" ] || fail "the upgrade changed the configuration"
    grep -q newer "$root/etc/isotherm/isotherm.toml.dpkg-dist" || fail "the newer default is not beside it"
    ask_daemon isotherm

    # The upgrade ended a daemon, which wrote its log.
    "${enter[@]}" isotherm replay /var/lib/isotherm --top --once | grep -q measured || fail "the log does not show the program"

    "${enter[@]}" dpkg --remove isotherm
    [ "$(cat "$root/etc/isotherm/isotherm.toml")" = "$groups" ] || fail "the removal took the configuration"
    "${enter[@]}" systemctl is-active isotherm && fail "the removed daemon runs"
    "${enter[@]}" dpkg --purge isotherm
    files | diff "$work/before" - || fail "the purge left something or took too much"
    "${enter[@]}" sh -c 'kill $(pidof measured)'
}

test_static() {
    local newest
    root=$work/bullseye
    cp -a build/roots/bullseye "$root"
    mount_system
    tar -xzf "$packages/isotherm-$version-x86_64-linux.tar.gz" -C "$root/usr/local" --strip-components=1
    newest=$(binaries usr/local | xargs objdump -T | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    echo "newest symbol: $newest"
    [ "$(printf '%s\nGLIBC_2.31\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ] || fail "$newest; expected 2.31 at most"
    expect_libraries usr/local
    "${enter[@]}" isotherm --version
    "${enter[@]}" env LD_PRELOAD=/usr/local/lib/libisotherm_alloc.so ls / 2>&1 >/dev/null | grep . &&
        fail "the allocator does not load"
    install -D -m 644 "$root/usr/local/share/isotherm/isotherm.toml" "$root/etc/isotherm/isotherm.toml"
    echo "$groups" >"$root/etc/isotherm/isotherm.toml"
    try_daemon /usr/local/bin/isotherm measured
}

test_image() {
    local layout=oci:$packages/image:$version shown pod own
    # The copy checks every digest.
    skopeo copy --quiet "oci-archive:$packages/isotherm-$version-oci.tar:localhost/isotherm:$version" "dir:$work/copy"
    shown=$(skopeo inspect --format '{{ .Os }}/{{ .Architecture }}' "$layout")
    [ "$shown" = linux/amd64 ] || fail "the image is for $shown"
    shown=$(skopeo inspect --config --format '{{ .Config.Entrypoint }} {{ .Config.Cmd }}' "$layout")
    [ "$shown" = '[/usr/bin/isotherm] [daemon]' ] || fail "the image runs $shown"
    umoci unpack --image "$packages/image:$version" "$work/bundle"
    root=$work/bundle/rootfs
    mount_system
    "${enter[@]}" /usr/bin/isotherm daemon --check

    # As in a pod: the manifest's configuration, and a cgroup namespace of its own beside the program's pod.
    {
        echo 'shadow = true'
        sed -n '/isotherm.toml: |/,/^---/s/^    //p' packaging/kubernetes.yaml
    } >"$root/etc/isotherm/isotherm.toml"
    mkdir "$work/cgroup"
    mount -t cgroup2 cgroup2 "$work/cgroup"
    cgroups=$(mktemp -d "$work/cgroup/isotherm-test.XXXXXX")
    pod=$cgroups/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_a.slice
    own=$cgroups/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2_b.slice
    mkdir -p "$pod" "$own"
    echo "$measured" >"$pod/cgroup.procs"
    try_daemon /usr/bin/isotherm burstable in_pod "$own"
}

# Becomes a command in a cgroup, with a cgroup namespace that begins there.
in_pod() {
    echo "$BASHPID" >"$1/cgroup.procs"
    shift
    exec unshare --cgroup "$@"
}

[ $# -gt 0 ] || set -- deb static image
for package in "$@"; do
    echo "== $package"
    "test_$package"
done
echo "package-test: $* passed in $SECONDS s"
