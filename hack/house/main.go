// Command house measures how much of the code somebody has to hold in their head, and prints that beside the
// numbers of an earlier commit: run it in the repository's root.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	dir := flag.String("dir", ".", "root of the checkout that is measured")
	asJSON := flag.Bool("json", false, "print the numbers as JSON, as baseline.json has them")
	all := flag.Bool("all", false, "print all functions that get more than they read, instead of ten")
	flag.Parse()

	if err := run(context.Background(), os.Stdout, *dir, *asJSON, *all); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// baseline has the numbers of commit ea921c02, by this program.
//
//go:embed baseline.json
var baseline []byte

// A row is a number of the house.
type row struct {
	// Name of what is counted.
	Name string `json:"name"`
	// Value of it; a wish is a value that the design hopes for, nil for none.
	Value int  `json:"value"`
	Wish  *int `json:"wish,omitempty"`
	// Of what it is, such as the name of the largest type; empty for nothing.
	Of string `json:"of,omitempty"`
}

func run(ctx context.Context, out io.Writer, dir string, asJSON, all bool) error {
	h, err := load(dir)
	if err != nil {
		return err
	}

	rows, err := h.rows(ctx)
	if err != nil {
		return err
	}

	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")

		if err := encoder.Encode(rows); err != nil {
			return fmt.Errorf("cannot print: %w", err)
		}

		return nil
	}

	var before []row
	if err := json.Unmarshal(baseline, &before); err != nil {
		return fmt.Errorf("cannot read baseline.json: %w", err)
	}

	printRows(out, rows, before)
	printPackages(out, h.byPackage())
	printFat(out, h.fat(), all)

	return nil
}

func printRows(out io.Writer, rows, before []row) {
	was := map[string]row{}
	for _, r := range before {
		was[r.Name] = r
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tea921c02\ttoday\twish\t")

	for _, r := range rows {
		wish := ""
		if b := was[r.Name]; b.Wish != nil {
			wish = strconv.Itoa(*b.Wish)
		}

		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\n", r.Name, was[r.Name].Value, r.Value, wish, r.Of)
	}

	_ = table.Flush() // Of standard output.
}

func printPackages(out io.Writer, list []packageSize) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\npackage\tfiles\tlines\tstatements\tfunctions\tlongest")

	for _, p := range list {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d %s\n", p.name, p.files, p.lines, p.statements, p.functions, p.longest, p.longestName)
	}

	_ = table.Flush()
}

// shown is how many functions are printed that get more than they read.
const shown = 10

func printFat(out io.Writer, list []fat, all bool) {
	fmt.Fprintf(out, "\n%d functions get a value of more than %d fields and read fewer than half of them", len(list), manyFields)

	if !all && len(list) > shown {
		fmt.Fprintf(out, "; the %d that read the least", shown)
		list = list[:shown]
	}

	fmt.Fprintln(out, ":")

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(table, "%s\t%s\treads %d of %d\t%s\n", f.function, f.param, len(f.reads), f.fields, strings.Join(f.reads, " "))
	}

	_ = table.Flush()
}
