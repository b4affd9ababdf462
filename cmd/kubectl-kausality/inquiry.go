// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// defaultCrossplane is the user name that Crossplane has where it is installed as its
// chart does.
const defaultCrossplane = "system:serviceaccount:crossplane-system:crossplane"

// inquiryOptions are those of commands that ask what holds for a change.
type inquiryOptions struct {
	clusterOptions

	crossplane string
}

func (o *inquiryOptions) flags(cmd *cobra.Command) {
	o.clusterOptions.flags(cmd)
	cmd.Flags().StringVar(&o.crossplane, "crossplane-service-account", defaultCrossplane, "User name Crossplane works under.")
}

// inquirer reads what decides a change.
type inquirer struct {
	*cluster
	identity

	crossplane string
	// params reads from the API server; nil has nobody read parameters.
	params client.Reader
}

// newInquirer connects to the cluster as whoever runs the command, and not as who would
// make the change.
func newInquirer(ctx context.Context, o inquiryOptions) (*inquirer, error) {
	as := o.overrides.AuthInfo
	o.overrides.AuthInfo.Impersonate, o.overrides.AuthInfo.ImpersonateUID = "", ""
	o.overrides.AuthInfo.ImpersonateGroups, o.overrides.AuthInfo.ImpersonateUserExtra = nil, nil

	if as.Impersonate == "" && (as.ImpersonateUID != "" || len(as.ImpersonateGroups) > 0) {
		return nil, usageError{errNoUser}
	}

	c, err := newCluster(o.clusterOptions)
	if err != nil {
		return nil, err
	}

	out := &inquirer{cluster: c, crossplane: o.crossplane}

	if out.params, err = client.New(c.config, client.Options{Mapper: c.mapper}); err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	if out.identity, err = c.identify(ctx, as.Impersonate, as.ImpersonateUID, as.ImpersonateGroups, as.ImpersonateUserExtra); err != nil {
		return nil, err
	}

	return out, nil
}

// errNoUser is the cause where a group is given, and no user.
var errNoUser = errors.New("--as-group and --as-uid are of the user that --as names: give that, too")

// request is the one that would change an object from one version to another, and what of
// all that decides it cannot be read. Either version is nil where there is none.
func (i *inquirer) request(ctx context.Context, from, to *unstructured.Unstructured) (request.Request, []string) {
	about := cmp.Or(to, from)
	req := request.Request{Operation: request.OperationUpdate, Old: from, New: to, User: i.user, Authorizer: i.authorizer(ctx)}

	switch {
	case from == nil:
		req.Operation = request.OperationCreate
	case to == nil:
		req.Operation = request.OperationDelete
	}

	var problems []string

	note := func(err error) {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}

	if m, err := i.mapper.RESTMapping(about.GroupVersionKind().GroupKind(), about.GroupVersionKind().Version); err != nil {
		note(fmt.Errorf("cannot find the resource of %s: %w", about.GetKind(), err))
	} else {
		req.Resource = m.Resource.GroupResource()
		req.Versions = served.NewVersions(i.discovery.RESTClient(), time.Now).Of(ctx, req.Resource)
	}

	var err error

	req.Namespace, err = i.namespaceOf(ctx, about)
	note(err)

	req.Parent, req.ParentGone, err = i.parentOf(ctx, from, to)
	note(err)

	req.ParentSettles = req.Parent != nil && resource.IsComposite(req.Parent) && i.user.Name == i.crossplane

	set, unread := i.inForce(ctx, req)
	req.Basis = set.Basis(i.settings(ctx), time.Now())

	if i.params != nil {
		req.Basis.Params = parameter.NewReader(i.params, i.mapper, nil, time.Now).Within(ctx)
	}

	return req, append(problems, unread...)
}

// namespaceOf is an object's namespace; nil for none.
func (i *inquirer) namespaceOf(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetNamespace() == "" {
		return nil, nil //nolint:nilnil // Cluster-scoped objects have no namespace.
	}

	return i.read(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", u.GetNamespace())
}

// parentOf is an object's parent, and whether it is gone.
func (i *inquirer) parentOf(ctx context.Context, from, to *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	ref, ok := resource.ParentIn(from, to)
	if !ok {
		return nil, false, nil
	}

	parent, err := i.find(ctx, ref)
	if errors.Is(err, served.ErrGone) {
		return nil, true, nil
	}

	return parent, false, err
}

// settings are those of the installation.
func (i *inquirer) settings(ctx context.Context) request.Settings {
	m := i.locate(ctx)

	return request.Settings{Crossplane: i.crossplane, Manager: serviceaccount.MakeUsername(m.Namespace, m.ServiceAccount)}
}

// inForce reads what decisions about an object are made by, and says what of it could not
// be read.
func (i *inquirer) inForce(ctx context.Context, req request.Request) (*inforce.Set, []string) {
	var (
		all    inforce.Objects
		unread []string
	)

	read := func(src doctor.Source, namespace string, add func(*unstructured.Unstructured) error) {
		list := i.list(ctx, src, namespace)
		if list.Problem != "" {
			unread = append(unread, "cannot read "+src.Resource+": "+list.Problem)
		}

		for _, u := range list.Items {
			if err := add(u); err != nil {
				unread = append(unread, err.Error())
			}
		}
	}

	read(doctor.AllowancePolicies, "", adding(&all.Policies))
	read(doctor.UpgradeAllowances, "", adding(&all.Windows))
	read(doctor.Enforcements, "", adding(&all.Enforcements))

	for _, namespace := range homes(req) {
		read(doctor.AllowanceBindings, namespace, adding(&all.Bindings))
	}

	set := inforce.NewCache().Set(all)
	for _, err := range set.Bad {
		unread = append(unread, err.Error())
	}

	return set, unread
}

// adding adds objects to a list of their type.
func adding[T v1alpha1.AllowancePolicy | v1alpha1.AllowanceBinding | v1alpha1.UpgradeAllowance | v1alpha1.Enforcement](
	to *[]T,
) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		list, err := appendAs(*to, u)
		*to = list

		return err
	}
}

// homes are the namespaces of which bindings may be about the object of a request.
func homes(req request.Request) []string {
	var out []string

	for _, u := range []*unstructured.Unstructured{req.New, req.Old, req.Parent} {
		if u != nil && u.GetNamespace() != "" && !slices.Contains(out, u.GetNamespace()) {
			out = append(out, u.GetNamespace())
		}
	}

	return out
}
