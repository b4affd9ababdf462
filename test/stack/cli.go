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
	"context"
	"os"
)

// CrossplaneCLI builds Crossplane's command line, which people call crossplane, and returns its path. No
// stack needs it. Progress goes to standard error.
func CrossplaneCLI(ctx context.Context) (string, error) {
	const (
		name   = "crank"
		module = "github.com/crossplane/crossplane/v2"
	)
	built, err := build(ctx, os.Stderr, []tool{{
		name:    name,
		dir:     "crossplane-cli",
		module:  module,
		pkg:     module + "/cmd/" + name,
		ldflags: "-X " + module + "/internal/version.version=$VERSION",
	}})
	return built.Binary(name), err
}
