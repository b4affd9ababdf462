// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// loses takes all rights away from somebody whom [approverNamed] has given some.
func (p pendings) loses(ctx context.Context, a approver) error {
	scheme := p.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}

	return p.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "approver-" + a.name}})
}

// TestWhoHasLostTheRightLetsNothingThrough though they had it when they approved.
func TestWhoHasLostTheRightLetsNothingThrough(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-right")
	berta := approverNamed(t, "exact-right-berta", approvesStores()...)
	clara := approverNamed(t, "exact-right-clara", approvesStores()...)

	outside := s.outsideHistory(t, sizeAndVersion)

	var object string

	s.play(t, []scenario.Step{
		{Title: "What is held is approved while Crossplane does nothing", Run: func(ctx context.Context) (err error) {
			if err := s.made(ctx, "data"); err != nil {
				return err
			}

			if object, _, err = s.upgraded(ctx, "v2"); err != nil {
				return err
			}

			if err := s.halted(ctx); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, s.pending, "exact-right", object); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a grant", all(s.carries(1), s.pending.decided("exact-right", object, v1alpha1.ApprovalStateGranted)))
		}},
		{Title: "Once the right is gone it lets nothing through, and says so", Run: func(ctx context.Context) error {
			if err := s.pending.loses(ctx, berta); err != nil {
				return err
			}

			// The manager asks again every 15 seconds.
			if err := scenario.Eventually(ctx, "no grant", all(s.carries(0), s.pending.decided("exact-right", object, v1alpha1.ApprovalStateNotAllowed,
				`user "exact-right-berta" may not approve changes of Object`, "Bind a role"))); err != nil {
				return err
			}

			if err := s.resumed(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a store that Crossplane looks after", s.looked); err != nil {
				return err
			}

			return still(ctx, all(outside.were("small v1"), s.says("2 changes held"), s.carries(0)))
		}},
		{Title: "Somebody else approves it, who has the right", Run: func(ctx context.Context) error {
			if err := clara.approveExactly(ctx, s.pending, "exact-right-else", object); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the new version outside", all(s.shows("version", "v2", "data"), s.spent,
				s.pending.decided("exact-right-else", object, v1alpha1.ApprovalStateApplied),
				s.pending.decided("exact-right", object, v1alpha1.ApprovalStateSuperseded))); err != nil {
				return err
			}

			return still(ctx, outside.were("small v1", "small v2"))
		}},
	})
}

// looked checks that Crossplane does not leave the XR alone any more.
func (c cluster) looked(ctx context.Context) error {
	xr, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if synced, _ := resource.ConditionOf(xr, "Synced"); synced.Reason != "ReconcileSuccess" {
		return fmt.Errorf("Synced is %q: %w", synced.Reason, world.ErrOther)
	}

	return nil
}

// nested has composite resources of a kind each compose a store, as malls do.
func (c cluster) nested(ctx context.Context, kind string) error {
	text, err := os.ReadFile(filepath.Join("testdata", "malls.yaml"))
	if err != nil {
		return err
	}

	lower := strings.ToLower(kind)

	return c.apply(ctx, admin, strings.NewReplacer("Mall", kind, "malls", lower+"s", "mall-", lower+"-").Replace(string(text)))
}

