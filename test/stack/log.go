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
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailLines is how many lines of a log an error shows.
const tailLines = 20

// tailBytes is how much of the end of a log is read to find them.
const tailBytes = 32 << 10

// lastLines returns the last lines of s: as many as an error shows.
func lastLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// tail returns the last lines of a log, below a line that names it.
func tail(path string) string {
	end, err := readEnd(path, tailBytes)
	if err != nil {
		return fmt.Sprintf("(cannot read log: %v)", err)
	}
	if strings.TrimSpace(end) == "" {
		return fmt.Sprintf("(nothing in %s)", path)
	}
	return fmt.Sprintf("the last lines of %s:\n%s", path, lastLines(end))
}

// readEnd returns at most the last n bytes of a file.
func readEnd(path string, n int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	b := make([]byte, min(n, info.Size()))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b), nil
}
