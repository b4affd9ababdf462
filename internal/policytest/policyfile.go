// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
)

// holding are the policies, bindings, windows and Enforcements of a file or a directory.
type holding struct {
	inforce.Objects

	// where each is, by kind and name.
	where map[string]string
	// broken are those that do not compile.
	broken []error
}

// errNoPolicy is the cause where a file has nothing of ours.
var errNoPolicy = errors.New("there is no AllowancePolicy, AllowanceBinding, UpgradeAllowance or Enforcement in it")

// readPolicies reads the documents of policies.yaml, and of what the request names.
func (s *Scenario) readPolicies() error {
	var names []string

	ask := fileRequest

	switch {
	case s.Request != nil:
		names = s.Request.Policies
	case s.Gate != nil:
		names, ask = s.Gate.Policies, fileGate
	}

	all := &holding{where: map[string]string{}}

	for i, name := range names {
		more, err := s.reader.policiesOf(s.at, name)
		if errors.Is(err, errPolicies) {
			err = s.section(ask).wrong(fmt.Sprintf("policies[%d]", i), err.Error())
		}

		if err == nil {
			err = all.add(more)
		}

		if err != nil {
			return err
		}
	}

	own := &holding{where: map[string]string{}}
	if err := own.read(s.reader.compiled, s.section(filePolicies), true); err != nil {
		return err
	}

	if err := all.add(own); err != nil {
		return err
	}

	s.Policies, s.Bindings, s.Upgrades, s.Enforcements = all.Policies, all.Bindings, all.Windows, all.Enforcements
	s.broken, s.where = all.broken, all.where

	if s.enforce || s.reader.enforce {
		s.Policies = inforce.Enforced(s.Policies)
	}

	if s.Request != nil && len(s.Enforcements) > 0 && s.Request.Resource == "" {
		return s.section(fileRequest).wrong("resource",
			"say the plural of the object's kind, for there are Enforcements, which are about resources")
	}

	return s.readParams()
}

// readParams reads objects that hold parameters.
func (s *Scenario) readParams() error {
	for _, doc := range s.section(fileParams).documents() {
		raw, err := doc.json()
		if err != nil {
			return err
		}

		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
			return doc.fail(0, err)
		}

		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return doc.fail(1, errKind)
		}

		s.Params = append(s.Params, u)
	}

	return nil
}

// errPolicies is the cause where what a scenario names cannot be read.
var errPolicies = errors.New("cannot read policies")

// policiesOf are those of a file or a directory that a scenario names.
func (r *Reader) policiesOf(at Place, name string) (*holding, error) {
	if dir := path.Clean(name); isPath(name) && path.Ext(name) == "" {
		return r.policies.get(dir, func() (*holding, error) { return r.policiesIn(dir) })
	}

	file, raw, err := r.locate(at, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPolicies, err)
	}

	return r.policies.get(file, func() (*holding, error) {
		out := &holding{where: map[string]string{}}
		if err := out.read(r.compiled, section{file: file, text: raw}, false); err != nil {
			return nil, err
		}

		if len(out.where) == 0 {
			return nil, section{file: file}.fail(0, errNoPolicy)
		}

		return out, nil
	})
}

// policiesIn are those of the YAML and JSON files in a directory.
func (r *Reader) policiesIn(dir string) (*holding, error) {
	entries, err := r.files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPolicies, err)
	}

	out := &holding{where: map[string]string{}}

	for _, e := range entries {
		ending := path.Ext(e.Name())
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, ending) || strings.TrimSuffix(e.Name(), ending) == "kustomization" {
			continue
		}

		file := path.Join(dir, e.Name())

		raw, err := r.read(file)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPolicies, err)
		}

		if err := out.read(r.compiled, section{file: file, text: raw}, false); err != nil {
			return nil, err
		}
	}

	if len(out.where) == 0 {
		return nil, section{file: dir}.fail(0, errNoPolicy)
	}

	return out, nil
}

