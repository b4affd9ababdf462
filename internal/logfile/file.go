// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

	// is the file that is written to, as it was found; nil before it was looked for.
	is os.FileInfo
	// size of it.
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

	return &file{
		max: opts.MaxBytes, complain: complain, has: map[string]bool{},
		// It rotates where it is told to, as each file has to begin with what was in force:
		// by itself only what is larger than it can be.
		out: &lumberjack.Logger{
			Filename: opts.File, MaxSize: int(2*opts.MaxBytes/mebibyte) + 1, MaxBackups: opts.MaxFiles - 1, Compress: true,
		},
	}
}

// find finds the file that is written to, and makes it where there is none. One that is
// not as it was left, for somebody removed it, rotated it or emptied it, begins anew with
// what was in force. What others append to it counts.
func (f *file) find() error {
	info, err := os.Stat(f.out.Filename)
	if err == nil && f.is != nil && os.SameFile(info, f.is) && info.Size() >= f.size {
		f.size = info.Size()

		return nil
	}

	if err := f.leave(); err != nil {
		return err
	}

	if errors.Is(err, fs.ErrNotExist) {
		err = f.create()
	}

	if err == nil {
		info, err = os.Stat(f.out.Filename)
	}

	if err != nil {
		return err
	}

	// A process that was killed may have left half a line.
	f.is, f.size, f.torn = info, info.Size(), info.Size() > 0

	return nil
}

// leave has the file be looked for again.
func (f *file) leave() error {
	f.is, f.size, f.torn = nil, 0, false
	clear(f.has)

	return f.out.Close()
}

// create makes an empty file, which is then appended to, whoever else writes to it.
func (f *file) create() error {
	const directory, ours = 0o755, 0o600

	if err := os.MkdirAll(filepath.Dir(f.out.Filename), directory); err != nil {
		return err
	}

	out, err := os.OpenFile(f.out.Filename, os.O_CREATE|os.O_WRONLY|os.O_APPEND, ours)
	if err != nil {
		return err
	}

	return out.Close()
}

// rotate has the next entry begin another file.
func (f *file) rotate() error { return errors.Join(f.out.Rotate(), f.leave(), f.find()) }

// write writes an entry, with what was in force where the file does not have that, after how
// many were dropped. It returns how many bytes it wrote.
func (f *file) write(entry decisionlog.Entry, dropped int64) (int, error) {
	if err := f.find(); err != nil {
		return 0, f.failed(err)
	}

	text := f.text(entry, dropped)

	if f.size > 0 && f.size+int64(len(text)) > f.max {
		if err := f.rotate(); err != nil {
			return 0, f.failed(err)
		}

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
