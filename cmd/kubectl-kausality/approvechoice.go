// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
)

const (
	// digestPrefix begins each digest.
	digestPrefix = digest.Prefix
	// shownDigest is how many hexadecimal digits of a digest people are shown.
	shownDigest = 12
)

var (
	// errNoChange is the cause when no change has a digest that begins so.
	errNoChange = errors.New("no change that waits has such a digest")
	// errSeveral is the cause when several have.
	errSeveral = errors.New("several changes have such a digest: give more of it")
	// errSomeLeft is the cause when not all can be decided about, and nobody has said that they mean the
	// rest.
	errSomeLeft = errors.New("some of it cannot be decided about; if the rest is meant, give")
	// errNoneLeft is the cause when nothing of what is meant can be decided about.
	errNoneLeft = errors.New("nothing of it can be named by a digest")
)

// shortDigest is what people are shown of a digest, and may give for it.
func shortDigest(text string) string {
	hex := strings.TrimPrefix(text, digestPrefix)

	return hex[:min(len(hex), shownDigest)]
}

// choice is what of a PendingChange is decided about.
type choice struct {
	change *v1alpha1.PendingChange
	// chosen are the changes that are decided about.
	chosen []v1alpha1.HeldChange
	// left are those that were meant, and cannot be.
	left []v1alpha1.HeldChange
	// granted are those that are approved already, and are being made.
	granted []v1alpha1.HeldChange
}

// choose takes the changes of which the digests begin as asked for, or all without that. What
// was decided about already is left out, and so is what is approved, where it is to be.
func choose(p *v1alpha1.PendingChange, prefixes, decided []string, as v1alpha1.ApprovalDecision) (choice, error) {
	out := choice{change: p}

	digests, err := matching(p, prefixes)
	if err != nil {
		return out, err
	}

	for _, e := range p.Status.Changes {
		switch {
		case len(prefixes) > 0 && !slices.Contains(digests, e.Digest), e.Digest != "" && slices.Contains(decided, e.Digest):
		case unapprovable(e) != "":
			out.left = append(out.left, e)
		case as.Approves() && granted(p, e.Digest):
			out.granted = append(out.granted, e)
		default:
			out.chosen = append(out.chosen, e)
		}
	}

	return out, nil
}

// matching are the digests that begin as asked for, of one change each.
func matching(p *v1alpha1.PendingChange, prefixes []string) ([]string, error) {
	var out []string

	for _, prefix := range prefixes {
		var found []string

		for _, e := range p.Status.Changes {
			if e.Digest != "" && strings.HasPrefix(e.Digest, digestPrefix+strings.TrimPrefix(prefix, digestPrefix)) {
				found = append(found, e.Digest)
			}
		}

		switch found = slices.Compact(slices.Sorted(slices.Values(found))); len(found) {
		case 1:
			out = append(out, found...)
		case 0:
			return nil, fmt.Errorf("cannot find change %q of %s: %w", prefix, shortText(p.Spec.ObjectRef), errNoChange)
		default:
			return nil, fmt.Errorf("cannot tell which change %q of %s is meant: %w", prefix, shortText(p.Spec.ObjectRef), errSeveral)
		}
	}

	return out, nil
}

// granted reports whether a change has all the approvals that it needs, and none of them says
// otherwise.
func granted(p *v1alpha1.PendingChange, change string) bool {
	return slices.ContainsFunc(p.Status.Approvals, func(a v1alpha1.PendingApproval) bool {
		return a.Digest == change && a.State == v1alpha1.ApprovalStateGranted
	})
}

// digests are those of what is decided about, each once.
func (c choice) digests() []string {
	var out []string

	for _, e := range c.chosen {
		if !slices.Contains(out, e.Digest) {
			out = append(out, e.Digest)
		}
	}

	return out
}

// destroyed are the changes among those that are decided about that destroy something.
func (c choice) destroyed() []v1alpha1.HeldChange {
	return slices.DeleteFunc(slices.Clone(c.chosen), func(e v1alpha1.HeldChange) bool { return !e.Destroys })
}
