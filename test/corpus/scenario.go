// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

//go:embed base/*.yaml
var bases embed.FS

//go:embed */*.txtar
var files embed.FS

// Names of the files in a scenario.
const (
	fileRequest   = "request.yaml"
	fileGate      = "gate.yaml"
	fileUpkeep    = "upkeep.yaml"
	fileOld       = "old.yaml"
	fileNew       = "new.yaml"
	fileParent    = "parent.yaml"
	fileObject    = "object.yaml"
	fileNamespace = "namespace.yaml"
	filePolicies  = "policies.yaml"
	fileParams    = "params.yaml"
	fileWant      = "want.yaml"
	filePatched   = "patched.yaml"
)

// Request is what request.yaml says.
type Request struct {
	// Operation: CREATE, UPDATE or DELETE; without one, what the objects there
	// are call for: an update.
	Operation string `json:"operation,omitempty"`
	// User who asks; without one, Crossplane.
	User *User `json:"user,omitempty"`
	// Base object of old.yaml and new.yaml.
	Base string `json:"base,omitempty"`
	// Parent object of parent.yaml; none for a root.
	Parent string `json:"parent,omitempty"`
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
	// Policies are the names of files in base with more policies.
	Policies []string `json:"policies,omitempty"`
	// Resource is the plural of the object's kind, for Enforcements.
	Resource string `json:"resource,omitempty"`
	// Versions in which that is served; without any, they are not known.
	Versions []string `json:"versions,omitempty"`
	// Action overrides what Enforcements say.
	Action v1alpha1.ValidationAction `json:"action,omitempty"`
	// Now; without one, noon of the day of the reference's window.
	Now *time.Time `json:"now,omitempty"`
}

// User is who asks.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
	// UID and Extra, as an authenticator gives them.
	UID   string              `json:"uid,omitempty"`
	Extra map[string][]string `json:"extra,omitempty"`
}

// Gate is what gate.yaml says.
type Gate struct {
	// Base object of object.yaml.
	Base string `json:"base"`
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
	// Base object of object.yaml.
	Base string `json:"base"`
}

// Scenario is one file of the corpus.
type Scenario struct {
	// Name is the file's path without its ending, such as phase/first-update.
	Name string
	// Reason says in one line why things are decided so.
	Reason string
	// Request, Gate or Upkeep; the others are nil.
	Request *Request
	Gate    *Gate
	Upkeep  *Upkeep
	// Old, New, Parent and Namespace of a Request; nil where there is none.
	Old, New, Parent, Namespace *unstructured.Unstructured
	// Object of Gate or Upkeep.
	Object *unstructured.Unstructured
	// Policies, Bindings, Upgrades and Enforcements in force.
	Policies     []v1alpha1.AllowancePolicy
	Bindings     []v1alpha1.AllowanceBinding
	Upgrades     []v1alpha1.UpgradeAllowance
	Enforcements []v1alpha1.Enforcement
	// Params are objects that hold parameters.
	Params []*unstructured.Unstructured
	// Want and Patched as they are in the file.
	Want, Patched string

	archive *txtar.Archive
}

// All returns every scenario, by name.
func All() ([]Scenario, error) {
	sources, err := Sources()
	if err != nil {
		return nil, err
	}

	out := make([]Scenario, 0, len(sources))

	for _, name := range slices.Sorted(maps.Keys(sources)) {
		s, err := Parse(name, sources[name])
		if err != nil {
			return nil, err
		}

		out = append(out, s)
	}

	return out, nil
}

// Sources returns the text of every scenario, by name.
func Sources() (map[string][]byte, error) {
	names, err := fs.Glob(files, "*/*.txtar")
	if err != nil {
		return nil, fmt.Errorf("cannot list scenarios: %w", err)
	}

	out := make(map[string][]byte, len(names))

	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read scenario %q: %w", name, err)
		}

		out[strings.TrimSuffix(name, ".txtar")] = raw
	}

	return out, nil
}

// Parse reads one scenario.
func Parse(name string, raw []byte) (Scenario, error) {
	s := Scenario{Name: name, archive: txtar.Parse(raw)}
	s.Reason = strings.TrimSpace(string(s.archive.Comment))

	steps := []func() error{s.readAsk, s.readObjects, s.readPolicies}
	for _, step := range steps {
		if err := step(); err != nil {
			return s, fmt.Errorf("cannot read scenario %q: %w", name, err)
		}
	}

	s.Want, s.Patched = s.text(fileWant), s.text(filePatched)

	return s, nil
}

// readAsk reads the one file that says what is asked.
func (s *Scenario) readAsk() error {
	for _, f := range s.archive.Files {
		var into any

		switch f.Name {
		case fileRequest:
			s.Request = &Request{}
			into = s.Request
		case fileGate:
			s.Gate = &Gate{}
			into = s.Gate
		case fileUpkeep:
			s.Upkeep = &Upkeep{}
			into = s.Upkeep
		case fileOld, fileNew, fileParent, fileObject, fileNamespace, filePolicies, fileParams, fileWant, filePatched:
			continue
		default:
			return fmt.Errorf("%s: no such file is known", f.Name)
		}

		if err := yaml.UnmarshalStrict(f.Data, into); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}

	if s.Reason == "" || strings.Contains(s.Reason, "\n") {
		return errReason
	}

	if asks := (s.Request != nil) != (s.Gate != nil) != (s.Upkeep != nil); !asks {
		return errAsk
	}

	return nil
}

func (s *Scenario) text(name string) string {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}

	return ""
}

func (s *Scenario) has(name string) bool {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return true
		}
	}

	return false
}

// Save writes the scenario with what came of it to its file below dir, the
// source of this package.
func (s *Scenario) Save(dir, want, patched string) error {
	out := &txtar.Archive{Comment: s.archive.Comment}

	for _, f := range s.archive.Files {
		if f.Name != fileWant && f.Name != filePatched {
			out.Files = append(out.Files, f)
		}
	}

	out.Files = append(out.Files, txtar.File{Name: fileWant, Data: []byte(want)})
	if patched != "" {
		out.Files = append(out.Files, txtar.File{Name: filePatched, Data: []byte(patched)})
	}

	return writeFile(filepath.Join(dir, filepath.FromSlash(path.Clean(s.Name))+".txtar"), txtar.Format(out))
}
