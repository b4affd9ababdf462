package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Results is what one run of the benchmarks found out.
type Results struct {
	Version    string       `json:"version,omitempty"`
	GOOS       string       `json:"goos,omitempty"`
	GOARCH     string       `json:"goarch,omitempty"`
	CPU        string       `json:"cpu,omitempty"`
	Benchmarks []*Benchmark `json:"benchmarks"`
}

// Benchmark is all samples of one benchmark, in the order of the first one's appearance.
type Benchmark struct {
	Package string `json:"package,omitempty"`
	// Name is the name without "Benchmark", and with the suffix for GOMAXPROCS: Decide/fields=10-2.
	Name    string `json:"name"`
	Samples int    `json:"samples"`
	// Units has a summary per unit: ns/op, B/op, allocs/op and whatever the benchmark reports.
	Units map[string]Summary `json:"units"`

	values map[string][]float64
}

// Summary is a unit's samples in three numbers.
type Summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

var errNoBenchmarks = errors.New("no benchmark in the input")

// parse reads the format of https://go.dev/design/14313-benchmark-format. Lines of any other kind
// are skipped, as go test prints those too.
func parse(in io.Reader) (*Results, error) {
	r := &Results{}
	byKey := map[string]*Benchmark{}
	pkg := ""

	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if key, value, ok := strings.Cut(line, ": "); ok {
			switch key {
			case "goos":
				r.GOOS = value
			case "goarch":
				r.GOARCH = value
			case "cpu":
				r.CPU = value
			case "pkg":
				pkg = value
			}
		}
		name, values, ok := parseSample(line)
		if !ok {
			continue
		}
		b := byKey[pkg+" "+name]
		if b == nil {
			b = &Benchmark{Package: pkg, Name: name, values: map[string][]float64{}}
			byKey[pkg+" "+name] = b
			r.Benchmarks = append(r.Benchmarks, b)
		}
		b.add(values)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read benchmarks: %w", err)
	}
	if len(r.Benchmarks) == 0 {
		return nil, errNoBenchmarks
	}
	for _, b := range r.Benchmarks {
		b.summarize()
	}
	return r, nil
}

// parseSample takes a line such as `BenchmarkDecide-2  1000  1234 ns/op  56 B/op` apart.
func parseSample(line string) (name string, values map[string]float64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil, false
	}
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return "", nil, false
	}
	values = map[string]float64{}
	for pair := range slices.Chunk(fields[2:], 2) {
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return "", nil, false
		}
		values[pair[1]] = v
	}
	return strings.TrimPrefix(fields[0], "Benchmark"), values, true
}

func (b *Benchmark) add(values map[string]float64) {
	b.Samples++
	for unit, v := range values {
		b.values[unit] = append(b.values[unit], v)
	}
}

func (b *Benchmark) summarize() {
	b.Units = map[string]Summary{}
	for unit, vs := range b.values {
		slices.Sort(vs)
		n := len(vs)
		b.Units[unit] = Summary{Median: (vs[(n-1)/2] + vs[n/2]) / 2, Min: vs[0], Max: vs[n-1]}
	}
}
