// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Why there are no parameters to evaluate with, though there may be objects that hold them.
var (
	// ErrParamNamespace is the cause where it is not known in which namespace they are.
	ErrParamNamespace = errors.New("its paramRef names no namespace, and the object belongs to none")
	// ErrParamsAwaited is the cause where somebody was asked for them, and will have the same
	// decided once more with them: that is no problem.
	ErrParamsAwaited = errors.New("they have not been sent yet")

	errManyParams = fmt.Errorf("more than %d are found", expression.MaxParams)
	// errOfOthers is the cause where parameters of several namespaces are found as those of
	// one: whoever found them took the kind for cluster-scoped, which it was before.
	errOfOthers = errors.New("some that are found are in another namespace")
	// errNoParams is the cause where nobody can read them.
	errNoParams = errors.New("nobody reads them here")
	// errUnread is of all of these, but for what is awaited.
	errUnread = errors.New("cannot read its parameters")
)

// unread is the evaluation where parameters cannot be read.
func unread(q expression.ParamQuery, err error) Evaluation {
	out := Evaluation{Kind: LackParameter, Missing: fmt.Sprintf("its parameters cannot be read: %s: %s", q, err)}
	if !errors.Is(err, ErrParamsAwaited) {
		out.Problem = fmt.Errorf("%w: %s: %w", errUnread, q, err)
	}

	return out
}

// unusable says why what was found is not to be used; nil where it is.
func unusable(q expression.ParamQuery, list []map[string]any) error {
	if len(list) > expression.MaxParams {
		return errManyParams
	}

	for _, object := range list {
		switch namespace := resource.String(object, "metadata", "namespace"); {
		case namespace == "" || namespace == q.Namespace:
		case q.Namespace == "":
			return ErrParamNamespace
		default:
			return errOfOthers
		}
	}

	return nil
}

// Unread is the first among some problems because of which it is not known what a policy
// says: its parameters could not be read, and may be another time. It is nil where there is
// none; that there are too many, or that it is not said in which namespace, is known.
func Unread(problems ...error) error {
	for _, err := range problems {
		if errors.Is(err, errUnread) && !errors.Is(err, errManyParams) && !errors.Is(err, ErrParamNamespace) {
			return err
		}
	}

	return nil
}
