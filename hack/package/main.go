// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package makes the container images and the Crossplane packages, without a
// container engine, and pushes them to a registry. It is a module of its own, to
// keep what it needs away from the programs it packs.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Build build `cmd:"" help:"Build the images and packages."`
	Push  push  `cmd:"" help:"Push what was built to a registry."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)

	k := kong.Parse(&cli{}, kong.Description("Packs Kausality."), kong.Vars{"home": home},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(os.Stdout, (*io.Writer)(nil)))
	err := k.Run()

	stop()
	k.FatalIfErrorf(err)
}
