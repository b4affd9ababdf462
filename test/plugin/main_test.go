// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

var running *stack.Stack

// functionMetrics is where the function serves its metrics.
var functionMetrics string

// logs are what manager and function decided.
var logs decisions

// manager is the name of its process.
const manager = "kausality-manager"

func TestMain(m *testing.M) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // Does not block.
	if err != nil {
		panic(err)
	}

	functionMetrics = l.Addr().String()
	_ = l.Close()

	dir, err := os.MkdirTemp(os.Getenv(stack.EnvDecisions), "kausality-decisions-*")
	if err != nil {
		panic(err)
	}

	logs = decisions{dir}

	code := stack.Main(m, stack.Options{
		ProviderNop:   true,
		Governed:      stack.Suite(),
		FunctionFlags: append(logs.flags(logs.function()), "--metrics-address="+functionMetrics),
		ManagerFlags: append(logs.flags(logs.manager()),
			"--settle=1s", "--leader-elect", "--leader-lease-duration=3s", "--leader-renew-deadline=2s", "--leader-retry-period=500ms",
		),
	}, &running)

	if os.Getenv(stack.EnvDecisions) == "" {
		_ = os.RemoveAll(dir)
	}

	os.Exit(code)
}

// narrator tells nothing but to the test's log.
type narrator struct{ t *testing.T }

func (n narrator) Sayf(format string, args ...any) { n.t.Logf(format, args...) }
func (n narrator) Show(text string)                { n.t.Log(text) }

// kubectl runs kubectl as a user; the empty one is the administrator.
func kubectl(ctx context.Context, t *testing.T, user string, args ...string) play.Result {
	t.Helper()

	r, err := shell(t).Run(ctx, user, "kubectl", args...)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// shell finds the plugin.
func shell(t *testing.T) play.Shell {
	t.Helper()

	return play.Shell{Stack: running, Path: []string{plugins(t)}}
}

// plugins is a directory with the plugin under the names that kubectl searches for.
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

// doctor runs it with more flags, and returns its exit code and findings.
func doctor(ctx context.Context, t *testing.T, flags ...string) (int, []play.Finding, error) {
	t.Helper()

	return shell(t).Doctor(ctx, flags...)
}

// diagnosed waits until the doctor finds exactly some checks to be in error, and
// ends accordingly.
func diagnosed(ctx context.Context, t *testing.T, want ...string) []play.Finding {
	t.Helper()

	return diagnosedWhile(ctx, t, func(context.Context) error { return nil }, want...)
}

// diagnosedWhile does something before each look, which others put right.
func diagnosedWhile(ctx context.Context, t *testing.T, do func(context.Context) error, want ...string) []play.Finding {
	t.Helper()

	var bad []play.Finding

	err := scenario.Eventually(ctx, fmt.Sprintf("a diagnosis of %v", want), func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}

		code, all, err := doctor(ctx, t)
		if err != nil {
			return err
		}

		bad = slices.DeleteFunc(all, func(f play.Finding) bool { return f.Severity != "error" })

		got := make([]string, 0, len(bad))
		for _, f := range bad {
			got = append(got, f.Check)
		}

		wantCode := 0
		if len(want) > 0 {
			wantCode = 3
		}

		if code != wantCode || !slices.Equal(slices.Compact(got), want) {
			return fmt.Errorf("exit code %d, findings %+v: %w", code, bad, world.ErrOther)
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

// found waits until the doctor finds something that starts like this.
func found(ctx context.Context, t *testing.T, severity, check, what string) play.Finding {
	t.Helper()

	var out play.Finding

	if err := scenario.Eventually(ctx, what, func(ctx context.Context) error {
		_, all, err := doctor(ctx, t)
		if err != nil {
			return err
		}

		i := slices.IndexFunc(all, func(f play.Finding) bool {
			return f.Severity == severity && f.Check == check && strings.HasPrefix(f.What, what)
		})
		if i < 0 {
			return fmt.Errorf("findings %+v: %w", all, world.ErrOther)
		}

		out = all[i]

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	t.Logf("%+v", out)

	return out
}
