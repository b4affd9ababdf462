// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kausality-io/kausality-crossplane/test/demo/session"
)

// title of a recording.
const title = "make demo: hans changes a database, anna may not, and everybody can see who did"

// extensions of recordings.
const (
	picture = ".svg"
	cast    = ".cast"
)

var errExtension = errors.New("it must end in .svg or .cast")

// recordable reports whether there is a recording of the file's kind, before anything
// has begun.
func recordable(file string) error {
	if ext := filepath.Ext(file); ext != picture && ext != cast {
		return fmt.Errorf("cannot record %q: %w", file, errExtension)
	}

	return nil
}

// record writes recordings: a picture of the highlights, or everything.
func record(told *session.Session, files []string) error {
	for _, file := range files {
		text := session.Picture(title, session.Highlights(told.Blocks()))

		if filepath.Ext(file) == cast {
			var err error
			if text, err = session.Cast(title, told.Blocks()); err != nil {
				return fmt.Errorf("cannot record %q: %w", file, err)
			}
		}

		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // For everybody to see.
			return fmt.Errorf("cannot record: %w", err)
		}

		fmt.Println("Recorded in", file)
	}

	return nil
}
