#!/usr/bin/env bash
# Fetches what the lab boots: Debian's kernel, QEMU and busybox, unpacked into a cache folder. Installs
# nothing and leaves apt's own configuration and state alone. Silent and quick if everything is there and
# unchanged.
#
#   scripts/lab-setup.sh            into $ISOTHERM_CACHE/lab, or ~/.cache/isotherm/lab
#   FORCE=1 scripts/lab-setup.sh    again, with the archive's newest versions
set -euo pipefail
cd "$(dirname "$0")/.."

# Modules that a guest may load; their dependencies are unpacked, too.
modules=(9p 9pnet_virtio overlay virtio_console cxl_acpi cxl_pci cxl_mem cxl_port dax_cxl kmem device_dax brd lz4 zstd)
packages=(qemu-system-x86 qemu-system-common qemu-system-data seabios busybox-static)

cache=${ISOTHERM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/isotherm}/lab

fail() {
    echo "lab-setup: $*" >&2
    exit 1
}

# Compares the checksums of the lab's files and the list of modules with those of the day of unpacking.
complete() {
    [ -z "${FORCE:-}" ] || return 1
    [ "$(cat "$cache/modules.list" 2>/dev/null)" = "${modules[*]}" ] || return 1
    [ -f "$cache/SHA256SUMS" ] || return 1
    (cd "$cache" && sha256sum --quiet --check SHA256SUMS) && return 0
    echo "lab-setup: files in $cache changed since they were unpacked; fetching them again" >&2
    return 1
}

# Finds the archive of this machine's own main packages, and its release.
derive_archive() {
    local line
    line=$(apt-get indextargets --format '$(CODENAME) $(RELEASE) $(COMPONENT) $(LABEL) $(CREATED_BY) $(REPO_URI)' |
        awk '($1 == "bookworm" || $1 == "trixie") && $2 !~ /-/ && $3 == "main" && $4 == "Debian" && $5 == "Packages"')
    line=${line%%$'\n'*}
    [ -n "$line" ] || fail "this machine's apt sources hold no Debian 12 (bookworm) or 13 (trixie); expected one of them"
    codename=${line%% *}
    archive=${line##* }
    # Debian 13 has QEMU 10 and kernel 6.12 in its own release.
    suite=$codename
    [ "$codename" != bookworm ] || suite=bookworm-backports
}

# Runs apt with its own lists, archives and sources; only reads what is installed.
own_apt() {
    local tool=$1
    shift
    "$tool" -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$work/state" -o Dir::State::status="$work/state/status" \
        -o Dir::Cache="$work/cache" -o Debug::NoLocking=true -o APT::Sandbox::User="$(id -un)" \
        -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

update_lists() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg options=
    [ ! -f $keyring ] || options="[signed-by=$keyring] "
    mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"
    cp /var/lib/dpkg/status "$work/state/status"
    {
        echo "deb $options$archive $codename main"
        [ "$suite" = "$codename" ] || echo "deb $options$archive $suite main"
    } >"$work/sources.list"
    own_apt apt-get update >"$work/apt.log" 2>&1 ||
        fail "apt-get update failed for $suite: $(grep -m 1 '^[EW]:' "$work/apt.log")"
}

# Returns the package that the suite's linux-image-amd64 depends on.
kernel_package() {
    own_apt apt-cache -t "$suite" show --no-all-versions linux-image-amd64 |
        sed -n 's/^Depends: .*\(linux-image-[0-9][^ ,]*\).*/\1/p'
}

# Downloads into $work/debs the named packages, and those libraries they depend on that this machine lacks.
download() {
    local kernel names
    kernel=$(kernel_package)
    [ -n "$kernel" ] || fail "linux-image-amd64 of $suite names no kernel package"
    names=$(own_apt apt-get -t "$suite" install --simulate --no-install-recommends "${packages[@]}" 2>"$work/apt.log" |
        awk '$1 == "Inst" && $2 ~ /^(lib|zlib)/ { print $2 }') ||
        fail "apt cannot resolve ${packages[*]}: $(head -n 1 "$work/apt.log")"
    mkdir -p "$work/debs"
    echo "lab-setup: fetching $kernel, ${packages[*]} and $(wc -w <<<"$names") libraries of $suite"
    # shellcheck disable=SC2086
    (cd "$work/debs" && own_apt apt-get -t "$suite" download "$kernel" "${packages[@]}" $names >"$work/apt.log" 2>&1) ||
        fail "apt-get download failed: $(grep -m 1 '^[EW]:' "$work/apt.log")"
}

unpack() {
    local deb
    for deb in "$work"/debs/*.deb; do
        case ${deb##*/} in
        linux-image-*) dpkg-deb -x "$deb" "$work/kernel-package" ;;
        *) dpkg-deb -x "$deb" "$work/root" ;;
        esac
    done
    (cd "$work/debs" && sha256sum -- *.deb) >"$work/packages.sha256"
}