// TestAnApprovalExpiresBetweenTwoLevels of composite resources: what it has let through by then stays,
// and nothing else follows.
func TestAnApprovalExpiresBetweenTwoLevels(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const validFor = 40 * time.Second

	c := newCluster(t, "Bazaar", "exact-expiry")
	below := c.of("Store", "exact-expiry-store")
	p := pendingsOf(t, "shop.example.org/v1", "Bazaar", namespace, c.name)
	berta := approverNamed(t, "exact-expiry-berta", append(approvesStores(), [3]string{v1alpha1.VerbApprove, "shop.example.org", "stores"})...)
	ofStore := held{kind: "Store", field: "spec.size", to: "huge", parent: "Bazaar"}
	ofObject, ofNote := held{kind: "Object", field: objectVersion, to: "v2", parent: "Store"}, held{kind: "ConfigMap", field: noteVersion, to: "v2", parent: "Store"}

	outside := below.outsideHistory(t, sizeAndVersion)

	var store, object, note string

	c.play(t, []scenario.Step{
		{Title: "Something is held on both levels", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.nested(ctx, "Bazaar"), c.apply(ctx, admin, storeComposition("bazaar-stores", "v1", "data")),
				c.apply(ctx, hans, sized("Bazaar", c.name, "small"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small bazaar", all(below.shows("size", "small", "data"), below.settled, c.settled)); err != nil {
				return err
			}

			if err := errors.Join(c.apply(ctx, admin, storeComposition("bazaar-stores", "v2", "data")), c.apply(ctx, anna, sized("Bazaar", c.name, "huge"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists([]string{annaName}, ofStore, ofObject, ofNote)); err != nil {
				return err
			}

			var err, err2, err3 error

			store, err = p.digest(ctx, ofStore)
			object, err2 = p.digest(ctx, ofObject)
			note, err3 = p.digest(ctx, ofNote)

			return errors.Join(err, err2, err3)
		}},
		{Title: "All of it is approved for a while, in which Crossplane looks after the upper level alone", Run: func(ctx context.Context) error {
			if err := below.halted(ctx); err != nil {
				return err
			}

			cha := p.approving("exact-expiry", store, object, note)
			cha.Spec.ValidFor = &metav1.Duration{Duration: validFor}

			if err := berta.Create(ctx, cha); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the upper level", all(p.decided("exact-expiry", store, v1alpha1.ApprovalStateApplied), c.spent,
				p.decided("exact-expiry", object, v1alpha1.ApprovalStateGranted), p.decided("exact-expiry", note, v1alpha1.ApprovalStateGranted), below.carries(2)))
		}},
		{Title: "It expires, and says so", Run: func(ctx context.Context) error {
			words := []string{"not used by ", "create a new ChangeApproval"}

			return scenario.Eventually(ctx, "the end of it", all(p.decided("exact-expiry", store, v1alpha1.ApprovalStateApplied),
				p.decided("exact-expiry", object, v1alpha1.ApprovalStateExpired, words...), p.decided("exact-expiry", note, v1alpha1.ApprovalStateExpired, words...),
				p.saysOf("exact-expiry", v1alpha1.ApprovalStateExpired, "of 3 changes: 2 Expired, 1 Applied"), below.carries(0)))
		}},
		{Title: "Nothing that it was for goes through on the lower level, but what follows by policy from the upper one", Run: func(ctx context.Context) error {
			if err := below.resumed(ctx); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a huge store", all(below.looked, below.shows("size", "huge", "data"), below.spent, p.lists([]string{annaName}, ofObject, ofNote))); err != nil {
				return err
			}

			return still(ctx, all(outside.were("small v1", "huge v1"), below.note("version", "v1"), below.carries(0)))
		}},
	})
}

// saysOf checks the condition of a ChangeApproval.
func (p pendings) saysOf(name string, state v1alpha1.ApprovalState, words ...string) check {
	return func(ctx context.Context) error {
		cha := &v1alpha1.ChangeApproval{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: p.root.Namespace, Name: name}, cha); err != nil {
			return err
		}

		c := meta.FindStatusCondition(cha.Status.Conditions, v1alpha1.ConditionApplied)
		if c == nil || c.Reason != string(state) || !mentions(c.Message, words...) {
			return fmt.Errorf("ChangeApproval %q says %+v, not %s, %q: %w", name, c, state, words, world.ErrOther)
		}

		return nil
	}
}

// salons are stores of which a size takes the approval of two people, whoever asks for it.
const salonPolicy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata:
  name: salon-size
spec:
  match: {apiGroup: shop.example.org, kind: Salon, fields: [spec.size]}
  subjects:
  - {kind: Group, name: platform-team, mayInitiate: true}
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.size]}
  - {kind: ConfigMap, mutations: [data.size]}
  - {relation: External, mutations: [Update]}
  approval: {required: 2}
