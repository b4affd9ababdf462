// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// finalizer keeps what is deleted until what follows from that was played.
const finalizer = "cookbook.example.org/played"

// An actor is a client of somebody that remembers what they are warned of.
type actor struct {
	client.Client

	mu   sync.Mutex
	said []string
}

// HandleWarningHeader remembers a warning.
func (a *actor) HandleWarningHeader(_ int, _, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.said = append(a.said, text)
}

// warnings are those so far.
func (a *actor) warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()

	return slices.Clone(a.said)
}

// newActor is whom a scenario has ask.
func newActor(t *testing.T, s *policytest.Scenario) *actor {
	t.Helper()

	req, _ := s.Decision()
	groups := slices.Clone(req.User.Groups)

	if account, ok := strings.CutPrefix(req.User.Name, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}

	a := &actor{}
	config := running.Config()
	config.QPS = -1
	config.WarningHandler = a
	config.Impersonate = rest.ImpersonationConfig{
		UserName: req.User.Name, UID: req.User.UID, Extra: req.User.Extra, Groups: append(groups, "system:authenticated"),
	}

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	a.Client = c

	return a
}

// put puts an object on the stage as a scenario has it, owned by another one where there is that.
func (s *stage) put(ctx context.Context, in, owner *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u := stripped(in, owner)
	status := in.Object["status"]

	if err := s.namespace(ctx, u.GetNamespace(), nil); err != nil {
		return nil, err
	}

	s.props = append(s.props, u)

	if err := s.manager.Create(ctx, u); err != nil {
		return nil, fmt.Errorf("cannot put %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if status == nil {
		return u, nil
	}

	raw, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}

	return u, s.manager.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, raw))
}

// served is an object whose record names windows by their UIDs. In a play the UID of an object is its name.
func (s *stage) served(ctx context.Context, u *unstructured.Unstructured, set []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	rec, err := allowance.ParseRecord(u)
	if err != nil || len(rec.Windows) == 0 {
		return u, err
	}

	for _, window := range set {
		i := slices.Index(rec.Windows, types.UID(window.GetName()))
		if i < 0 || window.GetKind() != "UpgradeAllowance" {
			continue
		}

		live := window.DeepCopy()
		if err := s.admin.Get(ctx, client.ObjectKeyFromObject(window), live); err != nil {
			return nil, err
		}

		rec.Windows[i] = live.GetUID()
	}

	out := u.DeepCopy()
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationRecord] = allowance.FormatRecord(rec)
	out.SetAnnotations(annotations)

	return out, nil
}

// stripped is an object of a scenario without what the API server gives, and with the UID of its owner.
func stripped(in, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := in.DeepCopy()
	u.SetUID("")
	u.SetGeneration(0)
	delete(u.Object, "status")

	refs := u.GetOwnerReferences()
	for i := range refs {
		if owner != nil && refs[i].Kind == owner.GetKind() {
			refs[i].UID = owner.GetUID()
		}
	}

	if len(refs) > 0 {
		u.SetOwnerReferences(refs)
	}

	return u
}

// clear takes from the stage what the scenario before put there.
func (s *stage) clear(ctx context.Context) error {
	for len(s.props) > 0 {
		last := s.props[len(s.props)-1]
		if err := s.remove(ctx, s.manager, last); err != nil {
			return err
		}

		s.props = s.props[:len(s.props)-1]
	}

	return nil
}

// ask asks what a scenario asks, about objects that are on the stage, and returns the object as it is then.
func (s *stage) ask(ctx context.Context, as *actor, one *policytest.Scenario, old, owner *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	switch request.Operation(one.Request.Operation) {
	case request.OperationCreate:
		u := stripped(one.New, owner)
		s.props = append(s.props, u)

		if err := s.namespace(ctx, u.GetNamespace(), nil); err != nil {
			return nil, err
		}

		return u, as.Create(ctx, u, options(one))
	case request.OperationDelete:
		err := as.Delete(ctx, old.DeepCopy(), deleteOptions(one)...)

		return old, err
	case request.OperationUpdate:
	}

	patch, err := mergePatch(one.Old, one.New)
	if err != nil {
		return nil, err
	}

	u := old.DeepCopy()

	return u, as.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), options(one))
}

// writeOptions are those of a request that creates or patches.
type writeOptions struct {
	client.FieldOwner

	dryRun bool
}

func (o writeOptions) ApplyToCreate(c *client.CreateOptions) {
	o.FieldOwner.ApplyToCreate(c)

	if o.dryRun {
		client.DryRunAll.ApplyToCreate(c)
	}
}

func (o writeOptions) ApplyToPatch(p *client.PatchOptions) {
	o.FieldOwner.ApplyToPatch(p)

	if o.dryRun {
		client.DryRunAll.ApplyToPatch(p)
	}
}

// options of the request.
func options(one *policytest.Scenario) writeOptions {
	manager, _ := one.Request.Options["fieldManager"].(string)

	return writeOptions{client.FieldOwner(manager), one.Request.DryRun}
}

func deleteOptions(one *policytest.Scenario) []client.DeleteOption {
	if one.Request.DryRun {
		return []client.DeleteOption{client.DryRunAll}
	}

	return nil
}

// mergePatch is what a scenario changes.
func mergePatch(from, to *unstructured.Unstructured) ([]byte, error) {
	a, err := json.Marshal(from.Object)
	if err != nil {
		return nil, err
	}

	b, err := json.Marshal(to.Object)
	if err != nil {
		return nil, err
	}

	return jsonpatch.CreateMergePatch(a, b)
}

// untyped is an object of ours as the API server gets it.
func untyped(kind string, in runtime.Object) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err != nil {
		return nil, err
	}

	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion("kausality.io/v1alpha1")
	u.SetKind(kind)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	delete(u.Object, "status")

	return u, nil
}
