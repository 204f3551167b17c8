#!/bin/sh
# usage: scripts/draw-dashboards.sh RENDERER PROMETHEUS [DASHBOARD...]
#
# Draws the dashboards, or those that are named, into docs/img/dashboard-NAME.png
# from what the server at the address PROMETHEUS has of the last FROM (15m).
# Nothing of Grafana comes with the project: RENDERER is a program that takes
#
#   --dashboard FILE.json --prometheus URL --out DIR --from -15m --step 5s
#
# and leaves DIR/UID.png, UID being that of the dashboard. pngquant, where it is
# installed, makes the pictures a third of the size. For data: make demo, and a Prometheus with the job
# redis_keyhealth that scrapes it every 5 s for a while.
set -eu
cd "$(dirname "$0")/.."

renderer=${1:-} prometheus=${2:-}
if [ -z "$renderer" ] || [ -z "$prometheus" ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
shift 2
[ $# -gt 0 ] || set -- overview big-keys lifetimes naming cluster server scanner

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=
for name in "$@"; do
	# A renderer may object to a panel without data and draw it all the same.
	"$renderer" --dashboard "dashboards/$name.json" --prometheus "$prometheus" --out "$out" \
		--from "-${FROM:-15m}" --step 5s || failed="$failed $name"
	if command -v pngquant >/dev/null; then
		pngquant --force --ext .png 128 "$out/redis-keyhealth-$name.png"
	fi
	mv "$out/redis-keyhealth-$name.png" "docs/img/dashboard-$name.png"
done
[ -z "$failed" ] || echo "The renderer had objections to:$failed" >&2
