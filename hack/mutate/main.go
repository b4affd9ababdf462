// Command mutate changes one thing of the engine at a time, and runs its tests: a mutant that survives shows what
// no test is about. Run it in the repository's root.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "decides which mutants are drawn")
	n := flag.Int("n", 150, "how many mutants are drawn that compile")
	packages := flag.String("packages", strings.Join([]string{
		"engine/decision", "engine/decision/authority", "engine/decision/grant", "engine/decision/hold", "engine/decision/input",
		"engine/decision/lack", "engine/decision/request", "engine/decision/rule", "engine/decision/stamp", "engine/gate", "engine/gate/managed",
		"engine/management", "engine/wish", "engine/approval", "engine/composition",
	}, ","), "what is mutated")
	out := flag.String("out", "mutants.txt", "file with a line per mutant; what it and FILE.profile have is not done again")
	flag.Parse()
	if err := run(*seed, *n, strings.Split(*packages, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(seed uint64, n int, packages []string, out string) error {
	all, err := candidates(packages, out+".profile")
	if err != nil {
		return err
	}
	draw(all, seed)
	done, _ := os.ReadFile(out) //nolint:gosec // The user names it, and at first it is not there.
	by := map[string][]string{}
	for i := 0; i < len(all) && len(by["total killed"])+len(by["total survived"]) < n; i++ {
		m, start := all[i], time.Now()
		_, result, found := strings.Cut(string(done), m.String()+"\t")
		if !found {
			if result, err = m.test(out + ".mutant"); err != nil {
				return err
			}
			line := fmt.Sprintf("%s\t%s\t%.0fs\n", m, result, time.Since(start).Seconds())
			fmt.Fprint(os.Stdout, line)
			if done = append(done, line...); os.WriteFile(out, done, 0o600) != nil { //nolint:gosec // Likewise.
				return fmt.Errorf("cannot write results to %q", out)
			}
		}
		verdict, _, _ := strings.Cut(result, "\t")
		for _, of := range []string{path.Dir(m.at.Filename) + " " + verdict, "total " + verdict} {
			by[of] = append(by[of], m.String())
		}
	}
	for _, of := range append(packages, "total") {
		fmt.Fprintf(os.Stdout, "%s: %s\n", of, score(len(by[of+" killed"]), len(by[of+" survived"])))
	}
	fmt.Fprintf(os.Stdout, "survivors:\n%s\n", strings.Join(by["total survived"], "\n"))
	return nil
}

// candidates returns the mutants of lines that the packages' own tests or the corpus execute, by a profile.
func candidates(packages []string, profile string) ([]mutant, error) {
	over := "./" + strings.Join(packages, ",./")
	if _, err := os.Stat(profile); err != nil {
		if out, err := gotest(append(strings.Split(over+",./test/corpus", ","), "-coverpkg="+over, "-coverprofile="+profile)...); err != nil {
			return nil, fmt.Errorf("cannot measure coverage: %w\n%s", err, out)
		}
	}
	blocks, err := os.ReadFile(profile) //nolint:gosec // The user names it.
	lines, list := map[string][]int{}, []mutant{}
	for block := range strings.Lines(strings.ReplaceAll(string(blocks), "github.com/kausality-io/kausality-crossplane/", "")) {
		var from, to, x, count int
		file, rest, _ := strings.Cut(block, ":")
		_, _ = fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &x, &to, &x, &x, &count) // Not of the first line.
		for l := from; count > 0 && l <= to; l++ {
			lines[file] = append(lines[file], l)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		src, errRead := os.ReadFile(file) //nolint:gosec // A profile names it.
		of, errParse := mutants(file, string(src))
		err = errors.Join(err, errRead, errParse)
		list = append(list, slices.DeleteFunc(of, func(m mutant) bool { return !slices.Contains(lines[file], m.at.Line) })...)
	}
	return list, err
}

// draw orders mutants by the seed, and each whatever others there are: random tests execute other lines each time.
func draw(all []mutant, seed uint64) {
	key := func(m mutant) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, seed, m))) }
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(key(a), key(b)) })
}

// test writes a mutant to a file, and returns whether it is killed, by which tests.
func (m mutant) test(file string) (string, error) {
	overlay := fmt.Sprintf(`{"Replace": {%q: %q}}`, m.at.Filename, file)
	if err := errors.Join(os.WriteFile(file, []byte(m.apply()), 0o600), os.WriteFile(file+".json", []byte(overlay), 0o600)); err != nil {
		return "", fmt.Errorf("cannot write mutant: %w", err)
	}
	for _, tests := range []string{"./" + path.Dir(m.at.Filename) + "/...", "./test/corpus"} {
		switch out, err := gotest(tests, "-overlay="+file+".json", "-failfast", "-vet=off", "-ldflags=-s -w"); {
		case strings.Contains(out, "[build failed]"):
			return "invalid\t" + tests, nil
		case strings.Contains(out, "FAIL\t"):
			return "killed\t" + tests, nil
		case err != nil:
			return "", fmt.Errorf("cannot test mutant %q: %w\n%s", m, err, out)
		}
	}
	return "survived\t", nil
}

// gotest runs go test. A process of it ends after 120 seconds of the processor, more on a busy machine's clock, or at 8 GiB.
func gotest(args ...string) (string, error) {
	limited := `ulimit -t 120; ulimit -v 8388608 2>/dev/null; GOGC=400 exec go test -timeout=0 "$@"`
	out, err := exec.CommandContext(context.Background(), "sh", append([]string{"-c", limited, "sh"}, args...)...).CombinedOutput() //nolint:gosec // It is go test.
	return string(out), err
}

// score has Wilson's interval.
func score(killed, survived int) string {
	n, z := max(float64(killed+survived), 1), 1.96
	p, whole := float64(killed)/n, (1+z*z/n)/100
	mid, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return fmt.Sprintf("%d of %.0f killed, %.0f%% (95%%: %.0f%% to %.0f%%)", killed, n, 100*p, (mid-half)/whole, (mid+half)/whole)
}
