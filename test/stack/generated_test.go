// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writeFiles writes files into a new directory, by their path.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEverythingThatDecidesWhatIsGeneratedChangesItsKey(t *testing.T) {
	const goVersion, platform = "go1.26.0", "linux/amd64"
	base := map[string]string{
		"go.mod": "module a", "go.sum": "sums", "generate.sh": "exit",
		"config/provider.go": "package config", "hack/boilerplate.go.txt": "// Copyright",
	}
	key := func(goVersion, platform string, changes ...string) string {
		t.Helper()
		files := maps.Clone(base)
		for i := 0; i < len(changes); i += 2 {
			if files[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(files, changes[i])
			}
		}
		sources, err := readSources(writeFiles(t, files))
		if err != nil {
			t.Fatal(err)
		}
		return generatedKey(postgreSQLTool(), goVersion, platform, sources)
	}
	want := key(goVersion, platform)
	for name, got := range map[string]string{
		"Again":        key(goVersion, platform),
		"HiddenFile":   key(goVersion, platform, "config/.provider.go.swp", "edited"),
		"HiddenFolder": key(goVersion, platform, ".idea/workspace.xml", "<xml>"),
	} {
		if got != want {
			t.Errorf("%s: the key changes", name)
		}
	}
	cases := map[string]string{
		"GoVersion": key("go1.26.1", platform),
		"Platform":  key(goVersion, "linux/arm64"),
		"NewFile":   key(goVersion, platform, "config/more.go", "package config"),
		"Renamed":   key(goVersion, platform, "config/provider.go", "", "config/provider2.go", base["config/provider.go"]),
	}
	for path := range base {
		cases["Changed "+path] = key(goVersion, platform, path, base[path]+" other")
		cases["Removed "+path] = key(goVersion, platform, path, "")
	}
	for name, got := range cases {
		if got == want {
			t.Errorf("%s: the key does not change", name)
		}
	}
}

// TestWhatUpjetGeneratesIsNotInTheTree but all that it is generated from is.
func TestWhatUpjetGeneratesIsNotInTheTree(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := readSources(filepath.Join(root, postgreSQLTool().dir))
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(sources))
	for _, s := range sources {
		paths = append(paths, s.path)
		if strings.HasPrefix(filepath.Base(s.path), "zz_") || strings.HasPrefix(s.path, "crds/") {
			t.Errorf("%s/%s is generated", postgreSQLTool().dir, s.path)
		}
	}
	for _, path := range []string{
		"go.mod", "go.sum", "generate.sh", "hack/boilerplate.go.txt", "config/provider.go", "terraform/provider.go",
		"apis/cluster/v1beta1/types.go", "cmd/generator/main.go", "cmd/provider/main.go",
	} {
		if !slices.Contains(paths, path) {
			t.Errorf("%s/%s does not count for the key", postgreSQLTool().dir, path)
		}
	}
}

// generated is a tool that a script makes of these files, not built yet.
func generated(t *testing.T, files map[string]string) (p pending, tree string) {
	t.Helper()
	tree = writeFiles(t, files)
	sources, err := readSources(tree)
	if err != nil {
		t.Fatal(err)
	}
	return pending{tool: tool{name: "program", dir: "test/made", script: "generate.sh"}, sources: sources}, tree
}

func TestAToolIsGeneratedInACopyOfItsSources(t *testing.T) {
	p, tree := generated(t, map[string]string{
		"generate.sh": `cd "$(dirname "$0")"; cp config/name "$1/program"; touch config/zz_generated`,
		"config/name": "made", "config/.hidden": "left by an editor",
	})
	dir := t.TempDir()
	if err := p.generate(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "program")); err != nil || string(got) != "made" {
		t.Errorf("built %q, error %v", got, err)
	}
	for at, want := range map[string][]string{
		filepath.Join(dir, assetSource, "test", "made", "config"): {"name", "zz_generated"},
		filepath.Join(tree, "config"):                             {".hidden", "name"},
	} {
		entries, err := os.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, 0, len(entries))
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", at, diff)
		}
	}
}

func TestAScriptThatFailsSaysWhyAndLeavesNoEntry(t *testing.T) {
	for name, c := range map[string]struct{ reason, script, want string }{
		"Fails":         {"What it has printed is in the error.", "echo no such flag >&2; exit 3", "exit status 3\nno such flag"},
		"BuildsNothing": {"A script without a result has not built.", "exit 0", "cannot find what test/made/generate.sh has built"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := generated(t, map[string]string{"generate.sh": c.script})
			kept := cache{dir: t.TempDir()}
			err := kept.add(t.Context(), p.name, "key", func(dir string) error { return p.generate(t.Context(), dir) })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\ngot error %v, want %q", c.reason, err, c.want)
			}
			if kept.has(p.name, "key") {
				t.Error("there is an entry")
			}
		})
	}
}

// TestAnInterruptedScriptEndsWithWhatItHasStarted would take a minute otherwise: the pipe of what it prints stays open.
func TestAnInterruptedScriptEndsWithWhatItHasStarted(t *testing.T) {
	p, _ := generated(t, map[string]string{"generate.sh": "sleep 60; exit 0"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := p.generate(ctx, t.TempDir()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
