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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// EnvDecisions is the environment variable that names a directory for decision logs: each manager and
// each function-kausality of a stack then logs all its decisions there, from which test/judge/record makes
// the log of the judge. A process with a decision log of its own in flags of a test keeps that one; that of
// Options.DecisionLog is there under its own name, too.
const EnvDecisions = "KAUSALITY_DECISIONS"

// recorded adds the flags of a decision log to those of a process, where one is asked for. The log is
// appended to by each start, and never rotated.
func recorded(process string, flags []string) []string {
	dir := os.Getenv(EnvDecisions)
	if dir == "" || slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--decision-log=") }) {
		return flags
	}
	const more = 1 << 40
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.log", process, os.Getpid()))
	return append(flags, "--decision-log="+file, "--decision-log-rate=0", fmt.Sprint("--decision-log-max-bytes=", int64(more)))
}

// decisionLog is the flag for the log of Options.DecisionLog.
func (s *Stack) decisionLog() (string, error) {
	file := s.path("run", "decisions.log")
	if dir := os.Getenv(EnvDecisions); dir != "" {
		if err := os.Symlink(filepath.Join(dir, fmt.Sprintf("decisions-%d.log", os.Getpid())), file); err != nil {
			return "", fmt.Errorf("cannot link decision log: %w", err)
		}
	}
	return "--decision-log=" + file, nil
}
