// Command benchjson turns the output of `go test -bench` on its standard input into JSON on its
// standard output: one entry per benchmark, with the median and the range of each unit.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchjson:", err)
		os.Exit(1)
	}
}

// run converts in to out. The one optional argument is the version of the code that was measured.
func run(in io.Reader, out io.Writer, args []string) error {
	r, err := parse(in)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		r.Version = args[0]
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("cannot write results: %w", err)
	}
	return nil
}
