#!/usr/bin/env bash
# Packs what `make package-build` built into build/packages. Every package holds the same binaries, which run
# with glibc 2.31 or newer.
#
#   scripts/package.sh deb      isotherm_VERSION-1_amd64.deb
#   scripts/package.sh static   isotherm-VERSION-x86_64-linux.tar.gz, to unpack into /usr/local
#   scripts/package.sh image    isotherm-VERSION-oci.tar, an OCI archive; its layout is the folder image
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
umask 022

built=${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release
out=build/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# The same commit gives the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# Whoever builds the package maintains it, as in debchange(1).
maintainer="${DEBFULLNAME:-$(git log -1 --format=%cn)} <${DEBEMAIL:-$(git log -1 --format=%ce)}>"

# Lays all files below ROOT for an installation in PREFIX.
stage() {
    local root=$1 prefix=$2 zsh=$3
    local to=$root$prefix
    rm -rf "$root"
    install -D -m 755 -t "$to/bin" $built/isotherm
    install -D -m 644 -t "$to/lib" $built/libisotherm.so $built/libisotherm_alloc.so
    install -D -m 644 -t "$to/lib/isotherm" $built/libisotherm_recorder_plugin.so $built/libisotherm_lab_plugin.so
    strip --strip-unneeded "$to/bin/isotherm" "$to"/lib/*.so "$to"/lib/isotherm/*.so
    mkdir -p "$to/lib/systemd/system" "$to/share/bash-completion/completions" "$to/share/zsh/$zsh" \
        "$to/share/fish/vendor_completions.d"
    sed "s|/usr/bin|$prefix/bin|" packaging/isotherm.service >"$to/lib/systemd/system/isotherm.service"
    $built/isotherm man "$to/share/man/man1"
    gzip -9 -n "$to"/share/man/man1/*
    $built/isotherm completions bash >"$to/share/bash-completion/completions/isotherm"
    $built/isotherm completions zsh >"$to/share/zsh/$zsh/_isotherm"
    $built/isotherm completions fish >"$to/share/fish/vendor_completions.d/isotherm.fish"
    install -D -m 644 -t "$to/share/isotherm" packaging/grafana.json packaging/isotherm.toml
    install -D -m 644 -t "$to/share/doc/isotherm" LICENSE-MIT LICENSE-APACHE CHANGELOG.md
}

deb() {
    local root=$out/deb
    local share=$root/usr/share
    stage $root /usr vendor-completions
    install -D -m 644 "$share/isotherm/isotherm.toml" $root/etc/isotherm/isotherm.toml
    rm "$share/isotherm/isotherm.toml" "$share/doc/isotherm/LICENSE-APACHE"
    {
        echo "Isotherm is under the MIT license, which follows, or the Apache License 2.0, at your choice. That is in"
        echo "/usr/share/common-licenses/Apache-2.0."
        echo
        cat LICENSE-MIT
    } >"$share/doc/isotherm/copyright"
    rm "$share/doc/isotherm/LICENSE-MIT"
    mv "$share/doc/isotherm/CHANGELOG.md" "$share/doc/isotherm/changelog"
    {
        printf 'isotherm (%s-1) stable; urgency=medium\n\n' "$version"
        printf '  * Version %s: see changelog.gz.\n\n' "$version"
        printf ' -- %s  %s\n' "$maintainer" \
            "$(LC_ALL=C date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")"
    } >"$share/doc/isotherm/changelog.Debian"
    gzip -9 -n "$share"/doc/isotherm/changelog*
    install -D -m 755 -t $root/DEBIAN packaging/debian/{postinst,prerm,postrm}
    echo /etc/isotherm/isotherm.toml >$root/DEBIAN/conffiles
    sed "s/@VERSION@/$version/; s|@MAINTAINER@|$maintainer|; s/@SIZE@/$(du -sk --exclude DEBIAN $root | cut -f 1)/" packaging/debian/control \
        >$root/DEBIAN/control
    (cd $root && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum >DEBIAN/md5sums)
    dpkg-deb --build --root-owner-group $root "$out/isotherm_$version-1_amd64.deb"
}

static() {
    local name=isotherm-$version-x86_64-linux
    stage "$out/$name" "" site-functions
    sed -i 's|=/bin|=/usr/local/bin|' "$out/$name/lib/systemd/system/isotherm.service"
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C $out "$name" |
        gzip -9 -n >"$out/$name.tar.gz"
    echo "package: $out/$name.tar.gz"
}

# The image holds the static files and the C library of this machine's Debian, and nothing else: no shell.
image() {
    local root=$out/image-root layout=$out/image created
    created=$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
    stage $root /usr site-functions
    rm -r $root/usr/share/{man,bash-completion,zsh,fish} $root/usr/lib/systemd
    rm -rf $out/libc $layout
    mkdir -p $root/etc/isotherm $root/run $root/tmp
    unpack_package libc6 $out/libc
    cp -a $out/libc/lib $out/libc/lib64 $root
    install -D -m 644 -t $root/usr/share/doc/libc6 $out/libc/usr/share/doc/libc6/copyright
    cp packaging/isotherm.toml $root/etc/isotherm
    find $root -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
    umoci init --layout $layout
    umoci new --image "$layout:$version"
    umoci insert --rootless --history.created "$created" --image "$layout:$version" $root /
    umoci config --image "$layout:$version" --no-history --created "$created" --os linux --architecture amd64 \
        --config.entrypoint /usr/bin/isotherm --config.cmd daemon --config.user 0:0 \
        --config.label org.opencontainers.image.title=isotherm \
        --config.label "org.opencontainers.image.version=$version" \
        --config.label "org.opencontainers.image.licenses=MIT OR Apache-2.0"
    umoci gc --layout $layout
    rm -f "$out/isotherm-$version-oci.tar"
    skopeo copy --quiet "oci:$layout:$version" "oci-archive:$out/isotherm-$version-oci.tar:localhost/isotherm:$version"
    echo "package: $out/isotherm-$version-oci.tar"
}

case "${1:-}" in
deb | static | image)
    mkdir -p $out
    "$1"
    ;;
*)
    echo "package: expected deb, static or image, not '${1:-}'" >&2
    exit 2
    ;;
esac
