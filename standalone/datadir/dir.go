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

// Open makes the folder when it is absent, takes it for this process, shuts
// others out of it, and removes what an earlier process announced. It returns ErrLocked when another
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
	if err := own(path); err != nil {
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
	if err := errors.Join(d.shut(), d.noteHolder(), d.Retract()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// own refuses folders that are not for us alone: those for many, such as /tmp, and
// those with files and without our secrets, such as /etc or a home. They must not
// be shut.
func own(path string) error {
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	if about.Mode()&fs.ModeSticky != 0 {
		return fmt.Errorf("%s is shared with others: take a folder of its own", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	foreign := ""
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == secretsName, name == lockName, name == announceName:
			return nil
		case name != fileSystemFolder:
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%s holds %s, and nothing of ours: take a folder of its own", path, foreign)
	}
	return nil
}

// fileSystemFolder is in each new volume.
const fileSystemFolder = "lost+found"

// shut takes the rights of others from the folder, and from what lies in it:
// it may have been there before, or have come out of a backup. What lies deeper
// is behind these. Links are left alone, whatever they lead to.
func (d *Dir) shut() error {
	about, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	if err := shut(d.path, about); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		about, err := entry.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case about.IsDir() || about.Mode().IsRegular():
			if err := shut(d.Path(entry.Name()), about); err != nil {
				return err
			}
		}
	}
	return nil
}

const othersRights = 0o077

func shut(path string, about fs.FileInfo) error {
	if about.Mode().Perm()&othersRights == 0 {
		return nil
	}
	return os.Chmod(path, about.Mode().Perm()&^othersRights)
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
