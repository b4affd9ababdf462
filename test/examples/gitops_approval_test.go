// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// The service accounts that apply what is in Git.
const (
	team             = "team-a"
	storesAccount    = "stores"
	approvalsAccount = "approvals"
	storesUser       = "system:serviceaccount:" + team + ":" + storesAccount
	approvalsUser    = "system:serviceaccount:" + team + ":" + approvalsAccount
)

// manifests are those that docs/approvals.md shows, by kind and name.
type manifests map[string]*unstructured.Unstructured

// documented reads what the page shows below "From Git".
func documented(t *testing.T) manifests {
	t.Helper()

	page, err := os.ReadFile(filepath.Join(root, "docs", "approvals.md"))
	if err != nil {
		t.Fatal(err)
	}

	out := manifests{}

	for _, s := range play.Sections(string(page)) {
		for _, b := range s.Blocks {
			if s.Heading != "From Git" || b.Language != "yaml" {
				continue
			}

			for _, u := range world.Parse(t, []byte(b.Text)) {
				out[u.GetKind()+" "+u.GetName()] = u
			}
		}
	}

	return out
}

// get is a copy of one, which may be edited.
func (m manifests) get(t *testing.T, kindAndName string, edits ...edit) *unstructured.Unstructured {
	t.Helper()

	u := m[kindAndName]
	if u == nil {
		t.Fatalf("docs/approvals.md does not show %s", kindAndName)
	}

	u = u.DeepCopy()
	for _, edit := range edits {
		edit(u)
	}

	return u
}

// with sets a field.
func with(value any, path ...string) edit {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// saved is the path of a file with a manifest.
func saved(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()

	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), u.GetKind()+".json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// edit is one of a manifest.
type edit = func(*unstructured.Unstructured)

// tool applies what is in Git as a service account, by the manifests of the page.
type tool struct {
	// changes and approvals have it begin. So has both, with one service account for both, which the
	// page says is refused.
	changes, approvals, both func(t *testing.T, shown manifests) *syncing
	// keepsApart is what it says itself of an approval among the changes; empty for nothing.
	keepsApart string
	// same is what it says of an object that is as in Git.
	same string
}

// inFlux is a Kustomization that names a service account of its namespace.
func inFlux(name, account string) func(*testing.T, manifests) *syncing {
	return func(t *testing.T, shown manifests) *syncing {
		t.Helper()

		k := shown.get(t, "Kustomization approvals", with(name, "metadata", "name"), with(account, "spec", "serviceAccountName"))

		return gitops{name: "flux", config: saved(t, k)}.syncs(t, name, "reconcile")
	}
}

// inArgoCD is an Application of an AppProject that names one.
func inArgoCD(name string, project *unstructured.Unstructured, edits ...edit) func(*testing.T, manifests) *syncing {
	return func(t *testing.T, shown manifests) *syncing {
		t.Helper()

		edits := append(edits, with(name, "metadata", "name"), with(project.GetName(), "spec", "project"))
		app := shown.get(t, "Application team-a-approvals", edits...)

		return gitops{name: "argocd", user: argoCD, config: saved(t, app)}.syncs(t, name, "autosync", "--as="+argoCD, "--project="+saved(t, project))
	}
}

// TestApprovalsComeFromGit has the tools' own code apply changes, and approvals as somebody else, all
// the time.
func TestApprovalsComeFromGit(t *testing.T) {
	world.Long(t)

	t.Parallel()

	shown := documented(t)
	admin := somebody(t)

	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(team)
	world.Apply(t, admin, namespace)

	for _, u := range append(decodeFile(t, filepath.Join("..", "e2e", "testdata", "stores.yaml")),
		decodeFile(t, filepath.Join("testdata", "stores-from-git.yaml"))...) {
		world.Apply(t, admin, u)
	}

	for _, u := range []string{
		"ServiceAccount approvals", "Role approvals-from-git", "RoleBinding approvals-from-git", "RoleBinding approvers-from-git",
	} {
		world.Apply(t, admin, shown.get(t, u))
	}

	serverSide := with([]any{"ServerSideApply=true"}, "spec", "syncPolicy", "syncOptions")
	selfHeal := with(true, "spec", "syncPolicy", "automated", "selfHeal")
	changes, approvals := shown.get(t, "AppProject team-a"), shown.get(t, "AppProject team-a-approvals")
	both := shown.get(t, "AppProject team-a", func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "namespaceResourceBlacklist")
	})

	for name, tc := range map[string]struct {
		store string
		tool  tool
	}{
		"Flux": {"corner", tool{
			changes: inFlux("corner", storesAccount), approvals: inFlux("corner-approvals", approvalsAccount),
			both: inFlux("corner-both", storesAccount),
			same: "unchanged",
		}},
		"ArgoCD": {"harbour", tool{
			changes: inArgoCD("harbour", changes, selfHeal), approvals: inArgoCD("harbour-approvals", approvals),
			both:       inArgoCD("harbour-both", both),
			keepsApart: "resource kausality.io:ChangeApproval is not permitted in project team-a",
			same:       "Synced",
		}},
		"ArgoCD with server-side apply": {"market", tool{
			changes: inArgoCD("market", changes, serverSide, selfHeal), approvals: inArgoCD("market-approvals", approvals, serverSide, selfHeal),
			both:       inArgoCD("market-both", both, serverSide),
			keepsApart: "resource kausality.io:ChangeApproval is not permitted in project team-a",
			same:       "Synced",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := storeFromGit{Client: typed(t), shown: shown, name: tc.store, tool: tc.tool}
			s.changes, s.approvals = tc.tool.changes(t, shown), tc.tool.approvals(t, shown)
			s.play(t)
		})
	}
}

// typed is a client of who may do everything, which knows our kinds.
func typed(t *testing.T) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	c, err := client.New(running.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}
