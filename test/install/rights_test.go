// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// lacksRights installs the Configuration alone, so that its Provider has the
// rights that Crossplane gives, and no others.
func (l *life) lacksRights(t *testing.T, r *release) {
	t.Helper()

	l.c.apply(t, r.only("ImageConfig", "Configuration"))

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

	said, err := cmd.CombinedOutput()
	want := fmt.Sprintf("cannot run as service account \"crossplane-system/%s\": it may not ", account)

	if err == nil || !strings.Contains(string(said), want) || !strings.Contains(string(said), "install.yaml of version "+r.version) {
		t.Errorf("Without its rights the manager ended with %v, and said:\n%s", err, said)
	}
}
