// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// counter is a composition function that does nothing but print one line for each
// run of the pipeline it is in: which composite resource it is for, and when.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

type counter struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction returns what it gets. Crossplane is to run the pipeline again after
// the ttl in the input of the step.
func (counter) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	ttl, err := time.ParseDuration(req.GetInput().GetFields()["ttl"].GetStringValue())
	if err != nil {
		return nil, fmt.Errorf("cannot read ttl: %w", err)
	}

	meta := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()

	line, err := json.Marshal(map[string]any{"xr": meta["name"].GetStringValue(), "at": time.Now()})
	if err != nil {
		return nil, fmt.Errorf("cannot print a run: %w", err)
	}

	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("cannot print a run: %w", err)
	}

	return response.To(req, ttl), nil
}

func main() {
	address := flag.String("address", "", "address to listen on")
	certs := flag.String("tls-certs-dir", "", "directory with tls.key, tls.crt and ca.crt")
	flag.Parse()

	if err := function.Serve(counter{}, function.Listen("tcp", *address), function.MTLSCertificates(*certs)); err != nil {
		log.Fatal(err)
	}
}
