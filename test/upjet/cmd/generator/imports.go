// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// Only generated code imports these, and it is not in the tree: without this file go mod tidy would drop their modules,
// and what is generated would not build.
import (
	_ "dario.cat/mergo"
	_ "github.com/pkg/errors" //nolint:depguard // upjet's templates import it.
)
