// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// A Shell runs programs as users of a stack.
type Shell struct {
	Stack *stack.Stack

	// Dir is where programs run; empty for the directory of the test.
	Dir string

	// Path are directories where programs are searched for before those of the stack.
	Path []string

	// Input is what programs read; empty for nothing.
	Input string
}

// A Result is how a program ended.
type Result struct {
	// Code is its exit code.
	Code int
	// Stdout and Stderr are what it printed.
	Stdout, Stderr string
}

// Err returns an error where the program failed.
func (r Result) Err() error {
	if r.Code != 0 {
		return fmt.Errorf("exit code %d, %s%s: %w", r.Code, r.Stdout, r.Stderr, errOther)
	}

	return nil
}

// Command returns a program with its arguments, ready to run as a user.
func (s Shell) Command(ctx context.Context, user, name string, args ...string) *exec.Cmd {
	kubeconfig := filepath.Join(s.Stack.Dir(), "kubeconfig")
	if user != "" && user != Admin {
		kubeconfig = filepath.Join(s.Stack.Dir(), "users", user+".kubeconfig")
	}

	path := append(append([]string{}, s.Path...), s.Stack.BinDir(), filepath.Dir(s.Stack.Tools().Binary("kubectl")))

	cmd := exec.CommandContext(ctx, found(path, name), args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig,
		"PATH="+strings.Join(append(path, os.Getenv("PATH")), string(os.PathListSeparator)))

	if s.Input != "" {
		cmd.Stdin = strings.NewReader(s.Input)
	}

	return cmd
}

// found is the path of a program that is in one of some directories, and the name of any other one.
func found(path []string, name string) string {
	for _, dir := range path {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}

	return name
}

// Run runs a program as a user. An error says that it did not run at all.
func (s Shell) Run(ctx context.Context, user, name string, args ...string) (Result, error) {
	var stdout, stderr bytes.Buffer

	cmd := s.Command(ctx, user, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return Result{}, fmt.Errorf("cannot run %s %q: %w", name, args, err)
	}

	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// timeout is how long a person waits.
var timeout = regexp.MustCompile(`--timeout=\S+`)

// Type has a command typed, with .local as the directory of the stack and as much time as a test has. It returns
// what a terminal shows, and an error where the command failed.
func (s Shell) Type(ctx context.Context, c Command) (string, error) {
	text := timeout.ReplaceAllString(c.Text, "--timeout="+patience.Limit.String())
	out, err := s.Command(ctx, c.User, "sh", "-c", strings.ReplaceAll(text, ".local/", s.Stack.Dir()+"/")).CombinedOutput()

	return string(out), err //nolint:wrapcheck // Of the command.
}

// Play has a command typed, again if need be, and checks what is seen.
func (s Shell) Play(ctx context.Context, c Command) error {
	if c.reads() {
		return patience.Eventually(ctx, "what is shown", func(ctx context.Context) error { return c.Check(s.Type(ctx, c)) })
	}

	out, err := s.Type(ctx, c)

	// A kind may be served a moment after its definition says so.
	for deadline := time.Now().Add(patience.Limit); strings.Contains(out, "no matches for kind") && time.Now().Before(deadline); {
		out, err = s.Type(ctx, c)
	}

	return c.Check(out, err)
}

// PlayPage plays the commands of a page, one after the other.
func (s Shell) PlayPage(ctx context.Context, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read page: %w", err)
	}

	commands, err := Commands(string(raw))
	if err == nil && len(commands) == 0 {
		err = errors.New("it shows no command") //nolint:err113 // There is nothing to do about it.
	}

	if err != nil {
		return fmt.Errorf("cannot play %q: %w", file, err)
	}

	for _, c := range commands {
		if err := s.Play(ctx, c); err != nil {
			return fmt.Errorf("%s:%d: %s%w", file, c.Line, c.Typed(), err)
		}
	}

	return nil
}
