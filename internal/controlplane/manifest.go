// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// manifestName is the file, beside the binaries, that records what was put there.
const manifestName = ".reprise-assets.json"

// record describes a binary as it was when it was put in place.
type record struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
	SHA256  string    `json:"sha256"`
	Version string    `json:"version"`
}

type manifest map[string]record

// readManifest returns what is recorded of a directory; nothing when there is no record, or none that can be read (then
// the binaries themselves are asked).
func readManifest(dir string) manifest {
	m := manifest{}
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil || json.Unmarshal(data, &m) != nil {
		return manifest{}
	}
	return m
}

// write replaces the manifest in one step.
func (m manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, manifestName+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(data, '\n'))
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close()) // whoever may run the binaries may read their record
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(dir, manifestName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// newRecord measures a file.
func newRecord(path, version string) (record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return record{}, err
	}
	sum, err := sha256Of(path)
	if err != nil {
		return record{}, err
	}
	return record{Size: info.Size(), ModTime: info.ModTime(), SHA256: sum, Version: version}, nil
}

// matches says whether the file is still the recorded one. Size and time settle it almost always; the sum is computed
// only where the time moved, for it would cost every test package a second.
func (r record) matches(path string, info fs.FileInfo) error {
	if info.Size() != r.Size {
		return fmt.Errorf("%s has %d bytes instead of %d", path, info.Size(), r.Size)
	}
	if info.ModTime().Equal(r.ModTime) {
		return nil
	}
	sum, err := sha256Of(path)
	if err != nil {
		return err
	}
	if sum != r.SHA256 {
		return fmt.Errorf("%s has changed since it was put there", path)
	}
	return nil
}

func sha256Of(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
