#!/bin/sh
# usage: scripts/install-tools.sh PROGRAM...
#
# Sees to it that programs are on PATH which the tests, the demonstration or CI
# run: redis-server, promtool, amtool, valgrind, gcc, make. Does nothing if they are. On Debian and
# Ubuntu it installs them; elsewhere, or without the rights to do so, it says
# what to install and exits with 1.
set -eu

# packages MANAGER PROGRAM names the packages that bring a program.
packages() {
	case $1/$2 in
	apt/redis-server) echo redis-server redis-tools ;;
	*/redis-server) echo redis ;;
	dnf/promtool) echo golang-github-prometheus ;;
	*/promtool) echo prometheus ;;
	apt/amtool) echo prometheus-alertmanager ;;
	dnf/amtool) echo golang-github-prometheus-alertmanager ;;
	*/amtool) echo alertmanager ;;
	*/systemd-analyze) echo systemd ;;
	apt/gcc) echo gcc libc6-dev ;;
	apk/gcc) echo gcc musl-dev ;;
	*/gcc | */make | */buildah | */valgrind) echo "$2" ;;
	*) return 1 ;;
	esac
}

# all_packages MANAGER names those of all that is missing.
all_packages() {
	for program in $missing; do printf '%s ' "$(packages "$1" "$program")"; done
}

find_missing() {
	missing=
	for program in "$@"; do
		command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
	done
}

give_up() {
	cat >&2 <<-END
		$1. Missing:$missing. Install them by hand and try again:
		  Debian, Ubuntu:  apt-get install --no-install-recommends $(all_packages apt)
		  macOS:           brew install $(all_packages brew)
		  Fedora:          dnf install $(all_packages dnf)
		  Alpine:          apk add $(all_packages apk)
	END
	exit 1
}

# Without a terminal nobody answers questions; and another apt-get, of the
# machine's own updates for one, may hold the lock for a while.
apt_get() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install_missing() {
	# shellcheck disable=SC2046 # one word a package
	apt_get install --no-install-recommends $(all_packages apt)
}

# know_packages tells whether the package lists have all of them.
know_packages() {
	# shellcheck disable=SC2046
	apt-get -qq --simulate install $(all_packages apt) >/dev/null 2>&1
}

for program in "$@"; do
	packages apt "$program" >/dev/null || {
		echo "$0: does not know the program $program" >&2
		exit 2
	}
done
find_missing "$@"
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null 2>&1 || give_up "There is no apt-get here"
as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null 2>&1 || give_up "Only root may install packages"
	as_root=sudo
fi

# Where an init system runs, these packages start their service, as they do for
# whoever installs them: whether it stays is for the machine's owner to decide.
echo "Installing with apt-get: $(all_packages apt)"
if ! { know_packages && install_missing; }; then
	echo "The package lists are missing or old: updating them"
	{ apt_get update && install_missing; } || give_up "apt-get failed"
fi
find_missing "$@"
[ -z "$missing" ] || give_up "The packages are installed, but not all programs are on PATH"
