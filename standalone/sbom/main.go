package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	out := flag.String("o", "", "file to write; empty: standard output")
	version := flag.String("version", "", "the program's version, where the linker was not told")
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "usage: sbom [-o FILE] [-version VERSION] PROGRAM\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *version, *out); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program, version, out string) (err error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	if version != "" {
		info.Main.Version = version
	}
	w := io.Writer(os.Stdout)
	if out != "" {
		file, err := os.Create(out)
		if err != nil {
			return err
		}
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
		}()
		w = file
	}
	bom, err := materials(filepath.Base(program), info)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// materials is the bill of a program. It names no time and no serial number: the
// same program has the same bill.
func materials(name string, info *debug.BuildInfo) (*cyclonedx.BOM, error) {
	program := cyclonedx.Component{BOMRef: "program", Type: cyclonedx.ComponentTypeApplication, Name: name, Version: info.Main.Version}
	components := []cyclonedx.Component{{
		BOMRef: "go", Type: cyclonedx.ComponentTypeLibrary, Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c, err := component(m)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// component is a module as it was built. Its checksum is the one that go.sum
// has: SHA-256 over the module's files.
func component(m *debug.Module) (cyclonedx.Component, error) {
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + m.Version
	}
	c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl}
	if m.Sum == "" { // a folder beside the program's own module
		return c, nil
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return c, fmt.Errorf("checksum of %s: %w", m.Path, err)
	}
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return c, nil
}