// add adds what another has. None may be there twice.
func (h *holding) add(more *holding) error {
	for _, key := range slices.Sorted(maps.Keys(more.where)) {
		if err := h.claim(key, more.where[key]); err != nil {
			return err
		}
	}

	h.Policies = append(h.Policies, more.Policies...)
	h.Bindings = append(h.Bindings, more.Bindings...)
	h.Windows = append(h.Windows, more.Windows...)
	h.Enforcements = append(h.Enforcements, more.Enforcements...)
	h.broken = append(h.broken, more.broken...)

	return nil
}

// claim notes where one is.
func (h *holding) claim(key, where string) error {
	if other, ok := h.where[key]; ok {
		kind, name, _ := strings.Cut(key, "/")

		return fmt.Errorf("%s: %s %q is in %s, too", where, kind, name, other)
	}

	h.where[key] = where

	return nil
}

// read reads the documents of a file. Those of kinds that are not ours are an error where the
// file is to have none.
func (h *holding) read(compiled *inforce.Cache, file section, ours bool) error {
	for _, doc := range file.documents() {
		raw, err := doc.json()
		if err != nil {
			return err
		}

		if err := h.readObject(compiled, doc, raw, "", ours); err != nil {
			return err
		}
	}

	return nil
}

// readObject reads one object, or a list of them, at a path of a document.
func (h *holding) readObject(compiled *inforce.Cache, doc section, raw []byte, at string, ours bool) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`

		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return doc.fail(doc.line(at), errKind)
	}

	group := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind).Group

	switch {
	case head.Kind == "" || head.APIVersion == "" && !ours:
		return doc.fail(doc.line(at), errKind)
	case head.APIVersion == "v1" && head.Kind == "List" || group == v1alpha1.Group && strings.HasSuffix(head.Kind, "List"):
		for i, item := range head.Items {
			if err := h.readObject(compiled, doc, item, join(at, fmt.Sprintf("items[%d]", i)), ours); err != nil {
				return err
			}
		}

		return nil
	case !ours && group != v1alpha1.Group:
		return nil
	case head.APIVersion != "" && head.APIVersion != v1alpha1.GroupVersion().String():
		return doc.wrong(join(at, "apiVersion"), fmt.Sprintf("%q is not %s", head.APIVersion, v1alpha1.GroupVersion()))
	}

	return h.readOurs(compiled, doc, raw, at, head.Kind)
}

// readOurs reads one object of ours.
func (h *holding) readOurs(compiled *inforce.Cache, doc section, raw []byte, at, kind string) error {
	var (
		one inforce.Objects
		key string
		err error
	)

	switch kind {
	case v1alpha1.KindPolicy:
		key, err = decodeInto(doc, raw, at, &one.Policies)
	case v1alpha1.KindBinding:
		key, err = decodeInto(doc, raw, at, &one.Bindings)
	case v1alpha1.KindUpgrade:
		key, err = decodeInto(doc, raw, at, &one.Windows)
	case v1alpha1.KindEnforcement:
		key, err = decodeInto(doc, raw, at, &one.Enforcements)
	default:
		err = doc.wrong(join(at, "kind"), fmt.Sprintf("%q is none of %s, %s, %s and %s", kind,
			v1alpha1.KindPolicy, v1alpha1.KindBinding, v1alpha1.KindUpgrade, v1alpha1.KindEnforcement))
	}

	if err != nil {
		return err
	}

	where := fmt.Sprintf("%s:%d", doc.file, doc.before+doc.line(at))
	found := &holding{Objects: one, where: map[string]string{kind + "/" + key: where}}

	for _, bad := range compiled.Set(one).Bad {
		found.broken = append(found.broken, doc.invalid(at, bad))
	}

	return h.add(found)
}

// decodeInto reads one object into a list, and returns its name, with the namespace where it has one.
func decodeInto[T any, P interface {
	*T
	metav1.Object
}](doc section, raw []byte, at string, list *[]T,
) (string, error) {
	var v T
	if err := doc.fill(raw, at, &v); err != nil {
		return "", err
	}

	*list = append(*list, v)

	return strings.TrimPrefix(P(&v).GetNamespace()+"/"+P(&v).GetName(), "/"), nil
}
