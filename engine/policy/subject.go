// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// User is who makes a request, as the API server authenticated it.
type User struct {
	// Name of the user.
	Name string
	// Groups the user is in.
	Groups []string
	// UID of the user; empty where there is none.
	UID string
	// Extra is what else the authenticator knows of the user; nil for nothing.
	Extra map[string][]string
}

// Controllers of Kubernetes that carry out deletions which others asked for.
//
// Source: k8s.io/kubernetes pkg/controlplane/controller and
// cmd/kube-controller-manager/names, under --use-service-account-credentials.
const (
	GarbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	NamespaceController = "system:serviceaccount:kube-system:namespace-controller"
)

// ServiceAccount reports whether the user is a service account.
func (u User) ServiceAccount() bool {
	return strings.HasPrefix(u.Name, serviceaccount.ServiceAccountUsernamePrefix)
}

// admin is the user that some distributions, such as k3s, RKE2 and OpenShift, give
// to whoever administers the cluster.
const admin = "system:admin"

// Machine reports whether the user is a service account or a component of
// Kubernetes, as opposed to a person.
func (u User) Machine() bool { return strings.HasPrefix(u.Name, "system:") && u.Name != admin }

// Is reports whether the user is the subject.
func (u User) Is(s v1alpha1.Subject) bool {
	switch s.Kind {
	case v1alpha1.SubjectUser:
		return u.Name == s.Name
	case v1alpha1.SubjectGroup:
		return slices.Contains(u.Groups, s.Name)
	case v1alpha1.SubjectServiceAccount:
		return serviceaccount.MatchesUsername(s.Namespace, s.Name, u.Name)
	default:
		return false
	}
}

// MayInitiate reports whether the user may start a chain with these subjects.
func MayInitiate(subjects []v1alpha1.Subject, u User) bool {
	return slices.ContainsFunc(subjects, func(s v1alpha1.Subject) bool { return s.MayInitiate && u.Is(s) })
}

// MayExercise reports whether the user may make a mutation that a policy with
// these subjects allowed: where it lists subjects that may not initiate, only
// those, and otherwise anybody.
func MayExercise(subjects []v1alpha1.Subject, u User) bool {
	listed := false

	for _, s := range subjects {
		if s.MayInitiate {
			continue
		}

		if u.Is(s) {
			return true
		}

		listed = true
	}

	return !listed
}

// Nobody is what Describe writes where it lists none.
const Nobody = "nobody"

// Describe writes the subjects for which listed is true, as "Group platform-team".
func Describe(subjects []v1alpha1.Subject, listed func(v1alpha1.Subject) bool) string {
	var out []string

	for _, s := range subjects {
		if !listed(s) {
			continue
		}

		name := s.Name
		if s.Namespace != "" {
			name = s.Namespace + "/" + s.Name
		}

		out = append(out, fmt.Sprintf("%s %s", s.Kind, name))
	}

	if len(out) == 0 {
		return Nobody
	}

	return strings.Join(out, ", ")
}

// ServiceAccountGroups returns the groups that the API server puts a service
// account into, by its user name; nil for other users.
func ServiceAccountGroups(name string) []string {
	namespace, _, err := serviceaccount.SplitUsername(name)
	if err != nil {
		return nil
	}

	return append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)
}
