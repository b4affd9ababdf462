// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// PolicyGates are what policies say of the gates that their allowances open.
type PolicyGates struct {
	Reader   client.Reader
	Compiled *policy.Cache
}

// Of returns what any policy says. While a policy cannot be read its gates stay
// open.
func (p *PolicyGates) Of(ctx context.Context) func(name string) *policy.Gate {
	return func(name string) *policy.Gate {
		obj := &v1alpha1.AllowancePolicy{}

		err := p.Reader.Get(ctx, client.ObjectKey{Name: name}, obj)

		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return &policy.Gate{Broken: fmt.Errorf("cannot get the policy: %w", err)}
		default:
			return p.Compiled.Gate(obj)
		}
	}
}
