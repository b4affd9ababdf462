#!/usr/bin/env bash
# Plays the long runs for a time, each of which `make test` has a sample of, and sums up.
#
#   make soak [SEED=n] [DURATION=8h] [PLAYS='random quiet']
#
# The plays take turns. Each is one run of a Go test, with KAUSALITY_SEED of its own, drawn from SEED and the
# number of the turn: it can be played again by itself, with the command that the summary shows. What has
# been played is in .local/soak/SEED/turns, so that an interrupted soak goes on where it was: give the
# same SEED again. DURATION is of this part; the turn that is under way is played to its end. The log of
# each turn is kept beside it, with the numbers that the tests measured.
#
# PLAYS=busy has another kind of plays: all tests of a package that waits for clusters, beside two busy
# loops, one package after the other. They are not played unless they are named, all or one (busy-e2e).
#
# To add a play, add a line to plays below. Its test reads KAUSALITY_SEED, logs it, and plays the same
# with the same; how much it plays it reads from a variable of its own, with a small default for `make
# test`. A package that is not there is left out.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Name, package, pattern of the tests, and the environment of a long run.
plays=(
	'random   ./test/random   ^TestAtRandomNothingHappensOutside                 KAUSALITY_RUNS=500'
	'approval ./test/random   ^TestAtRandomAnApprovalIsUsedOnce                 KAUSALITY_RUNS=500'
	'witness  ./test/witness  ^TestEachStatementOfTheProviderWasAskedFor$        KAUSALITY_RUNS=50'
	'race     ./test/e2e      ^TestTheGateKeepsUpWithStaleObservations$          KAUSALITY_RACE=200'
	'fidelity ./test/fidelity .                                                  KAUSALITY_OBJECTS=2000'
	'quiet    ./test/quiet    .                                                  KAUSALITY_XRS=500'
	'fleet    ./test/fleet    ^TestAStormEnds$                                   KAUSALITY_XRS=300'
	'costs    ./test/fleet    ^TestWhatAFleetCosts$                             KAUSALITY_XRS=1000 KAUSALITY_SECONDS=300 KAUSALITY_PATIENCE=1h'
)
for package in chart e2e examples fault fidelity install plugin quiet random removal replicas witness; do
	plays+=("busy-$package ./test/$package .")
done

seed=${SEED:-}
[[ -n $seed ]] || seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
[[ $seed =~ ^[0-9]+$ ]] || { echo "cannot soak: SEED=$seed is no number" >&2; exit 2; }

# seconds writes a time such as 90, 45m, 8h or 1h30m in seconds.
seconds() {
	local rest=$1 sum=0
	[[ $rest =~ ^[0-9]+$ ]] && rest+=s
	while [[ $rest =~ ^([0-9]+)([dhms])(.*)$ ]]; do
		case ${BASH_REMATCH[2]} in
		d) sum=$((sum + 86400 * BASH_REMATCH[1])) ;;
		h) sum=$((sum + 3600 * BASH_REMATCH[1])) ;;
		m) sum=$((sum + 60 * BASH_REMATCH[1])) ;;
		s) sum=$((sum + BASH_REMATCH[1])) ;;
		esac
		rest=${BASH_REMATCH[3]}
	done
	[[ -z $rest && $sum -gt 0 ]] || { echo "cannot soak: DURATION=$1 is no time such as 45m or 8h" >&2; exit 2; }
	echo "$sum"
}

duration=${DURATION:-1h}
limit=$(seconds "$duration")
go=${GO:-go}
dir=${LOCAL:-.local}/soak/$seed
turns=$dir/turns
mkdir -p "$dir"
touch "$turns"

# Those whose package is there, and of the names that PLAYS gives, where it gives any.
playing=()
for play in "${plays[@]}"; do
	read -r name package _ <<<"$play"
	[[ -d $package ]] || continue
	case " ${PLAYS:-} " in
	*" $name "* | *" ${name%%-*} "*) playing+=("$play") ;;
	'  ') [[ $name == busy-* ]] || playing+=("$play") ;;
	esac
done
((${#playing[@]})) || { echo "cannot soak: there is no play of ${PLAYS:-those in hack/soak.sh}" >&2; exit 2; }

# summary says what was played, in this part and those before it, and how to play again what failed.
summary() {
	printf '\nSEED=%s, %s turns\n' "$seed" "$(wc -l <"$turns")"
	awk '{ played[$2]++; took[$2] += $5; if ($4 != "ok") failed[$2]++ }
		END { for (n in played) printf "  %-13s %4d played, %4d passed, %4d failed, %d min\n", n, played[n], played[n] - failed[n], failed[n], took[n] / 60 }' "$turns" | sort
	while read -r turn name drawn outcome _; do
		[[ $outcome == ok ]] && continue
		for play in "${plays[@]}"; do
			read -r n package pattern environment <<<"$play"
			[[ $n == "$name" ]] || continue
			printf '  turn %s failed (%s): KAUSALITY_SEED=%s %s %s test -tags stack %s -run '\''%s'\'' -count=1 -parallel 6 -timeout 4h -v\n' \
				"$turn" "$dir/$turn.log" "$drawn" "$environment" "$go" "$package" "$pattern"
		done
	done <"$turns"
	echo "Go on with: make soak SEED=$seed${PLAYS:+ PLAYS='$PLAYS'}"
	! grep -qv ' ok ' "$turns"
}

# loop keeps a core busy for as long as this script is there.
loop() { while kill -0 $$ 2>/dev/null; do :; done; }

interrupted() {
	trap - INT TERM
	echo 'Interrupted: the turn that was under way does not count.'
	rm -f "$dir/$turn.log"
	summary || true
	exit 130
}

echo "SEED=$seed for $duration: ${#playing[@]} plays take turns, after $(wc -l <"$turns") turns before."
end=$((SECONDS + limit))
turn=$(wc -l <"$turns")
trap interrupted INT TERM

while ((SECONDS < end)); do
	turn=$((turn + 1))
	read -r name package pattern environment <<<"${playing[((turn - 1) % ${#playing[@]})]}"
	# Of what a play draws itself, those of neighbouring seeds are alike: they start far apart.
	drawn=$(printf '%s/%s' "$seed" "$turn" | cksum | cut -d' ' -f1)
	start=$SECONDS
	outcome=ok
	loops=()
	if [[ $name == busy-* ]]; then
		loop & loops+=($!)
		loop & loops+=($!)
	fi
	# shellcheck disable=SC2086 # The environment is several words.
	env KAUSALITY_SEED="$drawn" $environment "$go" test -tags stack "$package" -run "$pattern" -count=1 -parallel 6 -timeout 4h -v >"$dir/$turn.log" 2>&1 || outcome=failed
	((${#loops[@]} == 0)) || kill "${loops[@]}"
	echo "$turn $name $drawn $outcome $((SECONDS - start))" | tee -a "$turns"
done

summary
