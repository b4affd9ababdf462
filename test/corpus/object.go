// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

var (
	errReason = errors.New("the comment has to give a reason in one line")
	errAsk    = errors.New("there has to be one of request.yaml, gate.yaml and upkeep.yaml")
)

// readObjects makes the objects of bases and patches.
func (s *Scenario) readObjects() error {
	var err error

	switch {
	case s.Gate != nil:
		s.Object, err = s.patched(s.Gate.Base, fileObject)
	case s.Upkeep != nil:
		s.Object, err = s.patched(s.Upkeep.Base, fileObject)
	default:
		err = s.readRequestObjects()
	}

	return err
}

func (s *Scenario) readRequestObjects() error {
	var err error

	if s.Request.Operation == "" {
		s.Request.Operation = "UPDATE"
	}

	if s.Request.Operation == "CREATE" {
		s.New, err = s.patched(s.Request.Base, fileNew)
	} else {
		s.Old, err = s.patched(s.Request.Base, fileOld)
	}

	if err == nil && s.Request.Operation == "UPDATE" {
		s.New, err = patch(s.Old, s.text(fileNew))
	}

	if err == nil && (s.Request.Parent != "" || s.has(fileParent)) {
		s.Parent, err = s.patched(s.Request.Parent, fileParent)
	}

	if err == nil && s.has(fileNamespace) {
		s.Namespace, err = patch(nil, s.text(fileNamespace))
	}

	return err
}

// patched is a base object with a patch on it.
func (s *Scenario) patched(base, file string) (*unstructured.Unstructured, error) {
	var u *unstructured.Unstructured

	if base != "" {
		raw, err := bases.ReadFile("base/" + base + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("cannot read base object %q: %w", base, err)
		}

		if u, err = patch(nil, string(raw)); err != nil {
			return nil, fmt.Errorf("cannot read base object %q: %w", base, err)
		}
	}

	u, err := patch(u, s.text(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	return u, nil
}

// patch applies a merge patch to an object; nil is the empty one. Nothing
// becomes of it that the API server would not have decoded.
func patch(u *unstructured.Unstructured, text string) (*unstructured.Unstructured, error) {
	object := []byte("{}")

	if u != nil {
		var err error
		if object, err = json.Marshal(u.Object); err != nil {
			return nil, fmt.Errorf("cannot encode object: %w", err)
		}
	}

	if text != "" {
		raw, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("cannot parse patch: %w", err)
		}

		if object, err = jsonpatch.MergePatch(object, raw); err != nil {
			return nil, fmt.Errorf("cannot apply patch: %w", err)
		}
	}

	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(object, &out.Object); err != nil { // Whole numbers stay whole.
		return nil, fmt.Errorf("cannot decode object: %w", err)
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

// readPolicies reads the documents of policies.yaml and of the files in base
// that the request names.
func (s *Scenario) readPolicies() error {
	if s.Request != nil {
		for _, name := range s.Request.Policies {
			raw, err := bases.ReadFile("base/" + name + ".yaml")
			if err != nil {
				return fmt.Errorf("cannot read policies %q: %w", name, err)
			}

			if err := s.addPolicies(raw); err != nil {
				return fmt.Errorf("cannot read policies %q: %w", name, err)
			}
		}
	}

	if err := s.addPolicies([]byte(s.text(filePolicies))); err != nil {
		return fmt.Errorf("%s: %w", filePolicies, err)
	}

	if err := s.addParams([]byte(s.text(fileParams))); err != nil {
		return fmt.Errorf("%s: %w", fileParams, err)
	}

	return nil
}

func (s *Scenario) addPolicies(raw []byte) error {
	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw)+1); ; {
		var doc runtime.RawExtension
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot parse: %w", err)
		}

		var kind struct{ Kind string }
		if err := yaml.Unmarshal(doc.Raw, &kind); err != nil {
			return fmt.Errorf("cannot read kind: %w", err)
		}

		var err error

		switch kind.Kind {
		case "AllowancePolicy":
			err = add(&s.Policies, doc.Raw)
		case "AllowanceBinding":
			err = add(&s.Bindings, doc.Raw)
		case "UpgradeAllowance":
			err = add(&s.Upgrades, doc.Raw)
		case "Enforcement":
			err = add(&s.Enforcements, doc.Raw)
		default:
			err = fmt.Errorf("kind %q is none of ours", kind.Kind)
		}

		if err != nil {
			return err
		}
	}
}

// addParams reads objects that hold parameters.
func (s *Scenario) addParams(raw []byte) error {
	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw)+1); ; {
		var doc runtime.RawExtension
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot parse: %w", err)
		}

		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(doc.Raw, &u.Object); err != nil { // Whole numbers stay whole.
			return fmt.Errorf("cannot decode object: %w", err)
		}

		s.Params = append(s.Params, u)
	}
}

func add[T v1alpha1.AllowancePolicy | v1alpha1.AllowanceBinding | v1alpha1.UpgradeAllowance | v1alpha1.Enforcement](
	list *[]T, raw []byte,
) error {
	var v T
	if err := yaml.UnmarshalStrict(raw, &v); err != nil {
		return fmt.Errorf("cannot parse: %w", err)
	}

	*list = append(*list, v)

	return nil
}

func writeFile(name string, raw []byte) error {
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		return fmt.Errorf("cannot write scenario: %w", err)
	}

	return nil
}
