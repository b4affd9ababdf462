// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// TestADryRunIsAskedForAsWithKubectl also as it was written before, which meant
// that the API server checks.
func TestADryRunIsAskedForAsWithKubectl(t *testing.T) {
	t.Parallel()

	for args, tc := range map[string]struct{ mode, warning string }{
		"":                 {mode: dryNone},
		"--dry-run=none":   {mode: dryNone},
		"--dry-run=server": {mode: dryServer},
		"--dry-run=client": {mode: dryClient},
		"--dry-run":        {mode: dryServer, warning: "Warning: --dry-run is deprecated and can be replaced with --dry-run=server.\n"},
		"--dry-run=true":   {mode: dryServer, warning: "Warning: --dry-run=true is deprecated and can be replaced with --dry-run=server.\n"},
		"--dry-run=false":  {mode: dryNone, warning: "Warning: --dry-run=false is deprecated and can be replaced with --dry-run=none.\n"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()

			var (
				dry dryRun
				out bytes.Buffer
			)

			cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
			dry.flag(cmd)
			cmd.SetArgs(strings.Fields(args))
			cmd.SetErr(&out)

			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}

			dry.warn(cmd.ErrOrStderr())

			if dry.mode != tc.mode || out.String() != tc.warning {
				t.Errorf("%q: %s, %q, want %s, %q", args, dry.mode, out.String(), tc.mode, tc.warning)
			}

			if dry.on() != (tc.mode != dryNone) || dry.local() != (tc.mode == dryClient) {
				t.Errorf("%q: on %t, local %t", args, dry.on(), dry.local())
			}
		})
	}
}

