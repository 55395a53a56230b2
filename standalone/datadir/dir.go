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

// ErrLocked means that another process uses the folder.
var ErrLocked = errors.New("another process is using the data folder")

// Dir is a data folder that this process has locked.
type Dir struct {
	path string
	lock *os.File
}

// Open locks the data folder for this process. It creates the folder if there is none, removes
// the rights of other users, and removes the announcement of an earlier process. If another
// process holds the lock, Open returns ErrLocked. The kernel releases the lock when the process
// dies, even by kill -9.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := checkOwnership(path); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = lock.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s%s", ErrLocked, path, holderText(lock))
		}
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	d := &Dir{path: path, lock: lock}
	if err := errors.Join(d.removeOthersRights(), d.noteHolder(), d.Retract()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// checkOwnership returns an error for a folder that is not only ours: one that is shared, such as /tmp, or
// one with files but without ours, such as /etc or a home folder. Open must not remove other
// users' rights there.
func checkOwnership(path string) error {
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

// fileSystemFolder exists in each new volume.
const fileSystemFolder = "lost+found"

// removeOthersRights removes the rights of other users from the folder and from its entries. They may be older
// than this process or come from a backup. Deeper entries are protected by their folders.
// removeOthersRights does not follow or change links.
func (d *Dir) removeOthersRights() error {
	about, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	if err := removeOthersRights(d.path, about); err != nil {
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
			if err := removeOthersRights(d.Path(entry.Name()), about); err != nil {
				return err
			}
		}
	}
	return nil
}

const othersRights = 0o077

func removeOthersRights(path string, about fs.FileInfo) error {
	if about.Mode().Perm()&othersRights == 0 {
		return nil
	}
	return os.Chmod(path, about.Mode().Perm()&^othersRights)
}

// Path returns the absolute path of name in the folder.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Close releases the lock.
func (d *Dir) Close() error { return d.lock.Close() }

// Announce writes v to standalone.json. A reader sees the whole file or none.
func (d *Dir) Announce(v any) error { return d.writeJSON(announceName, v) }

// Retract removes standalone.json.
func (d *Dir) Retract() error {
	err := os.Remove(d.Path(announceName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeJSON replaces a file in one step. The content is on disk before the rename, so a crash
// leaves the old content or the new.
func (d *Dir) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	file, err := os.CreateTemp(d.path, "."+name+"-*") // created with mode 0600
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

// noteHolder writes the process id into the lock file. A second process prints it in its error.
func (d *Dir) noteHolder() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// holderText returns the process that the lock file names, for an error. It returns "" if the file
// names none yet.
func holderText(lock *os.File) string {
	buf := make([]byte, 20)
	n, _ := lock.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
