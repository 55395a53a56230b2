package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	lockName     = "lock"
	announceName = "standalone.json"
	secretsName  = "secrets.json"
)

// ErrLocked means that another process works in the folder.
var ErrLocked = errors.New("another process is using the data folder")

// Dir is a data folder that this process holds.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the folder when it is absent, takes it for this process, and
// removes what an earlier process announced. It returns ErrLocked when another
// process holds the folder. The kernel lets go of the lock when the process
// dies, however it dies.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = lock.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s%s", ErrLocked, path, holder(lock))
		}
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	d := &Dir{path: path, lock: lock}
	if err := errors.Join(d.noteHolder(), d.Retract()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Path returns the absolute path of name in the folder.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Close lets others take the folder.
func (d *Dir) Close() error { return d.lock.Close() }

// Announce publishes v as standalone.json. A reader sees the whole file or
// none.
func (d *Dir) Announce(v any) error { return d.writeJSON(announceName, v) }

// Retract removes standalone.json.
func (d *Dir) Retract() error {
	err := os.Remove(d.Path(announceName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeJSON replaces name in one step. The file is on disk before the name is,
// so that a crash leaves the old content or the new.
func (d *Dir) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	file, err := os.CreateTemp(d.path, "."+name+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(append(data, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Rename(file.Name(), d.Path(name))
}

// noteHolder writes the process id into the lock file, for the message that a
// second process prints.
func (d *Dir) noteHolder() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// holder names the process in the lock file, if it has got that far.
func holder(lock *os.File) string {
	buf := make([]byte, 20)
	n, _ := lock.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
