// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// logTime is how the server writes a time.
const logTime = "2006-01-02 15:04:05.000 MST"

// executed matches what the server logs of a statement that has succeeded, of the
// simple and of the extended protocol.
var executed = regexp.MustCompile(`(?s)^duration: [0-9.]+ ms  (?:statement|execute [^:]*): (.*)$`)

// reading matches what changes nothing: what the provider and these tests read.
// Anything else may change something.
var reading = regexp.MustCompile(`^(;|SELECT (count|pg_get_userbyid|pg_encoding_to_char|datconnlimit|coalesce|rolcanlogin|array_agg|matviewname|'DROP)\b[^;]*)$`)

// statements returns what changed something or was to, in the order in which it
// ended. A last line that is being written is left out.
func statements() ([]statement, error) {
	raw, err := os.ReadFile(running.PostgreSQL().Log())
	if err != nil {
		return nil, err
	}

	var out []statement

	for lines := bufio.NewReader(bytes.NewReader(raw)); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return out, nil //nolint:nilerr // It ends there.
		}

		s, ok, err := parse(line)
		if err != nil {
			return nil, err
		}

		if ok {
			out = append(out, s)
		}
	}
}

// parse reads a line of the log, and reports whether it is about a change.
func parse(line []byte) (s statement, ok bool, err error) {
	entry := struct {
		Timestamp string `json:"timestamp"`
		User      string `json:"user"`
		Database  string `json:"dbname"`
		Severity  string `json:"error_severity"`
		Message   string `json:"message"`
		Statement string `json:"statement"`
	}{}
	if err := json.Unmarshal(line, &entry); err != nil {
		return s, false, fmt.Errorf("cannot read %q of the log: %w", line, err)
	}

	s.at, err = time.Parse(logTime, entry.Timestamp)
	if err != nil {
		return s, false, fmt.Errorf("cannot read the time of %q: %w", line, err)
	}

	s.user, s.database = entry.User, entry.Database

	switch entry.Severity {
	case "ERROR", "FATAL":
		s.text, s.failed = entry.Statement, entry.Message
	default:
		if m := executed.FindStringSubmatch(entry.Message); m != nil {
			s.text = m[1]
		}
	}

	return s, s.text != "" && !reading.MatchString(s.text), nil
}

// ofProvider are the provider's statements about an object of a name.
func ofProvider(name string) ([]statement, error) {
	all, err := statements()
	if err != nil {
		return nil, err
	}

	var out []statement

	for _, s := range all {
		if s.user == stack.PostgreSQLProvider && strings.Contains(s.text, `"`+name+`"`) {
			out = append(out, s)
		}
	}

	return out, nil
}
