// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kubernetesTools are the tools that KUBEBUILDER_ASSETS may have, in the order in which they are built.
func kubernetesTools() []tool {
	return slices.DeleteFunc(tools(), func(t tool) bool { return kubebuilderTools()[t.name] == nil })
}

// pinned returns the version that the modules of the stack have of a tool.
func pinned(t *testing.T, name string) string {
	t.Helper()
	all, err := keyed(t.Context(), kubernetesTools())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p pending) bool { return p.name == name })
	version, err := all[i].cmd.list(t.Context(), all[i].module, "{{.Version}}")
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestToolsOfKubebuilderAssetsAreUsedAndTheOthersBuilt(t *testing.T) {
	kubernetes, ofEtcd := pinned(t, kubectl), pinned(t, etcd)
	script := func(text string) string { return "#!/bin/sh\ncat <<-END\n" + text + "\nEND\n" }
	cases := map[string]struct {
		reason string
		files  map[string]string
		// want are the tools that are used, out what is written, and err in what is returned.
		want []string
		out  []string
		err  string
	}{
		"Pinned": {
			reason: "Those that envtest has are used, and kube-controller-manager, which it does not have, is built.",
			files: map[string]string{
				etcd:          script("etcd Version: " + strings.TrimPrefix(ofEtcd, "v") + "\nGit SHA: 0123456\nGo Version: go1.26.0"),
				kubeAPIServer: script("Kubernetes " + kubernetes),
				kubectl:       script("Client Version: " + kubernetes + "\nKustomize Version: v5.7.1"),
			},
			want: []string{etcd, kubeAPIServer, kubectl},
			out:  []string{"using etcd " + ofEtcd + ", kube-apiserver " + kubernetes + ", kubectl " + kubernetes},
		},
		"Others": {
			reason: "Another version is used, and the line names the one that the stack is tested with.",
			files: map[string]string{
				etcd:                  script("etcd Version: 3.5.1"),
				kubeAPIServer:         script("Kubernetes v1.30.0-rc.1"),
				kubectl:               script("Client Version: v1.31.0"),
				kubeControllerManager: script("Kubernetes v1.30.0"),
			},
			want: []string{etcd, kubeAPIServer, kubeControllerManager, kubectl},
			out: []string{"using etcd v3.5.1 (pinned: " + ofEtcd + "), kube-apiserver v1.30.0-rc.1 (pinned: " + kubernetes +
				"), kubectl v1.31.0 (pinned: " + kubernetes + "), kube-controller-manager v1.30.0 (pinned: " + kubernetes + ")"},
		},
		"None": {
			reason: "A directory without any of them is named, and all are built.",
			out:    []string{"building what it does not have: etcd, kube-apiserver, kubectl"},
		},
		"NoVersion": {
			reason: "A program that is not what its name promises is an error here, not one of a stack that does not start.",
			files:  map[string]string{etcd: script("hello")},
			err:    "there is no version in it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(envKubebuilder, dir)
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			all, err := keyed(t.Context(), kubernetesTools())
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			got, err := kubebuilder(t.Context(), &out, all)
			if tc.err != "" || err != nil {
				if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\ngot error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("%s\nkubebuilder: -want, +got:\n%s", tc.reason, diff)
			}
			var want strings.Builder
			for _, line := range tc.out {
				want.WriteString(envKubebuilder + "=" + dir + ": " + line + "\n")
			}
			if diff := cmp.Diff(want.String(), out.String()); diff != "" {
				t.Errorf("%s\nprogress: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNothingIsBuiltThatKubebuilderAssetsHas(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(envKubebuilder, dir)
	t.Setenv(envCache, t.TempDir())
	if err := os.WriteFile(filepath.Join(dir, etcd), []byte("#!/bin/sh\necho etcd Version: 3.5.1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	got, err := build(t.Context(), &out, []tool{tools()[0]})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, etcd); got.Binary(etcd) != want {
		t.Errorf("etcd is %q, want %q", got.Binary(etcd), want)
	}
	if strings.Contains(out.String(), "building") {
		t.Errorf("it was built:\n%s", &out)
	}
}

func TestKubectlOfPathIsUsedAndNotBuilt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(envKubebuilder, "")
	t.Setenv("PATH", dir)
	for text, want := range map[string]string{
		"#!/bin/sh\necho Client Version: v1.34.1\n": dir,
		"#!/bin/sh\necho hello\n":                   "", // No version: it is built.
	} {
		if err := os.WriteFile(filepath.Join(dir, kubectl), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if got := kubectlOfPath(t.Context(), &out); got != want {
			t.Errorf("kubectl of PATH that prints %q: got %q, want %q\n%s", text, got, want, &out)
		}
	}
	t.Setenv(envKubebuilder, dir)
	if got := kubectlOfPath(t.Context(), &bytes.Buffer{}); got != "" {
		t.Errorf("with %s kubectl of PATH is %q, want none", envKubebuilder, got)
	}
}

func TestOnlyWhatAStackRunsIsBuilt(t *testing.T) {
	has := func(o Options) bool {
		return slices.ContainsFunc(o.tools(), func(t tool) bool { return t.name == providerNop })
	}
	if has(Options{}) || !has(Options{ProviderNop: true}) {
		t.Errorf("provider-nop is built: %t without it, %t with it", has(Options{}), has(Options{ProviderNop: true}))
	}
}
