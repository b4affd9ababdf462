// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// fieldOwner is who the harness writes as.
const fieldOwner = client.FieldOwner("kausality-stack")

// applyPoll is how often an object is tried that may not be applicable yet, for instance because its kind
// or its namespace was only just created.
const applyPoll = 100 * time.Millisecond

// readManifests returns the objects of every YAML file in a directory; none if it does not exist.
func readManifests(dir string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isYAML(path) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		more, err := ParseManifests(b)
		if err != nil {
			return fmt.Errorf("cannot parse %q: %w", path, err)
		}
		objects = append(objects, more...)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	return objects, nil
}

// isYAML reports whether a file is a manifest; kustomize's own files are not.
func isYAML(path string) bool {
	ext := filepath.Ext(path)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(filepath.Base(path), "kustomization.")
}

// ParseManifests returns the objects of a stream of YAML documents. Documents without anything in
// them do not count.
func ParseManifests(b []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// apply applies objects, one after another. An object may have to wait for its kind or namespace.
func (s *Stack) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, u := range objects {
		var last error
		err := wait.PollUntilContextTimeout(ctx, applyPoll, patience.Limit, true, func(ctx context.Context) (bool, error) {
			ac := client.ApplyConfigurationFromUnstructured(u.DeepCopy())
			last = s.client.Apply(ctx, ac, fieldOwner, client.ForceOwnership)
			if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) {
				return false, last
			}
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), cmp.Or(last, err))
		}
	}
	return nil
}

// applyTyped applies objects of Go types.
func (s *Stack) applyTyped(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		gvk, err := s.client.GroupVersionKindFor(o)
		if err != nil {
			return fmt.Errorf("cannot apply %q: %w", o.GetName(), err)
		}
		if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return fmt.Errorf("cannot apply %s %q: %w", gvk.Kind, o.GetName(), err)
		}
		u.SetGroupVersionKind(gvk)
		if err := s.apply(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// applyCRDs applies the CustomResourceDefinitions in a directory and waits until they are served. Their
// conversion webhooks name a Service, and nothing here serves one: converters are at a URL instead; where
// that is empty, only the apiVersion is converted.
func (s *Stack) applyCRDs(ctx context.Context, dir, converters string) error {
	objects, err := readManifests(dir)
	if err != nil {
		return err
	}
	steps := make([]step, 0, len(objects))
	for _, u := range objects {
		switch _, converts, _ := unstructured.NestedMap(u.Object, "spec", "conversion", "webhook"); {
		case !converts || converters == "":
			unstructured.RemoveNestedField(u.Object, "spec", "conversion")
		default:
			config := map[string]any{"url": converters, "caBundle": base64.StdEncoding.EncodeToString(s.authority.pem)}
			if err := unstructured.SetNestedMap(u.Object, config, "spec", "conversion", "webhook", "clientConfig"); err != nil {
				return fmt.Errorf("cannot convert objects of %s: %w", u.GetName(), err)
			}
		}
		steps = append(steps, func(ctx context.Context) error {
			if err := s.apply(ctx, u); err != nil {
				return err
			}
			return s.established(ctx, u.GetName())
		})
	}
	return parallel(ctx, steps...)
}

// established waits until a CustomResourceDefinition is.
func (s *Stack) established(ctx context.Context, name string) error {
	err := wait.PollUntilContextTimeout(ctx, applyPoll, patience.Limit, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("cannot get CustomResourceDefinition %q served: %w", name, err)
	}
	return nil
}
