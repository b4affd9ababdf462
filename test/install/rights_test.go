// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// rights has the doctor print the roles that the manager lacks for what is governed,
// once a policy says that it lacks any, and applies them.
func (l *life) rights(t *testing.T) {
	t.Helper()

	var roles []byte

	world.Eventually(t, "roles that are missing", func(ctx context.Context) error {
		var err error

		roles, err = exec.CommandContext(ctx, l.plugin, "doctor", "--roles", "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig")).Output()
		if err != nil {
			return fmt.Errorf("%w: %s", err, roles)
		}

		if !strings.Contains(string(roles), "kausality-governed:") {
			return fmt.Errorf("%s: %w", roles, world.ErrOther)
		}

		return nil
	})

	l.c.apply(t, roles)
}

// types installs the packages with Crossplane's command line, as people type it,
// where Crossplane was told which registry they were pushed to.
func (l *life) types(t *testing.T, r *release) {
	t.Helper()

	cli, err := stack.CrossplaneCLI(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	l.c.apply(t, read(t, filepath.Join(r.dist, "mirror.yaml")))

	for _, p := range [][]string{
		{"function", "function-kausality", functionName},
		{"provider", "provider-kausality", providerName},
		{"configuration", "configuration-kausality", configurationName},
	} {
		cmd := exec.CommandContext(t.Context(), cli, "xpkg", "install", p[0], "xpkg.crossplane.io/kausality-io/"+p[1]+":"+r.version, p[2])
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(running.Dir(), "kubeconfig"))

		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), p[2]+" created") {
			t.Fatalf("%v: %v\n%s", cmd.Args[1:], err, said)
		}
	}
}

// lacksRights installs the packages alone, so that the Provider has the rights that
// Crossplane gives, and no others, and says which one command is missing.
func (l *life) lacksRights(t *testing.T, r *release) {
	t.Helper()

	l.types(t, r)

	revision := l.c.installed(t, "Provider", providerName, r.version)
	d := l.c.deployment(t, revision)
	container := l.c.container(t, &d.Spec.Template)
	account := d.Spec.Template.Spec.ServiceAccountName

	if account == "kausality-manager" {
		t.Fatal("It runs as the manager already")
	}

	cmd := exec.CommandContext(t.Context(), container.Path, append(container.Args, "--kubeconfig="+kubeconfig(t, account),
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0", "--webhook-bind-address="+free(t))...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}

	for _, name := range slices.Sorted(maps.Keys(container.Env)) {
		cmd.Env = append(cmd.Env, name+"="+container.Env[name])
	}

	log := filepath.Join(t.TempDir(), "log")

	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = out.Close() }()

	cmd.Stdout, cmd.Stderr = out, out

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	world.Eventually(t, "a manager that says what it lacks", func(context.Context) error {
		said := string(read(t, log))
		for _, want := range []string{
			fmt.Sprintf(`cannot run as service account \"crossplane-system/%s\": it may not `, account), "kubectl apply --server-side --force-conflicts -f install.yaml, with the install.yaml of version " + r.version,
		} {
			if !strings.Contains(said, want) {
				return fmt.Errorf("no %s in %s: %w", want, said, world.ErrOther)
			}
		}

		return nil
	})
}
