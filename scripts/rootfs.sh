#!/bin/sh
# usage: scripts/rootfs.sh DIRECTORY
#
# Lays out all files of the container image: the exporter, for Linux, and the
# certificates that rediss:// is verified with, which are those that this machine
# trusts. GOARCH, if set, says for which processor.
set -eu
root=$1
# The image's user is neither the owner nor in the group.
umask 022

rm -rf "$root"
mkdir -p "$root/etc/ssl/certs"
GOOS=linux ${MAKE:-make} -s build BINARY="$root/redis_keyhealth_exporter"

# The first is where Go looks first, everywhere.
bundle=etc/ssl/certs/ca-certificates.crt
for file in /$bundle /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
	if [ -s "$file" ]; then
		cat "$file" >"$root/$bundle"
		exit
	fi
done
echo "$0: this machine has no CA certificates; install the package ca-certificates" >&2
exit 1
