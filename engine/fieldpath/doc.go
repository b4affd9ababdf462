// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldpath parses and writes the paths by which Crossplane and Kausality name
// fields, such as spec.containers[0].image, and reads values by them.
//
// A path is fields with a period between them. In brackets stands the index of a list,
// or a field of which the name has periods in it, as in
// metadata.annotations[kausality.io/trace]. It is what
// github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath accepts, which a fuzz test
// holds it to; that one is not used because it brings the clients of Kubernetes along.
package fieldpath
