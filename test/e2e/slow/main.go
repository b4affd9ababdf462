// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// slow is a composition function that does nothing, slowly: what Crossplane has
// observed is stale when it applies what the pipeline makes of it.
package main

import (
	"context"
	"flag"
	"log"
	"math/rand/v2"
	"time"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
)

// most is how long a call takes at most.
const most = 600 * time.Millisecond

type slow struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction returns what it gets, after a while.
func (slow) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	select {
	case <-time.After(rand.N(most)):
		return response.To(req, response.DefaultTTL), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func main() {
	address := flag.String("address", "", "address to listen on")
	certs := flag.String("tls-certs-dir", "", "directory with tls.key, tls.crt and ca.crt")
	flag.Parse()

	if err := function.Serve(slow{}, function.Listen("tcp", *address), function.MTLSCertificates(*certs)); err != nil {
		log.Fatal(err)
	}
}
