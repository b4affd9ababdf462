// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// Gate is what a policy says of the gates that its allowances open.
type Gate struct {
	// CloseWhen shows when a change is in the external system; nil where the
	// status is to show that.
	CloseWhen *expression.Expression
	// Broken is why CloseWhen cannot be used though there is one: the gate then
	// stays open. Nil otherwise.
	Broken error
	// Settle and MaxOpen are nil where the policy does not say.
	Settle, MaxOpen *time.Duration
	// WhenOverdue is empty where the policy does not say.
	WhenOverdue v1alpha1.OverdueAction
}

// Bounds of a policy's gate settings, as in its CRD.
const (
	maxSettle = 24 * time.Hour
	minOpen   = time.Second
	maxOpen   = 720 * time.Hour
)

// CompileGate compiles a policy's gate settings; nil for none. The errors carry
// the path of each field that is wrong; what is returned is good to use all the
// same, without the durations that are wrong.
func CompileGate(in *v1alpha1.GateSettings) (*Gate, field.ErrorList) {
	if in == nil {
		return nil, nil
	}

	var errs field.ErrorList

	at := field.NewPath("spec", "gate")
	g := &Gate{
		Settle:      within(in.Settle, 0, maxSettle, at.Child("settle"), &errs),
		MaxOpen:     within(in.MaxOpen, minOpen, maxOpen, at.Child("maxOpen"), &errs),
		WhenOverdue: in.WhenOverdue,
	}

	switch in.WhenOverdue {
	case "", v1alpha1.OverdueWarn, v1alpha1.OverdueClose:
	default:
		g.WhenOverdue = ""
		errs = append(errs, field.NotSupported(at.Child("whenOverdue"), in.WhenOverdue,
			[]v1alpha1.OverdueAction{v1alpha1.OverdueWarn, v1alpha1.OverdueClose}))
	}

	if in.CloseWhen == "" {
		return g, errs
	}

	if g.CloseWhen, g.Broken = compileCloseWhen(in.CloseWhen); g.Broken != nil {
		errs = append(errs, field.Invalid(at.Child("closeWhen"), in.CloseWhen, g.Broken.Error()))
	}

	return g, errs
}

// within returns a duration if it is within bounds.
func within(d *metav1.Duration, least, most time.Duration, at *field.Path, errs *field.ErrorList) *time.Duration {
	switch {
	case d == nil:
		return nil
	case d.Duration < least || d.Duration > most:
		*errs = append(*errs, field.Invalid(at, d.Duration.String(), fmt.Sprintf("must be between %s and %s", least, most)))

		return nil
	default:
		return &d.Duration
	}
}

// managedEnv returns the environment of expressions about a managed resource
// alone.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var managedEnv = sync.OnceValues(func() (*cel.Env, error) {
	return expression.NewEnv(cel.Variable(expression.VarObject, cel.DynType))
})

// compileCloseWhen compiles an expression about a managed resource. It costs as
// much as any expression of a policy may, and knows the same functions.
func compileCloseWhen(text string) (*expression.Expression, error) {
	env, err := managedEnv()
	if err != nil {
		return nil, err
	}

	return expression.CompileIn(env, text, nil)
}
