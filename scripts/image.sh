#!/bin/sh
# usage: scripts/image.sh IMAGE ROOTFS [ARGUMENT=VALUE...]
#
# Makes a container image of what scripts/rootfs.sh has laid out, with the first
# engine of docker, podman and buildah that works: docker's command line may be
# there without its daemon. ENGINE, if set, names the one to take. The arguments
# are those of the Dockerfile.
set -eu
image=$1 rootfs=$2
shift 2

for engine in ${ENGINE:-docker podman buildah} ''; do
	if [ -z "$engine" ]; then
		echo "$0: none of ${ENGINE:-docker, podman and buildah} works here" >&2
		exit 1
	fi
	if "$engine" info >/dev/null 2>&1; then break; fi
done

# Replaces the list ARGUMENT=VALUE... by --build-arg ARGUMENT=VALUE...
for argument in "$@"; do
	shift
	set -- "$@" --build-arg "$argument"
done
echo "Building $image with $engine"
exec "$engine" build --platform "linux/$(go env GOARCH)" --target prebuilt -f Dockerfile -t "$image" "$@" "$rootfs"
