// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

var running *stack.Stack

func TestMain(m *testing.M) {
	os.Exit(stack.Main(m, stack.Options{ManagerFlags: []string{"--settle=1s"}}, &running))
}

// narrator tells nothing but to the test's log.
type narrator struct{ t *testing.T }

func (n narrator) Sayf(format string, args ...any) { n.t.Logf(format, args...) }
func (n narrator) Show(text string)                { n.t.Log(text) }

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// kubectl runs kubectl as a user; the empty one is the administrator.
func kubectl(ctx context.Context, t *testing.T, user string, args ...string) result {
	t.Helper()

	kubeconfig := filepath.Join(running.Dir(), "kubeconfig")
	if user != "" {
		kubeconfig = filepath.Join(running.Dir(), "users", user+".kubeconfig")
	}

	cmd := exec.CommandContext(ctx, running.Tools().Binary("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+plugins(t)+string(os.PathListSeparator)+os.Getenv("PATH"))

	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl %v: %v", args, err)
	}

	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// plugins is a directory with the plugin under the names that kubectl looks for.
func plugins(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	for _, name := range []string{"kubectl-kausality", "kubectl_complete-kausality"} {
		if err := os.Symlink(filepath.Join(running.BinDir(), "kubectl-kausality"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	return dir
}

// errOther is the cause when something is not as expected.
var errOther = errors.New("not as expected")

// finding is one of the doctor's.
type finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"`
	Object   string `json:"object"`
	What     string `json:"what"`
	Why      string `json:"why"`
	Remedy   string `json:"remedy"`
}

// doctor runs it with more flags, and returns its exit code and findings.
func doctor(ctx context.Context, t *testing.T, flags ...string) (int, []finding) {
	t.Helper()

	r := kubectl(ctx, t, "", append([]string{"kausality", "doctor", "-o", "json"}, flags...)...)
	doc := struct {
		Kind     string    `json:"kind"`
		Findings []finding `json:"findings"`
	}{}

	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Kind != "Diagnosis" {
		t.Fatalf("doctor: %+v: %v", r, err)
	}

	return r.code, doc.Findings
}

// diagnosed waits until the doctor finds exactly some checks to be in error, and
// ends accordingly.
func diagnosed(ctx context.Context, t *testing.T, want ...string) []finding {
	t.Helper()

	var bad []finding

	err := scenario.Eventually(ctx, fmt.Sprintf("a diagnosis of %v", want), func(ctx context.Context) error {
		code, all := doctor(ctx, t)
		bad = slices.DeleteFunc(all, func(f finding) bool { return f.Severity != "error" })

		got := make([]string, 0, len(bad))
		for _, f := range bad {
			got = append(got, f.Check)
		}

		wantCode := 0
		if len(want) > 0 {
			wantCode = 3
		}

		if code != wantCode || !slices.Equal(slices.Compact(got), want) {
			return fmt.Errorf("exit code %d, findings %+v: %w", code, bad, errOther)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range bad {
		if f.What == "" || f.Why == "" || f.Remedy == "" {
			t.Errorf("finding without reason or remedy: %+v", f)
		}
	}

	t.Logf("%+v", bad)

	return bad
}
