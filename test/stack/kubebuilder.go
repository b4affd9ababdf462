// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// envKubebuilder names the environment variable that says where etcd, kube-apiserver and kubectl are, as envtest of
// controller-runtime has it; `setup-envtest use -p env` prints it. They are used instead of built.
const envKubebuilder = "KUBEBUILDER_ASSETS"

// kubebuilderTools returns what may be in that directory, and how each prints its version. envtest has no
// kube-controller-manager: that is built where it is not there.
func kubebuilderTools() map[string][]string {
	return map[string][]string{
		etcd:                  {"--version"},
		kubeAPIServer:         {"--version"},
		kubectl:               {"version", "--client"},
		kubeControllerManager: {"--version"},
	}
}

// kubectlOfPath returns the directory of the kubectl of PATH, and writes to out which version it has; "" if there is
// none, if it prints no version, or if KUBEBUILDER_ASSETS says where kubectl is.
func kubectlOfPath(ctx context.Context, out io.Writer) string {
	if os.Getenv(envKubebuilder) != "" {
		return ""
	}
	path, err := exec.LookPath(kubectl)
	if err != nil {
		return ""
	}
	version, err := toolVersion(ctx, path, kubebuilderTools()[kubectl]...)
	if err != nil {
		return ""
	}
	_, _ = fmt.Fprintf(out, "using %s, kubectl %s\n", path, version)
	return filepath.Dir(path)
}

// versionText matches the version in what the tools print of it.
var versionText = regexp.MustCompile(`\bv?(\d+\.\d+\.\d+\S*)`)

// kubebuilder returns where those of the tools are that KUBEBUILDER_ASSETS has, and writes to out which versions they
// have, and which ones are pinned where those are others.
func kubebuilder(ctx context.Context, out io.Writer, want []pending) (Tools, error) {
	found := Tools{}
	dir := os.Getenv(envKubebuilder)
	if dir == "" {
		return found, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", envKubebuilder, err)
	}
	var have, lack []string
	for _, p := range want {
		flags, ok := kubebuilderTools()[p.name]
		if !ok {
			continue
		}
		path := filepath.Join(dir, p.name)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			if p.name != kubeControllerManager {
				lack = append(lack, p.name)
			}
			continue
		}
		version, err := toolVersion(ctx, path, flags...)
		if err != nil {
			return nil, err
		}
		pinned, err := p.cmd.list(ctx, p.module, "{{.Version}}")
		if err != nil {
			return nil, err
		}
		text := p.name + " " + version
		if version != pinned {
			text += " (pinned: " + pinned + ")"
		}
		found[p.name], have = dir, append(have, text)
	}
	if len(have) > 0 {
		_, _ = fmt.Fprintf(out, "%s=%s: using %s\n", envKubebuilder, dir, strings.Join(have, ", "))
	}
	if len(lack) > 0 {
		_, _ = fmt.Fprintf(out, "%s=%s: building what it does not have: %s\n", envKubebuilder, dir, strings.Join(lack, ", "))
	}
	return found, nil
}

// errNoVersion is the cause where a tool prints something else.
var errNoVersion = errors.New("there is no version in it")

// toolVersion returns the version a tool prints, with the v that a module's has.
func toolVersion(ctx context.Context, path string, flags ...string) (string, error) {
	text, err := exec.CommandContext(ctx, path, flags...).CombinedOutput()
	m := versionText.FindSubmatch(text)
	if err == nil && m == nil {
		err = errNoVersion
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the version of %q from %q: %w", path, text, err)
	}
	return "v" + string(m[1]), nil
}
