// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// templates is a composition function that renders a text template of its input
// over the request, as those that people use for templates do: documents of
// YAML, each with a name, and one for the composite resource's status.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"text/template"
	"time"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// annotationName names a resource, and says that it is ready as soon as it is
// there, unless it is asked to wait.
const (
	annotationName = "templates.example.org/name"
	annotationWait = "templates.example.org/wait"
)

var errName = errors.New("it has no annotation " + annotationName)

type templates struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction adds what the template renders to what is desired.
func (templates) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	if err := render(req, rsp); err != nil {
		response.Fatal(rsp, err)
	}

	return rsp, nil
}

func render(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) error {
	funcs := template.FuncMap{
		"now": func() string { return time.Now().UTC().Truncate(time.Minute).Format(time.RFC3339) },
		// As another release of the function may render the same input otherwise.
		"program": func() string { return filepath.Base(os.Args[0]) },
	}

	t, err := template.New("input").Funcs(funcs).Parse(req.GetInput().GetFields()["template"].GetStringValue())
	if err != nil {
		return fmt.Errorf("cannot parse template: %w", err)
	}

	xr := req.GetObserved().GetComposite().GetResource().AsMap()

	var out bytes.Buffer
	if err := t.Execute(&out, map[string]any{"xr": xr}); err != nil {
		return fmt.Errorf("cannot render template: %w", err)
	}

	if rsp.GetDesired().GetResources() == nil {
		rsp.Desired = &fnv1.State{Composite: req.GetDesired().GetComposite(), Resources: map[string]*fnv1.Resource{}}
	}

	for dec := yaml.NewYAMLOrJSONDecoder(&out, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read document: %w", err)
		}

		if err := add(rsp, u, xr["kind"] == u.GetKind()); err != nil {
			return fmt.Errorf("cannot desire %s: %w", u.GetKind(), err)
		}
	}
}

// add desires a document: a resource, or the composite resource's status.
func add(rsp *fnv1.RunFunctionResponse, u *unstructured.Unstructured, composite bool) error {
	annotations := u.GetAnnotations()
	name, wait := annotations[annotationName], annotations[annotationWait] != ""

	delete(annotations, annotationName)
	delete(annotations, annotationWait)
	u.SetAnnotations(annotations)

	st, err := structpb.NewStruct(u.Object)
	if err != nil {
		return fmt.Errorf("cannot encode it: %w", err)
	}

	switch {
	case composite:
		rsp.Desired.Composite = &fnv1.Resource{Resource: st}
	case name == "":
		return errName
	default:
		r := &fnv1.Resource{Resource: st, Ready: fnv1.Ready_READY_TRUE}
		if wait {
			r.Ready = fnv1.Ready_READY_UNSPECIFIED
		}

		rsp.Desired.Resources[name] = r
	}

	return nil
}

func main() {
	address := flag.String("address", "", "address to listen on")
	certs := flag.String("tls-certs-dir", "", "directory with tls.key, tls.crt and ca.crt")
	flag.Parse()

	if err := function.Serve(templates{}, function.Listen("tcp", *address), function.MTLSCertificates(*certs)); err != nil {
		log.Fatal(err)
	}
}
