#!/usr/bin/env bash
# Makes and then edits fleets of composite resources, each several times on a control plane of its own, and prints medians:
# how long it takes until all is there, with Kausality, without, and with a peer that does nothing in the same places.
#
#   make fleet [SIZES='40 100 300'] [TIMES=3]
#
# The numbers are those that test/fleet logs; its logs are kept in .local/fleet. It takes some ten minutes for each time and size.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

sizes=${SIZES:-40 100 300}
times=${TIMES:-3}
dir=${LOCAL:-.local}/fleet
mkdir -p "$dir"

for size in $sizes; do
	: >"$dir/$size.log"
	for _ in $(seq "$times"); do
		KAUSALITY_XRS=$size KAUSALITY_PEER=1 "${GO:-go}" test ./test/fleet -tags stack -run '^TestAStormEnds$' -count=1 -v -timeout 60m \
			>>"$dir/$size.log" 2>&1 || echo "a fleet of $size failed: see $dir/$size.log" >&2
	done

	# A line of the log is: fleet of N made|changed without|peer|with: TIME s, CPU TIME s, CPU to the end TIME s.
	sed -nE 's/.*fleet of ([0-9]+) (made|changed) (without|peer|with): ([0-9.]+) s, CPU ([0-9.]+) s, CPU to the end ([0-9.]+) s/\2 \3 \4 \5 \6/p' \
		"$dir/$size.log" | awk -v size="$size" '
		function median(list, n, a, i, j, x) {
			n = split(list, a, " ")
			for (i = 2; i <= n; i++) { x = a[i] + 0; for (j = i - 1; j > 0 && a[j] + 0 > x; j--) a[j + 1] = a[j]; a[j + 1] = x }
			return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
		}
		{ for (i = 3; i <= 5; i++) all[$1, $2, i] = all[$1, $2, i] " " $i; runs[$1, $2]++ }
		END {
			split("made changed", done, " ")
			for (d = 1; d <= 2; d++) {
				for (i = 3; i <= 5; i++) {
					plain = median(all[done[d], "without", i]); peer = median(all[done[d], "peer", i]); with = median(all[done[d], "with", i])
					if (plain == 0 || peer == 0) { printf "%d XRs %s: not measured\n", size, done[d]; break }
					printf "%4d XRs %-7s %-14s without %6.1f s  peer %6.1f s  with %6.1f s  with/without %.2f  with/peer %.2f  (medians of %d)\n", \
						size, done[d], i == 3 ? "time" : i == 4 ? "CPU" : "CPU to the end", plain, peer, with, with / plain, with / peer, runs[done[d], "with"]
				}
			}
		}'
done
