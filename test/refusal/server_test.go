// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// server checks what is created as the API server does: by the schemas of our CRDs, and
// then by our webhook.
type server map[string]*kind

// kind is what an API server knows of a kind.
type kind struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

// start reads the CRDs.
func start(t *testing.T) server {
	t.Helper()

	files, err := filepath.Glob("../../package/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CRDs: %v", err)
	}

	out := server{}

	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, crd := range parse(t, raw) {
			out.define(t, crd)
		}
	}

	return out
}

// define adds the kind of a CRD.
func (s server) define(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()

	crd := &extv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, crd, true); err != nil {
		t.Fatal(err)
	}

	k, err := newKind(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", crd.GetName(), err)
	}

	s[crd.Spec.Names.Kind] = k
}

func newKind(in *extv1.JSONSchemaProps) (*kind, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in, props, nil); err != nil {
		return nil, err
	}

	s, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}

	validator, _, err := validation.NewSchemaValidator(props)

	return &kind{schema: s, validator: validator, rules: cel.NewValidator(s, true, celconfig.PerCallLimit)}, err
}

// create is the server's answer, in its words: nil where the object is good. What is wrong
// with which field is in the causes of the error.
func (s server) create(ctx context.Context, in *unstructured.Unstructured) error {
	if err := s.bySchema(ctx, in); err != nil {
		return err
	}

	return s.byWebhook(ctx, in)
}

// bySchema is what the schema of an object's kind says of it.
func (s server) bySchema(ctx context.Context, in *unstructured.Unstructured) error {
	k, ok := s[in.GetKind()]
	if !ok {
		return fmt.Errorf("%s is none of our kinds", in.GetKind())
	}

	u := in.DeepCopy()

	unknown := pruning.PruneWithOptions(u.Object, k.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("there are no fields %q", unknown)
	}

	defaulting.Default(u.Object, k.schema)

	if errs := k.check(ctx, u); len(errs) > 0 {
		return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs)
	}

	return nil
}

// byWebhook is what our webhook says of an object that its schema is good with.
func (s server) byWebhook(ctx context.Context, in *unstructured.Unstructured) error {
	u := in.DeepCopy()
	defaulting.Default(u.Object, s[u.GetKind()].schema)

	raw, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}

	gvk := u.GroupVersionKind()
	answer := webhook.Validator{}.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Name:      u.GetName(),
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Object:    runtime.RawExtension{Raw: raw},
	}})
	if answer.Allowed {
		return nil
	}

	return &apierrors.StatusError{ErrStatus: *answer.Result}
}

// check checks an object by its schema, as a strategy of custom resources does: rules are
// asked only where what they read is there.
//
// Source: hasBlockingErr of k8s.io/apiextensions-apiserver, pkg/registry/customresource/strategy.go.
func (k *kind) check(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, u.Object, k.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, u.Object)...)

	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs
		default:
		}
	}

	broken, _ := k.rules.Validate(ctx, nil, k.schema, u.Object, nil, celconfig.RuntimeCELCostBudget)

	return append(errs, broken...)
}

// parse reads the objects of some YAML.
func parse(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()

	var out []*unstructured.Unstructured

	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}

		err := dec.Decode(u)
		if errors.Is(err, io.EOF) {
			return out
		}

		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}

		out = append(out, u)
	}
}

// causes are what is wrong with which field.
func causes(err error) []metav1.StatusCause {
	status := (*apierrors.StatusError)(nil)
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return nil
	}

	return status.ErrStatus.Details.Causes
}