# Extracts the ELF image of a bzImage: the boot protocol's header tells the place of its compressed payload.
extract_kernel() {
    local image sectors offset length
    image=$(echo "$work"/kernel-package/boot/vmlinuz-*)
    [ -f "$image" ] || fail "the kernel package holds no /boot/vmlinuz"
    word() { od -An -tu"$2" -j"$1" -N"$2" "$image" | tr -d ' '; }
    sectors=$(word $((0x1f1)) 1)
    offset=$(word $((0x248)) 4)
    length=$(word $((0x24c)) 4)
    mkdir -p "$work/kernel"
    # Four bytes with the unpacked size follow the payload; they belong to it for gzip only.
    [ "$(od -An -tx1 -j$(((sectors + 1) * 512 + offset)) -N2 "$image" | tr -d ' ')" = 1f8b ] || length=$((length - 4))
    dd if="$image" of="$work/payload" bs=1M iflag=skip_bytes,count_bytes skip=$(((sectors + 1) * 512 + offset)) \
        count=$length status=none
    case $(od -An -tx1 -N6 "$work/payload" | tr -d ' ') in
    fd377a585a00) xz -dc "$work/payload" >"$work/kernel/vmlinux" ;;
    28b52ffd*) unzstd_payload ;;
    1f8b*) gzip -dc "$work/payload" >"$work/kernel/vmlinux" ;;
    *) fail "$image: the payload is compressed in an unknown way" ;;
    esac
    [ "$(od -An -tx1 -N4 "$work/kernel/vmlinux" | tr -d ' ')" = 7f454c46 ] || fail "$image: the payload is not an ELF image"
    cp "${image/vmlinuz-/config-}" "$work/kernel/config"
    basename "$image" | sed 's/^vmlinuz-//' >"$work/kernel/version"
}

unzstd_payload() {
    command -v zstd >/dev/null || fail "zstd is missing: apt-get install zstd"
    zstd -dcq "$work/payload" >"$work/kernel/vmlinux"
}

# Unpacks a module after its dependencies, and adds a line with them to modules.dep.
add_module() {
    local name=${1//-/_} file depends
    [ ! -f "$work/kernel/modules/$name.ko" ] || return 0
    file=$(find "$work/kernel-package" -name "$name.ko*" -o -name "${name//_/-}.ko*")
    # A built-in module has no file.
    [ -n "$file" ] || return 0
    file=${file%%$'\n'*}
    case $file in
    *.xz) xz -dc "$file" ;;
    *.zst) zstd -dcq "$file" ;;
    *) cat "$file" ;;
    esac >"$work/kernel/modules/$name.ko"
    depends=$(tr '\0' '\n' <"$work/kernel/modules/$name.ko" | sed -n 's/^depends=//p')
    for dependency in ${depends//,/ }; do
        add_module "$dependency"
    done
    echo "$name: ${depends//,/ }" >>"$work/kernel/modules.dep"
}

# Prints the checksums of everything that the lab uses later.
sums() {
    (cd "$work" && sha256sum kernel/vmlinux kernel/modules/*.ko kernel/modules.dep root/usr/bin/qemu-system-x86_64 \
        root/bin/busybox root/usr/share/qemu/*.bin root/usr/share/seabios/*.bin)
}

install_into_cache() {
    local part
    for part in root kernel packages.sha256 modules.list SHA256SUMS; do
        rm -rf "${cache:?}/$part"
        mv "$work/$part" "$cache/$part"
    done
}

check_version() {
    local libraries version
    libraries=$(find "$work/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
    version=$(LD_LIBRARY_PATH=$libraries "$work/root/usr/bin/qemu-system-x86_64" --version 2>&1 | head -n 1) ||
        fail "QEMU does not start: $version"
    [[ $version == *"version 10."* ]] || fail "expected QEMU 10, found: $version"
    echo "lab-setup: ${version%% (*}, Linux $(cat "$work/kernel/version"), in $cache"
}

# If two start at once, the second waits and finds everything done.
mkdir -p "$cache"
exec 9>"$cache/setup.lock"
flock 9
! complete || exit 0
[ "$(uname -m)" = x86_64 ] || fail "this machine is $(uname -m); expected x86_64, as the lab's guest"
for tool in apt-get dpkg-deb xz flock sha256sum; do
    command -v $tool >/dev/null || fail "$tool is missing; the lab is set up on Debian 12 or 13"
done
work=$(mktemp -d "$cache/setup.XXXXXX")
trap 'rm -rf "$work"' EXIT
derive_archive
update_lists
download
unpack
extract_kernel
mkdir -p "$work/kernel/modules"
for module in "${modules[@]}"; do
    add_module "$module"
done
echo "${modules[*]}" >"$work/modules.list"
check_version
sums >"$work/SHA256SUMS"
install_into_cache
