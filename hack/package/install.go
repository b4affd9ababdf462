// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// home is what the packages call each other by, wherever they are.
	home = "xpkg.crossplane.io/kausality-io"

	// mirrorName is of the ImageConfig that has Crossplane search elsewhere.
	mirrorName = "kausality-mirror"
	mirror     = `# The packages were pushed to a registry of your own; here Crossplane learns where.
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata:
  name: ` + mirrorName + `
spec:
  matchImages:
  - prefix: ` + home + `/
  rewriteImage:
    prefix: %s/
`

	separator = "---\n"
)

// errScheme is why a repository is refused.
var errScheme = errors.New("it has no scheme, such as https://")

// validRepository says what is wrong with a registry and organization.
func validRepository(repository string) error {
	if strings.Contains(repository, "://") {
		return fmt.Errorf("cannot use repository %q: %w", repository, errScheme)
	}

	if _, err := name.NewRepository(repository + "/" + manager); err != nil {
		return fmt.Errorf("cannot use repository %q: %w", repository, err)
	}

	return nil
}

// install writes what is to be applied: the rights of the manager, in the
// namespace that Providers run in, where the packages are, and these.
func (w *writer) install(root, repository string) error {
	text := &bytes.Buffer{}

	for _, path := range []string{"rbac/role.yaml", installFile} {
		part, err := os.ReadFile(filepath.Join(root, "package", filepath.FromSlash(path))) //nolint:gosec // Of this repository.
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", installFile, err)
		}

		if !bytes.HasPrefix(part, []byte(separator)) {
			text.WriteString(separator)
		}

		text.Write(part)
	}

	out := strings.NewReplacer("namespace: kausality-system", "namespace: crossplane-system", ":VERSION", ":"+w.version).Replace(text.String())
	out = mirrored(out, repository)

	if err := errors.Join(writeInstall(w.dir, out), writeMirror(w.dir, repository)); err != nil {
		return err
	}

	sum := sha256.Sum256([]byte(out))

	return w.say(filepath.Join(w.dir, installFile), func() (v1.Hash, error) {
		return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}, nil
	})
}

// reinstall has what was written before say where the packages are now.
func reinstall(dir, repository string) error {
	text, err := os.ReadFile(filepath.Join(dir, installFile)) //nolint:gosec // Just built.
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", installFile, err)
	}

	return errors.Join(writeInstall(dir, mirrored(string(text), repository)), writeMirror(dir, repository))
}

func writeInstall(dir, text string) error {
	if err := os.WriteFile(filepath.Join(dir, installFile), []byte(text), 0o644); err != nil { //nolint:gosec // For everybody to read.
		return fmt.Errorf("cannot write %s: %w", installFile, err)
	}

	return nil
}

// writeMirror writes where Crossplane finds the packages, by itself: for
// who installs them one by one. Those at home need nothing.
func writeMirror(dir, repository string) error {
	path := filepath.Join(dir, mirrorFile)

	err := os.RemoveAll(path)
	if err == nil && repository != home {
		err = os.WriteFile(path, fmt.Appendf(nil, mirror, repository), 0o644) //nolint:gosec // For everybody to read.
	}

	if err != nil {
		return fmt.Errorf("cannot write %s: %w", mirrorFile, err)
	}

	return nil
}

// mirrored puts first, in manifests, where the packages are, unless that is what
// they are called by. What was said before of that goes.
func mirrored(text, repository string) string {
	documents := strings.Split(strings.TrimPrefix(text, separator), "\n"+separator)
	out := &strings.Builder{}

	if repository != home {
		fmt.Fprintf(out, separator+mirror, repository)
	}

	for _, d := range documents {
		if !strings.Contains(d, "\n  name: "+mirrorName+"\n") {
			out.WriteString(separator + strings.TrimSuffix(d, "\n") + "\n")
		}
	}

	return out.String()
}
