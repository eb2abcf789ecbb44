# Sourced by the set-up scripts: installs packages of Debian or Ubuntu that are missing.

fail() {
    echo "setup: $*" >&2
    exit 1
}

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null || fail "run as root, or by hand: $*"
        sudo "$@"
    fi
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup: installing ${missing[*]}"
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Unpacks a package into FOLDER without installing it.
unpack_package() {
    local package=$1 folder=$2 files
    files=$(mktemp -d)
    (cd "$files" && fetch_package "$package" || { as_root apt-get update -q && fetch_package "$package"; })
    dpkg-deb -x "$files"/*.deb "$folder"
    rm -r "$files"
}

fetch_package() {
    apt-get download -q -q -o APT::Sandbox::User="$(id -un)" "$1"
}
