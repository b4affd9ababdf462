package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   *Results
		err    error
	}{
		"SamplesOfOneBenchmarkAreOneEntry": {
			reason: "go test -count prints a line per run; the median of an even number is between two of them",
			in: `goos: linux
goarch: amd64
pkg: example.org/a
cpu: Fast CPU
BenchmarkDecide/fields=10-2   	 1000	  100 ns/op	  16 B/op
BenchmarkDecide/fields=10-2   	 1000	  300 ns/op	  16 B/op
PASS
ok  	example.org/a	1.2s
pkg: example.org/b
BenchmarkDecide/fields=10-2   	 1000	  1.5 ns/op
`,
			want: &Results{
				GOOS: "linux", GOARCH: "amd64", CPU: "Fast CPU",
				Benchmarks: []*Benchmark{
					{Package: "example.org/a", Name: "Decide/fields=10-2", Samples: 2, Units: map[string]Summary{
						"ns/op": {Median: 200, Min: 100, Max: 300},
						"B/op":  {Median: 16, Min: 16, Max: 16},
					}},
					{Package: "example.org/b", Name: "Decide/fields=10-2", Samples: 1, Units: map[string]Summary{
						"ns/op": {Median: 1.5, Min: 1.5, Max: 1.5},
					}},
				},
			},
		},
		"NothingMeasuredIsAnError": {
			reason: "an empty file would look like a successful run",
			in:     "BenchmarkBroken\nBenchmarkBroken: cannot start\nFAIL\n",
			err:    errNoBenchmarks,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(strings.NewReader(tc.in))
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s: parse(...): got error %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Benchmark{})); diff != "" {
				t.Errorf("%s: parse(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
