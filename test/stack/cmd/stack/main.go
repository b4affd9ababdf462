// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Command stack builds the tools of the local stack and runs it in the background.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

const usage = `usage: stack <command> [flags]

  build:   builds what the stack is made of
  assets:  prints the directory of etcd, kube-apiserver and kubectl, for KUBEBUILDER_ASSETS
  postgresql:
           builds the provider for PostgreSQL, prints its directory, with its CRDs and its generated sources
  up:      starts the stack, or sees that it runs, and returns when it is ready
  down:    stops it

flags:`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	dir     string
	until   string
	manager string
	with    string
}

func (s *settings) flags() *flag.FlagSet {
	f := flag.NewFlagSet("stack", flag.ContinueOnError)
	f.StringVar(&s.dir, "dir", ".local", "directory for kubeconfigs, logs and data")
	f.StringVar(&s.until, "until", "kausality", "last part to start: apiserver, controller-manager, crossplane or kausality")
	f.StringVar(&s.manager, "manager-flags", "", "more flags for kausality-manager, separated by spaces")
	f.StringVar(&s.with, "with", "", "what to add: postgresql, a server and the provider for it; to what is built: older, Crossplane 1.20")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), usage)
		f.PrintDefaults()
	}
	return f
}

func run(ctx context.Context, args []string) error {
	s := &settings{}
	flags := s.flags()
	if len(args) == 0 {
		flags.Usage()
		return errors.New("which command?")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("cannot find directory %q: %w", s.dir, err)
	}
	installation := stack.Installation{Dir: dir, Output: os.Stdout, PostgreSQL: s.with != ""}
	switch args[0] {
	case "build":
		if s.with != "" && s.with != "older" {
			return fmt.Errorf("nothing to build: %q", s.with)
		}
		_, err := stack.Build(ctx, os.Stdout, stack.Options{CrossplaneBefore2: s.with != "", ProviderNop: true})
		return err
	case "assets":
		assets, err := stack.Assets(ctx)
		fmt.Println(assets)
		return err
	case "postgresql":
		dir, err := stack.ProviderPostgreSQL(ctx)
		fmt.Println(dir)
		return err
	case "up":
		return s.up(ctx, installation)
	case "down":
		return installation.Down(ctx)
	case "supervise":
		return s.supervise(ctx, dir)
	default:
		flags.Usage()
		return fmt.Errorf("no such command: %q", args[0])
	}
}

// up has this very program be the supervisor.
func (s *settings) up(ctx context.Context, i stack.Installation) error {
	if _, err := s.options(i.Dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	//nolint:noctx // The supervisor is to outlive this program.
	supervisor := exec.Command(self, "supervise", "--dir="+i.Dir, "--until="+s.until, "--manager-flags="+s.manager, "--with="+s.with)
	return i.Up(ctx, supervisor)
}

func (s *settings) supervise(ctx context.Context, dir string) error {
	o, err := s.options(dir)
	if err != nil {
		return err
	}
	return stack.Supervise(ctx, o)
}

func (s *settings) options(dir string) (stack.Options, error) {
	parts := map[string]stack.Part{
		"apiserver":          stack.APIServer,
		"controller-manager": stack.ControllerManager,
		"crossplane":         stack.Crossplane,
		"kausality":          stack.Kausality,
	}
	until, ok := parts[s.until]
	if !ok {
		return stack.Options{}, fmt.Errorf("no such part: %q", s.until)
	}
	if s.with != "" && s.with != "postgresql" {
		return stack.Options{}, fmt.Errorf("nothing to add: %q", s.with)
	}
	return stack.Options{
		PostgreSQL:    s.with != "",
		KubectlOfPath: true,
		Dir:           dir,
		Until:         until,
		ManagerFlags:  strings.Fields(s.manager),
		DecisionLog:   true,
		Output:        os.Stdout,
	}, nil
}
