// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metricPrefix starts the name of every metric of ours.
const metricPrefix = "kausality_"

// metricSources are the directories of the programs that export metrics.
func metricSources() []string {
	return []string{"cmd", "engine", "fn", "gatecontroller", "internal", "webhook"}
}

// complete fails where metrics are not all that the sources have, or more: what
// [metrics] calls is another place than where the programs register them.
func complete(list []metric) error {
	inSources, described := map[string]bool{}, map[string]bool{}

	for _, dir := range metricSources() {
		names, err := metricNames(dir)
		if err != nil {
			return err
		}

		for _, name := range names {
			inSources[name] = true
		}
	}

	// Programs may share one.
	for _, m := range list {
		described[m.Name] = true

		if !inSources[m.Name] {
			return fmt.Errorf("metric %s is not a literal in the sources: %w", m.Name, errUndescribed)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(inSources)) {
		if !described[name] {
			return fmt.Errorf("metric %s: %w", name, errUndescribed)
		}
	}

	return nil
}

// metricNames are those in the sources of a directory and of those below it.
func metricNames(dir string) ([]string, error) {
	var out []string

	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(text, metricPrefix) {
					out = append(out, text)
				}
			}

			return true
		})

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the sources: %w", err)
	}

	return out, nil
}
