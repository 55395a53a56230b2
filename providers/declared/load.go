package declared

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed vendors/*.yaml
var vendors embed.FS

//go:embed new.yaml
var newFile string

// NewFile returns the text of a new file for a vendor with this name.
func NewFile(name string) (string, error) {
	if !fileName.MatchString(name) {
		return "", fmt.Errorf("%q is no name: a letter from a to z, then letters, digits and -, 41 at most", name)
	}
	return strings.Replace(newFile, "name: example", "name: "+name, 1), nil
}

// BuiltinText returns the text of a built-in file.
func BuiltinText(name string) (string, error) {
	text, err := vendors.ReadFile("vendors/" + name + ".yaml")
	if err == nil {
		return string(text), nil
	}
	var names []string
	for _, v := range Builtin() {
		names = append(names, v.Name)
	}
	return "", fmt.Errorf("no built-in file has the name %q; known: %s", name, strings.Join(names, ", "))
}

// Builtin returns the vendors whose files are part of the program. It panics if a file has a fault,
// which a test would have found.
func Builtin() []*Vendor {
	list, err := readAll(vendors, "vendors", "", nil)
	if err != nil {
		panic(err)
	}
	return list
}

// ReadFile reads one file.
func ReadFile(name string, allow Allow) (*Vendor, error) {
	list, err := readAll(os.DirFS(filepath.Dir(name)), ".", filepath.Dir(name), allow, filepath.Base(name))
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// ReadDir reads the files of a folder that end in .yaml. It returns the vendors whose files have no
// faults. The error joins the faults of all files.
func ReadDir(dir string, allow Allow) ([]*Vendor, error) {
	return readAll(os.DirFS(dir), ".", dir, allow)
}

// readAll reads files of a folder: the named ones, or all that end in .yaml. shown is the name of
// the folder in faults.
func readAll(files fs.FS, folder, shown string, allow Allow, names ...string) (list []*Vendor, err error) {
	if len(names) == 0 {
		entries, err := fs.ReadDir(files, folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".yaml") {
				names = append(names, e.Name())
			}
		}
	}
	for _, name := range names {
		file, path := filepath.Join(shown, name), name
		if folder != "." {
			path = folder + "/" + name
		}
		text, wrong := readFile(files, path)
		if wrong != nil {
			err = errors.Join(err, fault{file, 1, 1, wrong.Error()})
			continue
		}
		v, wrong := Read(file, text, allow)
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		list = append(list, v)
	}
	return list, err
}

func readFile(files fs.FS, path string) ([]byte, error) {
	info, err := fs.Stat(files, path)
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case !info.Mode().IsRegular():
		return nil, errors.New("is no file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("the file is longer than %d bytes", maxFile)
	}
	return fs.ReadFile(files, path)
}

// Fault returns a fault at the position of the vendor's name.
func (v *Vendor) Fault(format string, args ...any) error {
	return fault{v.File, v.line, v.column, "name: " + fmt.Sprintf(format, args...)}
}