// TestADryRunReadsLikeOne and what was done claims no more than what was checked.
func TestADryRunReadsLikeOne(t *testing.T) {
	t.Parallel()

	object := []string{"instances.rds.example.org/db-1"}
	dry := clusterOptions{dry: dryRun{mode: dryServer}}
	adopting := func(opts adoptOptions) func(*testing.T, *cluster, io.Writer) error {
		return func(t *testing.T, c *cluster, out io.Writer) error {
			t.Helper()

			c.dry = opts.dry

			return adopt(t.Context(), adoption{c}, out, object, opts)
		}
	}
	releasing := func(opts releaseOptions) func(*testing.T, *cluster, io.Writer) error {
		return func(t *testing.T, c *cluster, out io.Writer) error {
			t.Helper()

			c.dry = opts.dry

			return release(t.Context(), c, out, object, opts)
		}
	}

	for name, tc := range map[string]struct {
		objects []string
		record  string
		run     func(*testing.T, *cluster, io.Writer) error
		want    string
	}{
		"Adopt": {
			objects: []string{left, taker, definition}, run: adopting(adoptOptions{clusterOptions: dry, by: "database/new"}),
			want: "Instance db-1 would be a part of Database new; it and its external object would stay as they are: " +
				"what new wants of it otherwise would be held; nothing was changed\n",
		},
		"AdoptRecord": {
			objects: []string{owner, definition}, record: left, run: adopting(adoptOptions{clusterOptions: dry}),
			want: "Instance db-1 would be created again, would only observe, and would be a part of Database old; nothing was changed\n",
		},
		"Release": {
			objects: []string{left}, run: releasing(releaseOptions{clusterOptions: dry}),
			want: "Instance db-1 would stand by itself, and its gate would stay as it is; nothing was changed\n",
		},
		"ReleaseForGood": {
			objects: []string{left}, run: releasing(releaseOptions{}), want: "Instance db-1 stands by itself; its gate stays as it is\n",
		},
		"Orphan": {
			objects: []string{left}, run: releasing(releaseOptions{clusterOptions: dry, orphan: true}),
			want: "Instance db-1 would go, and no provider would be asked to delete external object \"prod-db\"; nothing was changed\n",
		},
		"OrphanForGood": {
			objects: []string{left}, run: releasing(releaseOptions{orphan: true}),
			want: "Instance db-1 is gone; no provider was asked to delete external object \"prod-db\", and whether it exists was not checked\n",
		},
		"OrphanRecord": {
			record: left, run: releasing(releaseOptions{clusterOptions: dry, orphan: true}),
			want: "the record of Instance db-1 would go; no provider is asked to delete external object \"prod-db\"; nothing was changed\n",
		},
		"OrphanRecordForGood": {
			record: left, run: releasing(releaseOptions{orphan: true}),
			want: "the record of Instance db-1 is gone; no provider is asked to delete external object \"prod-db\", and whether it exists was not checked\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, _ := given(t, tc.objects, tc.record)

			var out bytes.Buffer
			if err := tc.run(t, c, &out); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestObjectsAreNamedAsKubectlNamesThem(t *testing.T) {
	t.Parallel()

	c, _ := given(t, []string{left}, "")
	as := outputOptions{format: formatName, objects: true}

	var out bytes.Buffer
	if err := trace(t.Context(), c, &out, []string{"instances/db-1"}, false, as); err != nil {
		t.Fatal(err)
	}

	if err := as.result(&out, c, func(out io.Writer) error {
		return release(t.Context(), c, out, []string{"instances/db-1"}, releaseOptions{})
	}); err != nil {
		t.Fatal(err)
	}

	as.format = formatPath + "{.objects[*].name} {.dryRun}"

	if err := as.result(&out, c, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}

	// Traced, released, and as a template has it.
	const line = "instance.rds.example.org/db-1\n"
	if diff := cmp.Diff(strings.Repeat(line, 2)+"db-1 ", out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// listed are the resources of some groups, as discovery lists them.
func listed(group string, resources ...metav1.APIResource) *restmapper.APIGroupResources {
	version := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
	if group == "" {
		version.GroupVersion = "v1"
	}

	return &restmapper.APIGroupResources{
		Group:              metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
		VersionedResources: map[string][]metav1.APIResource{"v1": resources},
	}
}

func TestAKindOfSeveralGroupsIsNotTakenForOneOfThem(t *testing.T) {
	t.Parallel()

	object := metav1.APIResource{Name: "objects", SingularName: "object", Kind: "Object", ShortNames: []string{"obj"}}
	event := metav1.APIResource{Name: "events", SingularName: "event", Kind: "Event"}

	c := &cluster{mapper: restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{
		listed("", event, metav1.APIResource{Name: "pods", SingularName: "pod", Kind: "Pod"}), listed("events.k8s.io", event),
		listed("metrics.k8s.io", metav1.APIResource{Name: "pods", Kind: "PodMetrics"}),
		listed("kubernetes.m.crossplane.io", object), listed("kubernetes.crossplane.io", object),
		listed("apps", metav1.APIResource{Name: "deployments", SingularName: "deployment", Kind: "Deployment"}),
	})}

	const both = ": several groups have it, give it as one of these: object.kubernetes.crossplane.io, object.kubernetes.m.crossplane.io"

	for text, tc := range map[string]struct{ want, err string }{
		"object":                             {err: `cannot tell which "object" is meant` + both},
		"objects":                            {err: `cannot tell which "objects" is meant` + both},
		"Object":                             {err: `cannot tell which "Object" is meant` + both},
		"object.kubernetes.crossplane.io":    {want: "objects.kubernetes.crossplane.io"},
		"objects.kubernetes.m.crossplane.io": {want: "objects.kubernetes.m.crossplane.io"},
		"deployment":                         {want: "deployments.apps"},
		"event":                              {want: "events"}, // The core group cannot be named.
		"pods":                               {want: "pods"},
	} {
		m, err := c.mapping(text)

		switch {
		case tc.err != "":
			if err == nil || err.Error() != tc.err || exitCode(err) != exitUsage {
				t.Errorf("%s: %v, want %s", text, err, tc.err)
			}
		case err != nil || m.Resource.GroupResource().String() != tc.want:
			t.Errorf("%s: %v, %v, want %s", text, m, err, tc.want)
		}
	}
}

func TestAnAPIThatIsDownIsInTheWayOnlyWhereItIsGoverned(t *testing.T) {
	t.Parallel()

	const governs = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kausality}
webhooks: [{name: governed.kausality.io, rules: [{apiGroups: [shop.example.org], resources: [databases]}]}]`

	errDown := errors.New("the server is currently unable to handle the request")
	down := func(group string) error {
		return &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: group, Version: "v1"}: errDown}}
	}

	for name, tc := range map[string]struct {
		failed error
		want   string
		err    error
	}{
		"All":      {},
		"Other":    {failed: down("metrics.example.org"), want: "metrics.example.org/v1 cannot be listed, and is left alone, for Kausality governs nothing of it: " + errDown.Error() + "\n"},
		"Governed": {failed: down("shop.example.org"), err: errGoverned},
		"Nothing":  {failed: errDown, err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, _ := given(t, []string{governs}, "")

			var out bytes.Buffer

			err := uninstallation{c}.unlisted(t.Context(), &out, tc.failed)
			if !errors.Is(err, tc.err) || out.String() != tc.want {
				t.Errorf("%v, %q, want %v, %q", err, out.String(), tc.err, tc.want)
			}
		})
	}
}
