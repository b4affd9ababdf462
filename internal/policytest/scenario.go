// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

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
	fileTexts     = "texts.yaml"
)

// Scenario is one file.
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
	// Written is what is wanted, as it is in the file.
	Written Written

	reader   *Reader
	at       Place
	led      []string
	archive  *txtar.Archive
	sections []section
	exact    bool
	// enforce has what is in Shadow mode be in force.
	enforce bool
	// wanted, stored and said are want.yaml, patched.yaml and texts.yaml.
	wanted, stored, said map[string]any
	// broken are the policies that do not compile, with where they are.
	broken []error
	// where policies are, by kind and name.
	where map[string]string
}

var (
	errReason = errors.New("the comment before the first file has to give a reason, in one line")
	errAsk    = errors.New("there has to be one of request.yaml, gate.yaml and upkeep.yaml")
)

// fail is an error about the whole scenario.
func (s *Scenario) fail(err error) error { return section{file: s.at.Path}.fail(0, err) }

// belongs says which files belong to what is asked.
func belongs(ask string) []string {
	switch ask {
	case fileRequest:
		return []string{fileRequest, fileOld, fileNew, fileParent, fileNamespace, filePolicies, fileParams, fileWant, filePatched, fileTexts}
	case fileGate:
		return []string{fileGate, fileObject, filePolicies, fileWant, fileTexts}
	default:
		return []string{fileUpkeep, fileObject, fileWant}
	}
}

// readFiles checks which files there are.
func (s *Scenario) readFiles() error {
	if s.Reason == "" || strings.Contains(s.Reason, "\n") {
		return s.fail(errReason)
	}

	var asks, seen []string

	for _, f := range s.sections {
		if slices.Contains(seen, f.part) {
			return f.fail(0, errors.New("it is there twice"))
		}

		seen = append(seen, f.part)

		if slices.Contains([]string{fileRequest, fileGate, fileUpkeep}, f.part) {
			asks = append(asks, f.part)
		}
	}

	if len(asks) != 1 {
		return s.fail(errAsk)
	}

	for _, f := range s.sections {
		if !slices.Contains(belongs(asks[0]), f.part) {
			return f.fail(0, fmt.Errorf("no such file belongs to %s: there may be %s", asks[0], strings.Join(belongs(asks[0]), ", ")))
		}
	}

	return nil
}

// readAsk reads the one file that says what is asked, and the defaults.
func (s *Scenario) readAsk() error {
	defaults, err := s.reader.defaultsAt(s.at)
	if err != nil {
		return err
	}

	dir := path.Dir(s.at.Path)

	switch {
	case s.has(fileRequest):
		s.Request = &Request{}
		if err := s.section(fileRequest).decode(s.Request); err != nil {
			return err
		}

		if err := s.Request.complete(dir, s.section(fileRequest), defaults); err != nil {
			return err
		}

		s.exact, s.enforce = s.Request.Exact, s.Request.Enforce

		return s.readOperation()
	case s.has(fileGate):
		s.Gate = &Gate{}
		err = s.section(fileGate).decode(s.Gate)
	default:
		s.Upkeep = &Upkeep{}
		err = s.section(fileUpkeep).decode(s.Upkeep)
	}

	if err != nil {
		return err
	}

	return s.completeGate(dir, defaults)
}

// complete takes from defaults what a request does not say, and finds out where names are.
func (q *Request) complete(dir string, own section, defaults map[string]json.RawMessage) error {
	q.locateFrom(dir)

	if len(defaults) > 0 {
		given, err := fields(own.text)
		if err != nil {
			return own.fail(0, err)
		}

		merged, err := fieldsOf(*q)
		if err != nil {
			return own.fail(0, err)
		}

		for key, value := range defaults {
			if _, ok := given[key]; ok || key == "parent" && q.ParentAfter != "" {
				continue
			}

			merged[key] = value
		}

		raw, err := json.Marshal(merged)
		if err != nil {
			return own.fail(0, err)
		}

		*q = Request{}
		if err := json.Unmarshal(raw, q); err != nil {
			return own.fail(0, err)
		}
	}

	if q.Operation == "" {
		q.Operation = string(request.OperationUpdate)
	}

	return nil
}

// completeGate does so for a gate and for upkeep.
func (s *Scenario) completeGate(dir string, defaults map[string]json.RawMessage) error {
	var req Request

	raw, err := json.Marshal(defaults)
	if err == nil {
		err = json.Unmarshal(raw, &req)
	}

	if err != nil {
		return s.fail(err)
	}

	s.exact, s.enforce = req.Exact, req.Enforce

	if s.Upkeep != nil {
		s.Upkeep.Base = from(dir, s.Upkeep.Base)

		return nil
	}

	s.Gate.Base = from(dir, s.Gate.Base)

	for i := range s.Gate.Policies {
		s.Gate.Policies[i] = from(dir, s.Gate.Policies[i])
	}

	if s.Gate.Policies == nil {
		s.Gate.Policies = req.Policies
	}

	if s.Gate.Now == nil {
		s.Gate.Now = req.Now
	}

	return nil
}

// readOperation checks that the files are those of the operation.
func (s *Scenario) readOperation() error {
	none := map[request.Operation]string{
		request.OperationCreate: fileOld, request.OperationDelete: fileNew, request.OperationUpdate: "",
	}

	file, ok := none[request.Operation(s.Request.Operation)]
	if !ok {
		return s.section(fileRequest).wrong("operation", fmt.Sprintf("%q is none of CREATE, UPDATE and DELETE", s.Request.Operation))
	}

	if file != "" && s.has(file) {
		return s.section(file).fail(0, fmt.Errorf("there is none where the operation is %s", s.Request.Operation))
	}

	if s.Request.Parent != "" && s.Request.ParentAfter != "" {
		return s.section(fileRequest).wrong("parentAfter", "there is a parent, too: give one of them")
	}

	return nil
}

// fields are those that a mapping in YAML has.
func fields(text []byte) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	err := yaml.Unmarshal(text, &out)

	return out, err
}

// fieldsOf are those of a value that are not empty.
func fieldsOf(v any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}

	return fields(raw)
}

// section is one of the files; an empty one where there is none.
func (s *Scenario) section(name string) section {
	for _, f := range s.sections {
		if f.part == name {
			return f
		}
	}

	return section{file: s.at.Path, part: name}
}

func (s *Scenario) text(name string) string { return string(s.section(name).text) }

func (s *Scenario) has(name string) bool {
	return slices.ContainsFunc(s.sections, func(f section) bool { return f.part == name })
}
