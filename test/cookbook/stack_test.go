// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestTheAPIServerDoesWhatThePlaysShow has those who ask in the plays do so, one after the other: recipes
// are about the same kinds.
func TestTheAPIServerDoesWhatThePlaysShow(t *testing.T) {
	all := recipes(t)
	files := cookbook.Plays(policytest.Disk(), dir, all)
	plays := make([]cookbook.Play, len(all))

	for i, r := range all {
		var err error
		if plays[i], err = cookbook.ReadPlay(files, dir, r); err != nil {
			t.Fatal(err)
		}
	}

	s := newStage(t, plays)

	for _, play := range plays {
		t.Run(play.Anchor, func(t *testing.T) {
			for i := range play.Scenarios {
				one := &play.Scenarios[i]
				if one.Request == nil {
					continue // Of gates: see elsewhere.
				}

				passed := t.Run(filepath.Base(one.Name), func(t *testing.T) {
					began := time.Now()
					c := cast{s, t, play.Recipe, policytest.NewReader(files)}

					if err := scenario.Eventually(t.Context(), one.Reason, func(ctx context.Context) error {
						_, err := c.play(ctx, one)

						return err
					}); err != nil {
						t.Error(err)
					}

					t.Logf("%s %s", one.Reason, time.Since(began).Round(time.Millisecond))
				})
				if !passed {
					break // Where the stage is not as it should be, what is played on it says nothing.
				}
			}

			if play.Anchor == bound {
				s.bindings(t, play.Recipe)
			}
		})
	}

	if err := scenario.Eventually(t.Context(), "an empty stage", func(ctx context.Context) error {
		return errors.Join(s.clear(ctx), s.force(ctx, nil))
	}); err != nil {
		t.Error(err)
	}
}

// cast plays the scenarios of a recipe.
type cast struct {
	*stage

	t      *testing.T
	recipe cookbook.Recipe
	reader *policytest.Reader
}

// play plays a scenario on an empty stage, and returns the object as it is then. An error says what was
// otherwise than the engine decides.
func (c cast) play(ctx context.Context, one *policytest.Scenario) (*unstructured.Unstructured, error) {
	c.connect() // What clients know of kinds may be out of date.

	if err := c.clear(ctx); err != nil {
		return nil, err
	}

	return c.enact(ctx, one)
}

// enact plays it on what is on the stage.
func (c cast) enact(ctx context.Context, one *policytest.Scenario) (*unstructured.Unstructured, error) {
	// 1. What led to it is played.
	var owner *unstructured.Unstructured

	if after := one.Request.ParentAfter; after != "" {
		var err error
		if owner, err = c.before(ctx, after); err != nil {
			return nil, err
		}
	}

	// 2. What is in force is, at the time of the scenario.
	req, _ := one.Decision()
	now := time.Now().UTC().Truncate(time.Minute)
	then := req.Basis.Now.Truncate(time.Minute)
	recipe, err := c.recipe.Moved(then, now)
	if err != nil {
		return nil, err
	}

	set, err := setOf(one, recipe)
	if err == nil {
		err = c.define(ctx, kindsOf(one))
	}

	if err == nil {
		err = c.force(ctx, set)
	}

	if err == nil {
		err = c.activate(ctx, one)
	}

	if err != nil {
		return nil, err
	}

	// 3. What was there before is.
	if ns := one.Namespace; ns != nil {
		labels := ns.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}

		if err := c.namespace(ctx, ns.GetName(), labels); err != nil {
			return nil, err
		}
	}

	if one.Parent != nil && owner == nil {
		if owner, err = c.put(ctx, one.Parent, nil); err != nil {
			return nil, err
		}
	}

	var old *unstructured.Unstructured
	if one.Old != nil {
		was, err := c.served(ctx, one.Old, set)
		if err != nil {
			return nil, err
		}

		if old, err = c.put(ctx, was, owner); err != nil {
			return nil, err
		}
	}

	// 4. They ask.
	as := newActor(c.t, one)
	got, err := c.ask(ctx, as, one, old, owner)

	return got, answered(one, got, err, as.warnings(), now.Sub(then))
}

// before plays the scenario that leaves the parent, and returns that.
func (c cast) before(ctx context.Context, path string) (*unstructured.Unstructured, error) {
	led, err := c.reader.Read(policytest.Place{Root: dir, Path: path})
	if err != nil {
		return nil, err
	}

	// It is to be there while what follows is played, though it be deleted.
	if led.Old != nil {
		led.Old.SetFinalizers(append(led.Old.GetFinalizers(), finalizer))
	}

	return c.enact(ctx, &led)
}

// answered compares what the API server answers with what the engine decides.
func answered(one *policytest.Scenario, got *unstructured.Unstructured, err error, warnings []string, later time.Duration) error {
	req, _ := one.Decision()
	d := decision.Decide(req)
	want := policytest.Describe(d)

	if d.Outcome() == decision.OutcomeDenied {
		if !apierrors.IsForbidden(err) || !strings.Contains(earlier(err.Error(), later), want.Denied) {
			return fmt.Errorf("it is answered %w\nand not refused for: %s", errors.Join(err, world.ErrOther), want.Denied)
		}

		return nil
	}

	if err != nil {
		return fmt.Errorf("it is refused, and not %s: %w", d.Outcome(), err)
	}

	if len(want.Warnings) != len(warnings) {
		return fmt.Errorf("there are the warnings %q, and not %q: %w", warnings, want.Warnings, world.ErrOther)
	}

	for i, text := range want.Warnings {
		if !strings.Contains(earlier(warnings[i], later), text) {
			return fmt.Errorf("there is the warning %q, and not %q: %w", warnings[i], text, world.ErrOther)
		}
	}

	if d.Object == nil || one.New == nil {
		return nil
	}

	has, err := permissions(got)
	if err != nil {
		return err
	}

	gives, err := permissions(d.Object)
	if err != nil {
		return err
	}

	if diff := cmp.Diff(gives, has); diff != "" {
		return fmt.Errorf("what may follow is otherwise, -want, +got: %s(%w)", diff, world.ErrOther)
	}

	return nil
}

// earlier is a text with its times as they are on the page.
func earlier(text string, by time.Duration) string {
	out, err := (cookbook.Recipe{Text: text}).Moved(time.Time{}.Add(by), time.Time{})
	if err != nil {
		return err.Error()
	}

	return out.Text
}

// permissions are the allowances of an object, and who initiated them.
func permissions(u *unstructured.Unstructured) ([]string, error) {
	list, err := allowance.Parse(u)
	out := make([]string, len(list))

	for i, a := range list {
		out[i] = fmt.Sprintf("%s: %s %s.%s %s%v, by %s", a.Policy, a.Relation, a.Kind, a.APIGroup, a.Mutation, a.Mutations, a.Initiator)
		for _, hop := range a.Trace {
			out[i] += fmt.Sprintf(", %s %s %v", hop.Kind, hop.Field, hop.Attestations)
		}
	}

	slices.Sort(out)

	return out, err
}