`

// salons applies their kind, with a note that nothing is composed of.
func (c cluster) salons(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join("testdata", "stores.yaml"))
	if err != nil {
		return err
	}

	kind, _, _ := strings.Cut(string(text), "\n---\n")
	kind = strings.NewReplacer("Store", "Salon", "stores", "salons", "size: {type: string}", "size: {type: string}\n              note: {type: string}").Replace(kind)

	return errors.Join(c.apply(ctx, admin, kind), c.apply(ctx, admin, salonPolicy),
		c.apply(ctx, admin, strings.ReplaceAll(storeComposition("salons", "v1", "data"), "kind: Store", "kind: Salon")))
}

// TestAPolicyThatAsksForTwoPeopleGetsTwo besides those who ask for the change, whenever they do.
func TestAPolicyThatAsksForTwoPeopleGetsTwo(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Salon", "exact-people")
	p := pendingsOf(t, "shop.example.org/v1", "Salon", namespace, c.name)

	people := map[string]approver{}
	for _, name := range []string{hansName, "exact-people-berta", "exact-people-clara", "exact-people-dora"} {
		people[name] = approverNamed(t, name, approvesStores()...)
	}

	berta, clara, dora := people["exact-people-berta"], people["exact-people-clara"], people["exact-people-dora"]
	large := []held{{kind: "Object", field: objectSize, to: "large"}, {kind: "ConfigMap", field: noteSize, to: "large"}}

	outside := c.outsideHistory(t, sizeAndVersion)

	var digests []string

	// state checks what all changes of a ChangeApproval are, and what it says of one.
	state := func(name string, state v1alpha1.ApprovalState, words ...string) check {
		return all(p.becomes(name, state), p.decided(name, digests[0], state, words...))
	}

	c.play(t, []scenario.Step{
		{Title: "What somebody asks for who may, alone, is held", Run: func(ctx context.Context) error {
			if err := errors.Join(c.salons(ctx), c.apply(ctx, hans, sized("Salon", c.name, "small"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small salon", all(c.shows("size", "small", "data"), c.settled)); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Salon", c.name, "large")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", all(p.lists([]string{hansName}, large...), p.requires(2))); err != nil {
				return err
			}

			for _, h := range large {
				d, err := p.digest(ctx, h)
				if err != nil {
					return err
				}

				digests = append(digests, d)
			}

			return nil
		}},
		{Title: "Who asks for it does not approve it", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a refusal", func(ctx context.Context) error {
				err := people[hansName].Create(ctx, p.approving("people-own", digests...))
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "requested the change and cannot approve it") {
					return fmt.Errorf("%w: %w", err, world.ErrOther)
				}

				return nil
			})
		}},
		{Title: "One is not enough, however often they approve it", Run: func(ctx context.Context) error {
			for _, name := range []string{"people-berta", "people-berta-again"} {
				if err := berta.approveExactly(ctx, p, name, digests...); err != nil {
					return err
				}

				if err := scenario.Eventually(ctx, "a state", state(name, v1alpha1.ApprovalStateWaiting, "1 of 2 approvals: one more person must approve it")); err != nil {
					return err
				}
			}

			return still(ctx, all(outside.were("small v1"), c.carries(0), c.says("2 changes held")))
		}},
		{Title: "Nor is one who asks for something themselves since", Run: func(ctx context.Context) error {
			salon, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := impersonate(t, berta.name, "system:masters").Patch(ctx, salon, world.Merge(`{"spec": {"note": "also mine"}}`)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no approval", all(p.lists([]string{berta.name, hansName}, large...),
				state("people-berta", v1alpha1.ApprovalStateNotAllowed, `user "exact-people-berta" requested the change and cannot approve it`))); err != nil {
				return err
			}

			if err := clara.approveExactly(ctx, p, "people-clara", digests...); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a state", state("people-clara", v1alpha1.ApprovalStateWaiting, "1 of 2 approvals")); err != nil {
				return err
			}

			return still(ctx, all(outside.were("small v1"), c.carries(0), c.says("2 changes held")))
		}},
		{Title: "Two others are", Run: func(ctx context.Context) error {
			if err := dora.approveExactly(ctx, p, "people-dora", digests...); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a large salon", all(c.shows("size", "large", "data"), c.note("size", "large"), c.settled, c.spent,
				p.becomes("people-clara", v1alpha1.ApprovalStateApplied), p.becomes("people-dora", v1alpha1.ApprovalStateApplied))); err != nil {
				return err
			}

			return still(ctx, outside.were("small v1", "large v1"))
		}},
	})
}

// requires checks how many people have to approve what is listed.
func (p pendings) requires(want int32) check {
	return func(ctx context.Context) error {
		pch, err := p.get(ctx)
		if err == nil && pch.Status.Required != want {
			err = fmt.Errorf("it takes %d people, not %d: %w", pch.Status.Required, want, world.ErrOther)
		}

		return err
	}
}
