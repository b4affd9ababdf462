// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Who is who, where nothing else is said.
const (
	// Crossplane works under this user name.
	Crossplane = "system:serviceaccount:crossplane-system:crossplane"
	// Manager is the user name of Kausality's manager.
	Manager = "system:serviceaccount:kausality-system:kausality-manager"
)

// Request is what request.yaml says, and defaults.yaml where that does not.
type Request struct {
	// Operation: CREATE, UPDATE or DELETE; without one, an update.
	Operation string `json:"operation,omitempty"`
	// User who asks; without one, Crossplane.
	User *User `json:"user,omitempty"`
	// Base object of old.yaml and new.yaml: the NAME of base/NAME.yaml, or a path.
	Base string `json:"base,omitempty"`
	// Parent object of parent.yaml, named likewise; none for a root.
	Parent string `json:"parent,omitempty"`
	// ParentAfter is the path of another scenario, with or without its ending: the parent is
	// the object as that leaves it, and parent.yaml a patch on it.
	ParentAfter string `json:"parentAfter,omitempty"`
	// ParentGone is true where the object refers to a parent that is not there.
	ParentGone bool `json:"parentGone,omitempty"`
	// Orphans is true where what the object owns is to stay.
	Orphans bool `json:"orphans,omitempty"`
	// Granted are the verbs that the cluster's authorizer grants the user, each as VERB on
	// the subresource kausality of the object's resource, as VERB RESOURCE[/SUBRESOURCE] or as
	// VERB PATH; in one namespace where " in NAMESPACE" follows, another user where " as USER"
	// does, and of what a field selector selects where " where FIELD=VALUE" does. Without a
	// list there is no authorizer to ask. A word failing says that it cannot be asked.
	Granted []string `json:"granted,omitempty"`
	// Unreadable are the kinds of parameters that cannot be read.
	Unreadable []string `json:"unreadable,omitempty"`
	// DryRun is true where nothing is to be stored.
	DryRun bool `json:"dryRun,omitempty"`
	// Options of the request, but for how a deletion propagates.
	Options map[string]any `json:"options,omitempty"`
	// ParentSettles is true where a function reports on the parent.
	ParentSettles bool `json:"parentSettles,omitempty"`
	// Policies that there are besides those of policies.yaml: NAMEs of files in base, or paths
	// of files or of directories with files.
	Policies []string `json:"policies,omitempty"`
	// Enforce is true where policies in Shadow mode count as in force, as with [Options].
	Enforce bool `json:"enforce,omitempty"`
	// Gates is true where the manager moves gates.
	Gates bool `json:"gates,omitempty"`
	// Resource is the plural of the object's kind; needed where there are Enforcements.
	Resource string `json:"resource,omitempty"`
	// Versions in which that is served; without any, they are not known.
	Versions []string `json:"versions,omitempty"`
	// Action overrides what Enforcements say.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Now; without one, 2024-01-06T12:00:00Z.
	Now *time.Time `json:"now,omitempty"`
	// Crossplane is the user name under which Crossplane works, and Manager that of
	// Kausality's manager; without them, those of the constants.
	Crossplane string `json:"crossplane,omitempty"`
	Manager    string `json:"manager,omitempty"`
	// Exact is true where want.yaml says everything: what it leaves out is not to be there,
	// and neither is a patch without patched.yaml.
	Exact bool `json:"exact,omitempty"`
}

// User is who asks.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
	// UID and Extra, as an authenticator gives them.
	UID   string              `json:"uid,omitempty"`
	Extra map[string][]string `json:"extra,omitempty"`
}

// Gate is what gate.yaml says. Of defaults.yaml, policies and now are for it, too.
type Gate struct {
	// Base object of object.yaml, as in Request.
	Base string `json:"base"`
	// Policies, as in Request.
	Policies []string `json:"policies,omitempty"`
	// Now; without one, as in Request.
	Now *time.Time `json:"now,omitempty"`
	// OldRuntime is true where the provider does not support Observe with
	// LateInitialize alone.
	OldRuntime bool `json:"oldRuntime,omitempty"`
	// CloseOverdue is true where a gate that was open for too long is closed.
	CloseOverdue bool `json:"closeOverdue,omitempty"`
	// Settle and MaxOpen, as Go writes durations; without them, the defaults.
	Settle  string `json:"settle,omitempty"`
	MaxOpen string `json:"maxOpen,omitempty"`
}

// Upkeep is what upkeep.yaml says.
type Upkeep struct {
	// Base object of object.yaml, as in Request.
	Base string `json:"base"`
}

// moment is noon of the day of the reference's window, before it opens, where
// nothing else is said.
func moment(t *time.Time) time.Time {
	if t != nil {
		return *t
	}

	return time.Date(2024, time.January, 6, 12, 0, 0, 0, time.UTC)
}
