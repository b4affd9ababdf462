// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/engine/check"
)

// GroupCrossplane is the group of XRDs and Compositions.
const GroupCrossplane = "apiextensions.crossplane.io"

// AddXRD adds the kinds that an XRD defines: the XR's and the Claim's, with the CRDs that
// Crossplane makes of it. It is given as its JSON.
func (k *Kinds) AddXRD(raw []byte) error {
	xrd := &xpv1.CompositeResourceDefinition{}
	if err := json.Unmarshal(raw, xrd); err != nil {
		return fmt.Errorf("cannot read it: %w", err)
	}

	// The API server's defaults are not those of the Go type.
	if xrd.Spec.Scope == nil && xrd.GroupVersionKind().Version == "v2" {
		xrd.Spec.Scope = ptr.To(xpv1.CompositeResourceScopeNamespaced)
	}

	xr, err := xcrd.ForCompositeResource(xrd)
	if err != nil {
		return fmt.Errorf("cannot derive the CRD of its XR: %w", err)
	}

	if err := k.AddCRD(xr); err != nil {
		return err
	}

	if xrd.Spec.ClaimNames == nil {
		return nil
	}

	claim, err := xcrd.ForCompositeResourceClaim(xrd)
	if err != nil {
		return fmt.Errorf("cannot derive the CRD of its Claim: %w", err)
	}

	if err := k.AddCRD(claim); err != nil {
		return err
	}

	k.composed = append(k.composed, check.Composed{
		Parent: schema.GroupKind{Group: xrd.Spec.Group, Kind: claim.Spec.Names.Kind},
		Child:  schema.GroupKind{Group: xrd.Spec.Group, Kind: xr.Spec.Names.Kind},
		Alone:  true,
	})

	return nil
}

// AddComposition adds what is known of a Composition: that XRs of its type are made of the
// resources that its functions' inputs have as base, and of others that it does not tell.
func (k *Kinds) AddComposition(raw []byte) error {
	c := &xpv1.Composition{}
	if err := json.Unmarshal(raw, c); err != nil {
		return fmt.Errorf("cannot read it: %w", err)
	}

	parent := schema.FromAPIVersionAndKind(c.Spec.CompositeTypeRef.APIVersion, c.Spec.CompositeTypeRef.Kind).GroupKind()

	for _, step := range c.Spec.Pipeline {
		if step.Input == nil {
			continue
		}

		var in struct {
			Resources []struct {
				Base struct {
					APIVersion string `json:"apiVersion"`
					Kind       string `json:"kind"`
				} `json:"base"`
			} `json:"resources"`
		}

		if json.Unmarshal(step.Input.Raw, &in) != nil {
			continue // The input of another function, whose resources are something else.
		}

		for _, r := range in.Resources {
			if r.Base.Kind != "" {
				k.composed = append(k.composed, check.Composed{
					Parent: parent, Child: schema.FromAPIVersionAndKind(r.Base.APIVersion, r.Base.Kind).GroupKind(),
				})
			}
		}
	}

	return nil
}
