// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

// manifest is what is read of an object.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Package          string
		RuntimeConfigRef *struct{ Name string }
		MatchImages      []struct{ Prefix string }
		RewriteImage     *struct{ Prefix string }
	}
}

func manifests(t *testing.T, text string) map[string]manifest {
	t.Helper()

	out := map[string]manifest{}

	for doc := range strings.SplitSeq(text, "\n"+separator) {
		m := manifest{}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}

		out[m.Kind+" "+m.Metadata.Name] = m
	}

	return out
}

func TestInstallNamesWhatWasPushed(t *testing.T) {
	t.Parallel()

	_, dist := small(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)

	written := func() string {
		text, err := os.ReadFile(filepath.Join(dist, installFile))
		if err != nil {
			t.Fatal(err)
		}

		return string(text)
	}
	before := written()

	if strings.Contains(before, mirrorName) {
		t.Errorf("Packages at home are looked for elsewhere:\n%s", before)
	}

	// 1. Pushed twice, it names the last one, and once.
	repository := strings.TrimPrefix(server.URL, "http://") + "/mirror/kausality"

	for _, to := range []string{strings.TrimPrefix(server.URL, "http://") + "/other", repository} {
		if err := (&push{Dist: dist, Repository: to}).Run(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
	}

	after := written()
	all := manifests(t, after)

	at := all["ImageConfig "+mirrorName].Spec
	if strings.Count(after, mirrorName) != 1 || at.RewriteImage == nil || at.RewriteImage.Prefix != repository+"/" {
		t.Fatalf("Pushed to %s:\n%s", repository, after)
	}

	only, err := os.ReadFile(filepath.Join(dist, mirrorFile))
	if err != nil || !strings.HasPrefix(after, separator+string(only)+separator) {
		t.Errorf("By itself it says where they are as (%v)\n%s", err, only)
	}

	// 2. What it installs is there, where the ImageConfig says.
	for _, key := range []string{"Provider kausality-io-" + provider, "Function kausality-io-" + function, "Configuration " + configuration} {
		m := all[key]

		path, ok := strings.CutPrefix(m.Spec.Package, at.MatchImages[0].Prefix)
		if !ok {
			t.Errorf("%s: package %q is looked for elsewhere", key, m.Spec.Package)

			continue
		}

		exists(t, at.RewriteImage.Prefix+path)
	}

	if ref := all["Provider kausality-io-"+provider].Spec.RuntimeConfigRef; ref == nil || ref.Name != manager {
		t.Errorf("The Provider runs as %+v says", ref)
	}

	// Nothing that Crossplane 1.20 does not know, and kubectl would refuse there: its ImageConfigs know no runtime.
	if strings.Contains(after, "\n  runtime:") {
		t.Errorf("An ImageConfig names a runtime:\n%s", after)
	}

	// 3. Home again, it is as it was.
	if got := mirrored(after, home); got != before {
		t.Errorf("At home again it is:\n%s", got)
	}
}

func exists(t *testing.T, image string) {
	t.Helper()

	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := remote.Head(ref); err != nil {
		t.Errorf("%s: %v", image, err)
	}
}

func TestTheChartsImageIsOneThatIsBuilt(t *testing.T) {
	t.Parallel()

	root, dist := small(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)

	repository := strings.TrimPrefix(server.URL, "http://") + "/kausality-io"
	if err := (&push{Dist: dist, Repository: repository}).Run(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}

	var (
		values struct{ Image struct{ Repository string } }
		chart  struct{ AppVersion string }
	)

	for file, into := range map[string]any{"values.yaml": &values, "Chart.yaml": &chart} {
		text, err := os.ReadFile(filepath.Join(root, "package", "chart", file))
		if err != nil {
			t.Fatal(err)
		}

		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}

	path, ok := strings.CutPrefix(values.Image.Repository, home+"/")
	if !ok {
		t.Errorf("The chart's image is %s, and what is built goes to %s", values.Image.Repository, home)
	}

	exists(t, repository+"/"+path+":"+testVersion)

	if v := "v" + chart.AppVersion; !validVersion(v) {
		t.Errorf("The chart's version %s is none that is built", v)
	}
}

func TestARepositoryThatNothingCanBePushedToIsRefused(t *testing.T) {
	t.Parallel()

	var refused []string

	for _, repository := range []string{"registry.example.org/kausality-io", "https://registry.example.org", "registry.example.org/Upper", home} {
		if validRepository(repository) != nil {
			refused = append(refused, repository)
		}
	}

	if want := []string{"https://registry.example.org", "registry.example.org/Upper"}; !slices.Equal(refused, want) {
		t.Errorf("Refused: %q, want %q", refused, want)
	}
}
