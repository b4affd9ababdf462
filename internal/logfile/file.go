// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// errLarge is the cause where an entry is larger than a file.
var errLarge = errors.New("it is larger than a file")

// file is what a log is written to, by one goroutine.
type file struct {
	out      *lumberjack.Logger
	max      int64
	complain func(error)

	// size of the file that is written to.
	size int64
	// torn is true where its last line may have no end.
	torn bool
	// has are the digests of what was in force that are in it.
	has map[string]bool
	// complained is true while it cannot be written.
	complained bool
}

func newFile(opts Options, complain func(error)) *file {
	const mebibyte = 1024 * 1024

	out := &file{
		max: opts.MaxBytes, complain: complain, has: map[string]bool{},
		// It rotates where it is told to, as each file has to begin with what was in force:
		// by itself only what is larger than it can be.
		out: &lumberjack.Logger{
			Filename: opts.File, MaxSize: int(2*opts.MaxBytes/mebibyte) + 1, MaxBackups: opts.MaxFiles - 1, Compress: true,
		},
	}

	// A process that was killed may have left half a line.
	if info, err := os.Stat(opts.File); err == nil && info.Size() > 0 {
		out.size, out.torn = info.Size(), true
	}

	return out
}

// write writes an entry, with what was in force where the file does not have that, after how
// many were dropped. It returns how many bytes it wrote.
func (f *file) write(entry decisionlog.Entry, dropped int64) (int, error) {
	text := f.text(entry, dropped)

	if f.size > 0 && f.size+int64(len(text)) > f.max {
		if err := f.out.Rotate(); err != nil {
			return 0, f.failed(err)
		}

		f.size, f.torn = 0, false
		clear(f.has)

		text = f.text(entry, dropped)
	}

	if int64(len(text)) > f.max {
		return 0, errLarge
	}

	written, err := f.out.Write(text)
	f.size += int64(written)

	if err != nil {
		f.torn = f.torn || written > 0
		clear(f.has)

		return written, f.failed(err)
	}

	f.has[entry.Digest], f.torn, f.complained = true, false, false

	return written, nil
}

// text is what is written of an entry.
func (f *file) text(entry decisionlog.Entry, dropped int64) []byte {
	var parts [][]byte

	if f.torn {
		parts = append(parts, []byte("\n"))
	}

	if dropped > 0 {
		parts = append(parts, decisionlog.DroppedLine(dropped))
	}

	if !f.has[entry.Digest] {
		parts = append(parts, entry.InForce)
	}

	return slices.Concat(append(parts, entry.Decision)...)
}

// failed complains, once.
func (f *file) failed(err error) error {
	err = fmt.Errorf("cannot write decision log %q: %w", f.out.Filename, err)

	if !f.complained {
		f.complained = true
		f.complain(err)
	}

	return err
}

func (f *file) close() {
	if err := f.out.Close(); err != nil {
		_ = f.failed(err)
	}
}
