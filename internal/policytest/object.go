// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// errKind is the cause where there is nothing, or nothing that is an object.
var errKind = errors.New("an object has an apiVersion and a kind: name a base, or give them")

// readObjects makes the objects of bases and patches.
func (s *Scenario) readObjects() error {
	var err error

	switch {
	case s.Gate != nil:
		s.Object, err = s.patched(fileGate, "base", s.Gate.Base, fileObject)
	case s.Upkeep != nil:
		s.Object, err = s.patched(fileUpkeep, "base", s.Upkeep.Base, fileObject)
	default:
		err = s.readRequestObjects()
	}

	return err
}

func (s *Scenario) readRequestObjects() error {
	var err error

	if s.Request.Operation == string(request.OperationCreate) {
		s.New, err = s.patched(fileRequest, "base", s.Request.Base, fileNew)
	} else {
		s.Old, err = s.patched(fileRequest, "base", s.Request.Base, fileOld)
	}

	if err == nil && s.Request.Operation == string(request.OperationUpdate) {
		s.New, err = s.changed(s.Old, fileNew)
	}

	switch {
	case err != nil:
	case s.Request.ParentAfter != "":
		s.Parent, err = s.parentAfter()
	case s.Request.Parent != "" || s.has(fileParent):
		s.Parent, err = s.patched(fileRequest, "parent", s.Request.Parent, fileParent)
	}

	if err == nil && s.has(fileNamespace) {
		s.Namespace, err = s.changed(nil, fileNamespace)
	}

	return err
}

// patched is the base object that a field of a file names, with the patch of another file on it.
func (s *Scenario) patched(ask, field, base, file string) (*unstructured.Unstructured, error) {
	var object []byte

	if base != "" {
		name, raw, err := s.reader.locate(s.at, base)
		if err == nil {
			object, err = s.reader.bases.get(name, func() ([]byte, error) { return readBase(name, raw) })
		} else {
			err = s.section(ask).wrong(field, fmt.Sprintf("cannot read base object: %v", err))
		}

		if err != nil {
			return nil, err
		}
	}

	u, err := s.patch(object, file)
	if err == nil && (u.GetKind() == "" || u.GetAPIVersion() == "") {
		err = s.section(file).fail(0, errKind)
	}

	return u, err
}

// readBase is the one object that a file holds, as JSON.
func readBase(name string, raw []byte) ([]byte, error) {
	docs := section{file: name, text: raw}.documents()
	if len(docs) != 1 {
		return nil, section{file: name}.fail(0, fmt.Errorf("there are %d objects in it, and a base object is one", len(docs)))
	}

	return docs[0].json()
}

// changed is an object with the patch of a file on it; nil is the empty one.
func (s *Scenario) changed(u *unstructured.Unstructured, file string) (*unstructured.Unstructured, error) {
	if u == nil {
		return s.patch(nil, file)
	}

	object, err := json.Marshal(u.Object)
	if err != nil {
		return nil, s.fail(err)
	}

	return s.patch(object, file)
}

// patch applies the merge patch of a file to an object. Nothing becomes of it that the API
// server would not have decoded.
func (s *Scenario) patch(object []byte, file string) (*unstructured.Unstructured, error) {
	if object == nil {
		object = []byte("{}")
	}

	if s.has(file) && strings.TrimSpace(s.text(file)) != "" {
		raw, err := s.section(file).json()
		if err != nil {
			return nil, err
		}

		if object, err = jsonpatch.MergePatch(object, raw); err != nil {
			return nil, s.section(file).fail(0, fmt.Errorf("cannot apply patch: %w", err))
		}
	}

	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(object, &out.Object); err != nil { // Whole numbers stay whole.
		return nil, s.section(file).fail(0, fmt.Errorf("cannot decode object: %w", err))
	}

	return out, nil
}

// difference is the merge patch from one object to another, as YAML; empty
// where they are the same.
func difference(from, to *unstructured.Unstructured) (string, error) {
	if to == nil {
		return "", nil
	}

	a, err := json.Marshal(from.Object)
	if err != nil {
		return "", fmt.Errorf("cannot encode object: %w", err)
	}

	b, err := json.Marshal(to.Object)
	if err != nil {
		return "", fmt.Errorf("cannot encode object: %w", err)
	}

	raw, err := jsonpatch.CreateMergePatch(a, b)
	if err != nil {
		return "", fmt.Errorf("cannot compare objects: %w", err)
	}

	if string(raw) == "{}" {
		return "", nil
	}

	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return "", fmt.Errorf("cannot write patch: %w", err)
	}

	return string(out), nil
}
