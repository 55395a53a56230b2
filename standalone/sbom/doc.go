// Command sbom writes the bill of materials of a program: the Go modules that it
// was built of, with their versions and checksums, as the linker recorded them,
// in the JSON of CycloneDX 1.6.
package main
