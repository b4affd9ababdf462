// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
)

var (
	errNoPolicies  = errors.New("there are no AllowancePolicies, AllowanceBindings, UpgradeAllowances or Enforcements")
	errTwo         = errors.New("there is another one of that name")
	errUnknownKind = errors.New("it is of no kind or version that is known")
)

// readPolicies reads the objects of our kinds in a file, or in the YAML and JSON files of a
// directory and below it. Objects of other groups are left alone.
func readPolicies(path string, into *inforce.Objects) error {
	var files []string

	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		yamlFile := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file))
		if err == nil && !entry.IsDir() && (file == path || yamlFile) {
			files = append(files, file)
		}

		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read policies: %w", err)
	}

	found := 0

	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // Who runs it names it.
		if err != nil {
			return fmt.Errorf("cannot read policies: %w", err)
		}

		n, err := addPolicies(raw, into)
		if err != nil {
			return fmt.Errorf("cannot read policies in %q: %w", file, err)
		}

		found += n
	}

	if found == 0 {
		return fmt.Errorf("cannot read policies in %q: %w", path, errNoPolicies)
	}

	return nil
}

// addPolicies adds the objects of our kinds in a text, and returns how many there are.
func addPolicies(raw []byte, into *inforce.Objects) (int, error) {
	found := 0

	for in := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), len(raw)+1); ; {
		var doc runtime.RawExtension
		if err := in.Decode(&doc); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return found, fmt.Errorf("cannot parse: %w", err)
		}

		n, err := addDocument(doc.Raw, into)
		if err != nil {
			return found, err
		}

		found += n
	}
}

// addDocument adds an object if it is of our kinds, or those of a list, and returns how many
// there are.
func addDocument(raw []byte, into *inforce.Objects) (int, error) {
	var object metav1.TypeMeta
	if len(raw) == 0 || yaml.Unmarshal(raw, &object) != nil {
		return 0, nil //nolint:nilerr // It is empty, or nothing of ours.
	}

	gvk := object.GroupVersionKind()

	if strings.HasSuffix(gvk.Kind, "List") && (gvk.Group == "" || gvk.Group == v1alpha1.GroupVersion().Group) {
		return addList(raw, into)
	}

	if gvk.Group != v1alpha1.GroupVersion().Group {
		return 0, nil
	}

	if err := addPolicy(gvk, raw, into); err != nil {
		var named metav1.PartialObjectMetadata

		_ = yaml.Unmarshal(raw, &named) // It is to say which one, if that can be read.

		return 0, fmt.Errorf("cannot read %s %q: %w", gvk.Kind, named.GetName(), err)
	}

	return 1, nil
}

// addList adds the objects of our kinds in a list, as kubectl get prints one.
func addList(raw []byte, into *inforce.Objects) (int, error) {
	var list metav1.List
	if err := yaml.Unmarshal(raw, &list); err != nil {
		return 0, fmt.Errorf("cannot read list: %w", err)
	}

	found := 0

	for i := range list.Items {
		n, err := addDocument(list.Items[i].Raw, into)
		if err != nil {
			return found, err
		}

		found += n
	}

	return found, nil
}

func addPolicy(gvk schema.GroupVersionKind, raw []byte, into *inforce.Objects) error {
	switch {
	case gvk.Version != v1alpha1.GroupVersion().Version:
		return errUnknownKind
	case gvk.Kind == v1alpha1.KindPolicy:
		return appendDecoded(raw, &into.Policies)
	case gvk.Kind == v1alpha1.KindBinding:
		return appendDecoded(raw, &into.Bindings)
	case gvk.Kind == v1alpha1.KindUpgrade:
		return appendDecoded(raw, &into.Windows)
	case gvk.Kind == v1alpha1.KindEnforcement:
		return appendDecoded(raw, &into.Enforcements)
	default:
		return errUnknownKind
	}
}

// appendDecoded decodes an object; a field that its kind does not have is an error, and so is
// another one of its name.
func appendDecoded[T any, P interface {
	*T
	metav1.Object
}](raw []byte, list *[]T) error {
	var one T
	if err := yaml.UnmarshalStrict(raw, &one); err != nil {
		return err
	}

	for i := range *list {
		if is, other := P(&one), P(&(*list)[i]); is.GetName() == other.GetName() && is.GetNamespace() == other.GetNamespace() {
			return errTwo
		}
	}

	*list = append(*list, one)

	return nil
}
