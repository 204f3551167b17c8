#!/bin/sh
# usage: VERSION=V SOURCE_DATE_EPOCH=SECONDS scripts/release.sh DIRECTORY OS/ARCH...
#
# Compiles the exporter for each platform and packs it, with README and licence,
# into DIRECTORY/redis_keyhealth_exporter-V.OS-ARCH.tar.gz; SHA256SUMS is written
# last. The same commit, branch and version of Go make the same bytes. Needs GNU
# tar, which macOS calls gtar.
set -eu
dist=$1
shift
name=redis_keyhealth_exporter
tar=$(command -v gtar || echo tar)
"$tar" --version | grep -q 'GNU tar' || { echo "$0: install GNU tar" >&2; exit 1; }
umask 022

mkdir -p "$dist"
# Of another version, or of a run that failed.
rm -f "$dist/SHA256SUMS" "$dist/$name"-*.tar.gz
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 1' HUP INT TERM

for platform in "$@"; do
	os=${platform%/*} arch=${platform#*/}
	folder=$name-$VERSION.$os-$arch
	GOOS=$os GOARCH=$arch ${MAKE:-make} -s build BINARY="$stage/$folder/$name"
	cp README.md LICENSE "$stage/$folder/"
	# Nothing of this machine goes in: no order of a folder, owner, mode or time.
	"$tar" --create --file "$stage/$folder.tar" --directory "$stage" --format=ustar --sort=name \
		--owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" "$folder"
	gzip -9n <"$stage/$folder.tar" >"$dist/$folder.tar.gz"
	echo "$dist/$folder.tar.gz"
done
cd "$dist"
sha256sum "$name"-*.tar.gz >"$stage/SHA256SUMS"
mv "$stage/SHA256SUMS" SHA256SUMS
